//! What all parts of the broker share.

use crate::clock::Clock;
use crate::groups::Groups;
use crate::intercept::Intercept;
use crate::settings::Settings;
use crate::topics::{Refusal, Topic, Topics};
use kohort_group::coordinator::{Client, ConnectionId};
use std::net::SocketAddr;
use std::sync::Arc;

/// The broker's state.
pub(crate) struct Node {
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Clock,
    pub(crate) topics: Arc<Topics>,
    pub(crate) groups: Groups,
    pub(crate) intercept: Option<Intercept>,
    pub(crate) cluster_id: String,
}

/// Where a request came from, and in which version.
pub(crate) struct Exchange {
    pub(crate) connection: ConnectionId,
    pub(crate) client: Arc<Client>,
    pub(crate) version: i16,
    /// The address at which the client reached the broker.
    pub(crate) local: SocketAddr,
}

impl Node {
    /// Where clients are told to connect to: as configured, or where this one did.
    pub(crate) fn advertised(&self, exchange: &Exchange) -> (String, i32) {
        let configured = self.settings.advertised_listeners.as_str();
        let configured = configured
            .strip_prefix("PLAINTEXT://")
            .unwrap_or(configured);
        if let Some((host, port)) = configured.rsplit_once(':')
            && let Ok(port) = port.parse::<u16>()
        {
            return (host.trim_matches(['[', ']']).to_owned(), i32::from(port));
        }
        (
            exchange.local.ip().to_string(),
            i32::from(exchange.local.port()),
        )
    }

    /// A topic, made now if it is not there and may be made on demand.
    pub(crate) fn create_on_demand(&self, name: &str) -> Result<Arc<Topic>, Refusal> {
        let partitions = self.settings.num_partitions;
        let made = self.topics.create(
            name,
            partitions,
            Default::default(),
            false,
            self.clock.wall(),
        );
        let topic = match made {
            // Somebody else was faster.
            Err(refusal) => return self.topics.get(name).ok_or(refusal),
            Ok(topic) => topic,
        };
        tracing::info!("topic {name} made on demand with {partitions} partitions");
        self.groups.topics_changed(&self.topics);
        Ok(topic)
    }
}
