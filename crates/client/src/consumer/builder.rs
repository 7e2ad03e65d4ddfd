//! How a consumer is to be.

use super::application::Application;
use super::driver::{Driver, Watched};
use super::lanes::Lanes;
use super::{Command, Consumer, Event};
use crate::cluster::Cluster;
use crate::connect::Connector;
use crate::error::Error;
use crate::fetch::Fetcher;
use crate::settings::{Reset, Settings};
use crate::task::spawn_watched;
use kohort_group::assign::{self, Assignor};
use kohort_group::member::{Input, Member, MemberConfig, Subscription};
use kohort_group::partitions::Topic;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Java's class names of the assignors end so.
const JAVA_SUFFIX: &str = "Assignor";

/// How a [`Consumer`] is to be.
#[derive(Clone, Debug, Default)]
pub struct ConsumerBuilder {
    settings: Settings,
    properties: BTreeMap<String, String>,
    topics: BTreeSet<Topic>,
    pattern: Option<String>,
    assignors: Vec<Arc<dyn Assignor>>,
    connector: Connector,
    seed: Option<u64>,
}

impl ConsumerBuilder {
    /// Where the cluster is: `host:port`, several separated by commas (`bootstrap.servers`).
    #[must_use]
    pub fn bootstrap(self, addresses: &str) -> Self {
        self.set("bootstrap.servers", addresses)
    }

    /// The group (`group.id`).
    #[must_use]
    pub fn group(self, group: &str) -> Self {
        self.set("group.id", group)
    }

