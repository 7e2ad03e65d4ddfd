//! Administration: topics, groups, offsets.

use crate::cluster::{Backoff, Cluster, Purpose};
use crate::connect::Connector;
use crate::connection::Connection;
use crate::error::Error;
use crate::metadata::View;
use crate::settings::Settings;
use kohort_group::partitions::{Topic, TopicPartition};
use kohort_wire::api::ApiRequest;
use kohort_wire::messages::{
    CreatePartitionsRequest, CreatePartitionsRequestTopic, CreateTopicsRequest,
    CreateTopicsRequestConfig, CreateTopicsRequestTopic, DeleteGroupsRequest, DeleteTopicsRequest,
    DeleteTopicsRequestTopic, DescribeGroupsRequest, DescribedGroup, ListGroupsRequest,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

mod attempts;
mod groups;
mod members;

use attempts::Attempts;
use groups::refused;
pub use members::{GroupDescription, GroupListing, MemberDescription};

/// Creates, lists, describes and deletes.
///
/// ```no_run
/// # async fn example() -> Result<(), kohort::Error> {
/// let admin = kohort::Admin::connect("127.0.0.1:9092").await?;
/// admin.create_topic("orders", 12).await?;
/// for (name, topic) in &admin.topics(None).await?.topics {
///     println!("{name} has {} partitions", topic.partitions.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Admin {
    cluster: Arc<Cluster>,
}

/// A topic to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; −1 leaves it to the broker.
    pub partitions: i32,
    /// How many replicas; −1 leaves it to the broker.
    pub replicas: i16,
    /// Its settings, by Kafka's names.
    pub settings: BTreeMap<String, String>,
}

impl Admin {
    /// Connects to a cluster: `host:port`, several separated by commas.
    ///
    /// # Errors
    /// [`Error::Connection`] or [`Error::Peer`]: who answers there, or does not.
    pub async fn connect(bootstrap: &str) -> Result<Self, Error> {
        let mut settings = Settings::default();
        settings.set("bootstrap.servers", bootstrap)?;
        Self::with(settings).await
    }

    /// The same with these settings.
    ///
    /// # Errors
    /// See [`Admin::connect`]; [`Error::Config`] for settings that make no sense.
    pub async fn with(settings: Settings) -> Result<Self, Error> {
        Self::by(Connector::default(), settings).await
    }

    /// The same, with brokers reached in a way of one's own.
    ///
    /// # Errors
    /// See [`Admin::with`].
    pub async fn by(connector: Connector, settings: Settings) -> Result<Self, Error> {
        let cluster = Cluster::connect(settings, connector, false).await?;
        Ok(Self { cluster })
    }

