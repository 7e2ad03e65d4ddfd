//! A running broker: how it is started and stopped.

use crate::accept::Accept;
use crate::cleaner;
use crate::clock::Clock;
use crate::groups::{Groups, OnRebalance};
use crate::intercept::{Intercept, Intercepted, Verdict};
use crate::listener;
use crate::node::Node;
use crate::settings::Settings;
use crate::storage::{Storage, StorageError};
use crate::topics::Topics;
use kohort_group::history::RebalanceRecord;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The address to listen on is none.
    #[error("cannot listen on {address:?}: expected HOST:PORT, such as 127.0.0.1:9092")]
    Address {
        /// What was given.
        address: String,
    },
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address}: the port is in use; stop what listens there, or choose another port (0 picks a free one)"
    )]
    PortInUse {
        /// The address.
        address: String,
    },
    /// Listening failed otherwise.
    #[error(
        "cannot listen on {address}: {source}; expected an address of this machine and a port that this process may use"
    )]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The data folder cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What is in the data folder cannot be read.
    #[error("cannot open the logs: {0}")]
    Logs(#[from] io::Error),
}

/// How a broker is to be started.
#[derive(Clone)]
pub struct BrokerBuilder {
    listen: String,
    data: Option<PathBuf>,
    settings: Settings,
    intercept: Option<Intercept>,
    on_rebalance: Option<OnRebalance>,
    seed: Option<u64>,
}

impl BrokerBuilder {
    /// Where to listen, `HOST:PORT`; port 0 picks a free one. The default is `127.0.0.1:0`.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = address.into();
        self
    }

    /// Keeps everything in this folder; without it, in memory.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// The settings; the default is Kafka's.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// A hook for tests that sees every request before it is served, and decides what becomes of it.
    #[must_use]
    pub fn intercept(
        mut self,
        hook: impl Fn(&Intercepted) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.intercept = Some(Arc::new(hook));
        self
    }

    /// Told of every rebalance that has ended. It is called while the group's coordinator waits: it should be quick.
    #[must_use]
    pub fn on_rebalance(mut self, hook: impl Fn(&RebalanceRecord) + Send + Sync + 'static) -> Self {
        self.on_rebalance = Some(Arc::new(hook));
        self
    }

    /// What member ids are made of, in place of chance: for tests that must repeat. Each start needs another one.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts the broker; it serves when this returns.
    ///
    /// # Errors
    /// [`BrokerError`] if it cannot listen, or cannot use its data folder.
    pub async fn start(self) -> Result<Broker, BrokerError> {
        let listener = bind(&self.listen).await?;
        self.start_on(listener).await
    }

    /// Starts the broker on connections from somewhere else than TCP.
    ///
    /// # Errors
    /// [`BrokerError`] if the listener does not say where it is, or the data folder cannot be used.
    pub async fn start_on(self, listener: impl Accept) -> Result<Broker, BrokerError> {
        let address = listener.address()?;
        let clock = Clock::start();
        let settings = Arc::new(self.settings);
        let (storage, catalog) = Storage::open(self.data.as_deref())?;
        let storage = Arc::new(storage);
        let topics = Topics::open(
            Arc::clone(&settings),
            Arc::clone(&storage),
            catalog,
            clock.wall(),
        )?;
        let seed = self.seed.unwrap_or_else(fresh_seed);
        let node = Arc::new(Node {
            groups: Groups::new(&settings, clock, self.on_rebalance, seed),
            cluster_id: topics.cluster_id(),
            topics: Arc::new(topics),
            settings,
            clock,
            intercept: self.intercept,
        });
        node.groups.load(&node.topics);
        let (stop, stopped) = watch::channel(false);
        let cleaning = tokio::spawn(cleaner::run(Arc::clone(&node)));
        let accepting = tokio::spawn(listener::run(Arc::clone(&node), listener, stopped));
        Ok(Broker {
            address,
            node,
            storage,
            stop,
            accepting: Some(accepting),
            cleaning: Some(cleaning),
        })
    }
}

/// Fresh for each start, so that member ids do not repeat.
fn fresh_seed() -> u64 {
    u128::from_be_bytes(crate::topics::new_id()) as u64
}

async fn bind(address: &str) -> Result<TcpListener, BrokerError> {
    TcpListener::bind(address).await.map_err(|source| {
        let address = address.to_owned();
        match source.kind() {
            io::ErrorKind::AddrInUse => BrokerError::PortInUse { address },
            io::ErrorKind::InvalidInput => BrokerError::Address { address },
            _ => BrokerError::Listen { address, source },
        }
    })
}

/// A running broker. Dropping it stops it at once; [`Broker::shutdown`] also waits until nothing of it is left.
pub struct Broker {
    address: SocketAddr,
    node: Arc<Node>,
    storage: Arc<Storage>,
    stop: watch::Sender<bool>,
    accepting: Option<JoinHandle<()>>,
    cleaning: Option<JoinHandle<()>>,
}

impl Broker {
    /// Starts a broker for tests: in memory, on a free loopback port, and with groups that form without delay.
    ///
    /// # Errors
    /// See [`BrokerBuilder::start`].
    pub async fn start() -> Result<Self, BrokerError> {
        Self::builder()
            .settings(Settings::for_tests())
            .start()
            .await
    }

    /// A broker with settings of one's own.
    #[must_use]
    pub fn builder() -> BrokerBuilder {
        BrokerBuilder {
            listen: "127.0.0.1:0".to_owned(),
            data: None,
            settings: Settings::default(),
            intercept: None,
            on_rebalance: None,
            seed: None,
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: closes all connections and files, and returns when nothing is left.
    pub async fn shutdown(mut self) {
        let _ = self.stop.send(true);
        if let Some(cleaning) = self.cleaning.take() {
            cleaning.abort();
            let _ = cleaning.await;
        }
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.await;
        }
        let mut coordinators = self.node.groups.stop();
        while coordinators.join_next().await.is_some() {}
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(cleaning) = self.cleaning.take() {
            cleaning.abort();
        }
        if let Some(accepting) = self.accepting.take() {
            // Its connections are its own tasks: they end with it.
            accepting.abort();
        }
        drop(self.node.groups.stop());
        self.storage.close();
    }
}