    /// The topics.
    #[must_use]
    pub fn topics<T: AsRef<str>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.topics
            .extend(topics.into_iter().map(|topic| Topic::from(topic.as_ref())));
        self
    }

    /// All topics whose whole name matches a regular expression, now and later.
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.pattern = Some(pattern.into());
        self
    }

    /// An id of the member's own, so that it may be away for less than a session without a rebalance (`group.instance.id`, KIP-345).
    #[must_use]
    pub fn instance_id(self, id: &str) -> Self {
        self.set("group.instance.id", id)
    }

    /// Where reading starts where no offset is committed (`auto.offset.reset`).
    #[must_use]
    pub fn from(mut self, reset: Reset) -> Self {
        self.settings.auto_offset_reset = reset;
        self
    }

    /// Whether positions are committed by themselves (`enable.auto.commit`).
    #[must_use]
    pub fn auto_commit(mut self, on: bool) -> Self {
        self.settings.enable_auto_commit = on;
        self
    }

    /// An assignor of the application's own, after those that were given before; in place of `partition.assignment.strategy`.
    #[must_use]
    pub fn assignor(mut self, assignor: Arc<dyn Assignor>) -> Self {
        self.assignors.push(assignor);
        self
    }

    /// Any setting, by Kafka's name; [`Settings::table`] lists them.
    #[must_use]
    pub fn set(mut self, property: &str, value: &str) -> Self {
        self.properties.insert(property.into(), value.into());
        self
    }

    /// All settings at once, in place of what was set by its own method before.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// How brokers are reached, in place of TCP.
    #[must_use]
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connector = connector;
        self
    }

    /// What the lengths of pauses are drawn from, in place of chance: for tests that must repeat.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Connects, and joins in the background.
    ///
    /// # Errors
    /// [`Error::Config`] names what is wrong with the settings; [`Error::Connection`] or [`Error::Peer`], who answers, or does not.
    pub async fn build(mut self) -> Result<Consumer, Error> {
        self.settings.set_all(&self.properties)?;
        let subscription = self.subscription()?;
        let member = Member::new(self.member_config()?)
            .map_err(|errors| Error::Config(errors.to_string()))?;
        let settings = self.settings;
        let may_create = settings.allow_auto_create_topics;
        let max_poll_interval_ms = settings.max_poll_interval_ms;
        let cluster = Cluster::connect(settings, self.connector, may_create).await?;
        let (failed, failures) = mpsc::unbounded_channel();
        let fetcher = Fetcher::new(cluster.clone(), failed);
        let application = Arc::new(Mutex::new(Application::new(max_poll_interval_ms)));
        let (commands, command_queue) = mpsc::unbounded_channel();
        let (event_queue, events) = mpsc::unbounded_channel();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let driver = Driver {
            lanes: Lanes::new(cluster.clone(), &member.config().group_id, arrived),
            watched: Watched {
                views: cluster.watch(),
                from_serial: None,
                mentioned: BTreeSet::new(),
            },
            member,
            cluster,
            fetcher: fetcher.clone(),
            application: application.clone(),
            events: event_queue,
            commands_of: commands.downgrade(),
            commands: command_queue,
            failures,
            arrivals,
            started: Instant::now(),
            subscription: None,
            commits: BTreeMap::new(),
            next_commit: 0,
            searches_failed: 0,
            ended: false,
            closing: false,
            abandoned: false,
        };
        let (last_words, silenced) = (driver.events.clone(), fetcher.clone());
        spawn_watched(driver.run(), move |error| {
            silenced.halt();
            let _ = last_words.send(Event::Error(error));
            let _ = last_words.send(Event::Closed);
        });
        let consumer = Consumer {
            commands,
            events,
            fetcher,
            application,
            delivered: None,
            closed: false,
        };
        consumer.command(Command::Subscribe(subscription));
        Ok(consumer)
    }

    fn subscription(&self) -> Result<Subscription, Error> {
        match &self.pattern {
            Some(_) if !self.topics.is_empty() => Err(Error::Config(
                "topics and a pattern exclude each other; name one or the other".into(),
            )),
            Some(pattern) => {
                check_pattern(pattern)?;
                Ok(Subscription::Pattern(pattern.clone()))
            }
            None if self.topics.is_empty() => Err(Error::Config(
                "nothing to read: name at least one topic, or a pattern".into(),
            )),
            None => Ok(Subscription::Topics(self.topics.clone())),
        }
    }

    fn member_config(&self) -> Result<MemberConfig, Error> {
        let settings = &self.settings;
        let group = settings.group_id.clone();
        let group = group.ok_or_else(|| {
            Error::Config("group.id: a consumer needs a group; without one, use a reader".into())
        })?;
        let assignors = if self.assignors.is_empty() {
            let names = settings.assignors.iter();
            names.map(|name| known(name)).collect::<Result<_, _>>()?
        } else {
            self.assignors.clone()
        };
        let mut config = MemberConfig::new(group, assignors);
        config.group_instance_id = settings.group_instance_id.clone();
        config.client_id = settings.client_id.clone();
        config.rack = settings.rack.clone();
        config.session_timeout_ms = settings.session_timeout_ms.into();
        config.heartbeat_interval_ms = settings.heartbeat_interval_ms.into();
        config.max_poll_interval_ms = settings.max_poll_interval_ms.into();
        config.request_timeout_ms = settings.request_timeout_ms.into();
        config.retry_backoff_ms = settings.retry_backoff_ms.into();
        config.retry_backoff_max_ms = settings
            .retry_backoff_max_ms
            .max(settings.retry_backoff_ms)
            .into();
        config.default_api_timeout_ms = settings.default_api_timeout_ms.into();
        config.auto_commit_interval_ms = settings
            .enable_auto_commit
            .then(|| settings.auto_commit_interval_ms.into());
        config.close_drain_ms = settings.close_drain_ms.into();
        config.explicit_revocation = settings.explicit_revocation;
        // Fresh for each member, also within one process.
        let fresh = || RandomState::new().hash_one(std::process::id());
        config.seed = self.seed.unwrap_or_else(fresh);
        Ok(config)
    }
}

/// A pattern that the member would refuse is refused here, where there is somebody to tell.
fn check_pattern(pattern: &str) -> Result<(), Error> {
    let mut config = MemberConfig::new("pattern", vec![known("range")?]);
    config.seed = 1;
    let mut member = Member::new(config).map_err(|errors| Error::Config(errors.to_string()))?;
    let mut outputs = Vec::new();
    let subscription = Subscription::Pattern(pattern.to_owned());
    member.handle(
        kohort_group::time::Timestamp(0),
        Input::Subscribe(subscription),
        &mut outputs,
    );
    let refused = outputs.into_iter().find_map(|output| match output {
        kohort_group::member::Output::Warning { text, .. } => Some(text),
        _ => None,
    });
    refused.map_or(Ok(()), |text| Err(Error::Config(text)))
}

/// An assignor by its name, or by the name of Java's class for it.
fn known(name: &str) -> Result<Arc<dyn Assignor>, Error> {
    let short = name.rsplit('.').next().unwrap_or(name);
    let java = short.strip_suffix(JAVA_SUFFIX).map(|stem| match stem {
        "CooperativeSticky" => "cooperative-sticky".to_owned(),
        other => other.to_lowercase(),
    });
    assign::by_name(java.as_deref().unwrap_or(name)).ok_or_else(|| {
        Error::Config(format!(
            "partition.assignment.strategy: there is no assignor {name:?}; known are cooperative-sticky, range, roundrobin and sticky"
        ))
    })
}