    /// Makes a topic with this many partitions and as many replicas as the broker thinks right; waits until all have a leader.
    ///
    /// # Errors
    /// [`Error::Broker`] with TOPIC_ALREADY_EXISTS and so on.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> Result<(), Error> {
        self.create(NewTopic {
            name: name.to_owned(),
            partitions,
            replicas: -1,
            settings: BTreeMap::new(),
        })
        .await
    }

    /// Makes a topic and waits until all its partitions have a leader.
    ///
    /// # Errors
    /// See [`Admin::create_topic`].
    pub async fn create(&self, topic: NewTopic) -> Result<(), Error> {
        let name = topic.name.clone();
        let configs = topic
            .settings
            .into_iter()
            .map(|(name, value)| CreateTopicsRequestConfig {
                name,
                value: Some(value),
            });
        let request = CreateTopicsRequest {
            topics: vec![CreateTopicsRequestTopic {
                name: topic.name,
                num_partitions: topic.partitions,
                replication_factor: topic.replicas,
                configs: configs.collect(),
                ..Default::default()
            }],
            timeout_ms: self.timeout_ms(),
            ..Default::default()
        };
        self.ask(About::Controller, &request, |answer| {
            let topic = answer.topics.first();
            let refusal = topic.map(|topic| (topic.error_code, topic.error_message.clone()));
            verdict(ApiKey::CreateTopics, &name, refusal)
        })
        .await?;
        self.until_led(&name).await
    }

    async fn until_led(&self, name: &str) -> Result<(), Error> {
        let topic: Topic = name.into();
        let timeout_ms = self.cluster.settings.default_api_timeout_ms;
        let deadline = Instant::now() + Duration::from_millis(timeout_ms.into());
        let mut backoff = Backoff::new(5, 200);
        loop {
            let view = self
                .cluster
                .refresh(Some(BTreeSet::from([topic.clone()])))
                .await?;
            let led = view.topics.get(&topic).is_some_and(|topic| {
                topic.error.is_none()
                    && topic
                        .partitions
                        .values()
                        .all(|partition| partition.leader >= 0)
            });
            if led {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let what = format!(
                    "topic {name} was created, but not all its partitions have a leader yet"
                );
                return Err(Error::TimedOut { what });
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Deletes a topic.
    ///
    /// # Errors
    /// [`Error::Broker`] with UNKNOWN_TOPIC_OR_PARTITION and so on.
    pub async fn delete_topic(&self, name: &str) -> Result<(), Error> {
        let request = DeleteTopicsRequest {
            topics: vec![DeleteTopicsRequestTopic {
                name: Some(name.to_owned()),
                ..Default::default()
            }],
            topic_names: vec![name.to_owned()],
            timeout_ms: self.timeout_ms(),
        };
        self.ask(About::Controller, &request, |answer| {
            let topic = answer.responses.first();
            let refusal = topic.map(|topic| (topic.error_code, topic.error_message.clone()));
            verdict(ApiKey::DeleteTopics, name, refusal)
        })
        .await
    }

    /// Makes a topic have `total` partitions, more than it has.
    ///
    /// # Errors
    /// [`Error::Broker`] with INVALID_PARTITIONS if it has as many or more already, and so on.
    pub async fn add_partitions(&self, name: &str, total: i32) -> Result<(), Error> {
        let request = CreatePartitionsRequest {
            topics: vec![CreatePartitionsRequestTopic {
                name: name.to_owned(),
                count: total,
                assignments: None,
            }],
            timeout_ms: self.timeout_ms(),
            ..Default::default()
        };
        self.ask(About::Controller, &request, |answer| {
            let topic = answer.results.first();
            let refusal = topic.map(|topic| (topic.error_code, topic.error_message.clone()));
            verdict(ApiKey::CreatePartitions, name, refusal)
        })
        .await
    }

    /// The cluster with these topics, or with all.
    ///
    /// # Errors
    /// Connections that fail. A topic that does not exist is there, with its `error`.
    pub async fn topics(&self, names: Option<&[&str]>) -> Result<Arc<View>, Error> {
        let names = names.map(|names| names.iter().map(|name| Topic::from(*name)).collect());
        self.cluster.refresh(names).await
    }

    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.cluster.settings.request_timeout_ms).unwrap_or(i32::MAX)
    }

    /// Asks the broker in charge, again while trying again may help, for up to `default.api.timeout.ms`.
    async fn ask<R: ApiRequest, T>(
        &self,
        whom: About<'_>,
        request: &R,
        read: impl Fn(R::Response) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut attempts = Attempts::new(&self.cluster.settings);
        loop {
            let outcome = match self.in_charge(whom).await {
                Ok(connection) => connection
                    .call(request, self.cluster.request_limit())
                    .await
                    .and_then(&read),
                Err(error) => Err(error),
            };
            match outcome {
                Ok(answer) => return Ok(answer),
                Err(error) => attempts.again(error).await?,
            }
            let _ = self.cluster.refresh(Some(BTreeSet::new())).await;
        }
    }

    async fn in_charge(&self, whom: About<'_>) -> Result<Arc<Connection>, Error> {
        match whom {
            About::Controller => {
                let controller = self.cluster.view().controller;
                if controller < 0 {
                    return self.cluster.any_connection().await;
                }
                self.cluster
                    .connection(controller, Purpose::Questions)
                    .await
            }
            About::Node(node) => self.cluster.connection(node, Purpose::Questions).await,
            About::Group(group) => {
                let node = self.cluster.find_coordinator(group).await?;
                self.cluster.connection(node, Purpose::Questions).await
            }
        }
    }
}

/// Who is asked.
#[derive(Clone, Copy, Debug)]
enum About<'a> {
    Controller,
    Node(i32),
    Group(&'a str),
}

fn verdict(
    api: ApiKey,
    about: &str,
    refusal: Option<(ErrorCode, Option<String>)>,
) -> Result<(), Error> {
    match refusal {
        Some((code, _)) if code.is_none() => Ok(()),
        Some((code, words)) => {
            // What only repeats the code helps nobody.
            let words = words.filter(|words| words != code.meaning());
            let words = words.map_or(String::new(), |words| format!(" ({words})"));
            Err(Error::broker(api, code, format!("{about}{words}")))
        }
        None => Err(Error::Peer {
            address: about.to_owned(),
            reason: format!("the answer to {} does not mention it", api.name()),
        }),
    }
}
