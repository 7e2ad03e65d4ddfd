//! The coordinators: one for each partition of the offsets topic.

use crate::node::{Exchange, Node};
use crate::router::Session;
use crate::settings::Settings;
use crate::topics::{OFFSETS_TOPIC, Refusal, Topics};
use kohort_group::coordinator::{ConnectionId, GroupRequest, GroupResponse};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The coordinators of a broker.
pub(crate) struct Groups {
    partitions: i32,
}

impl Groups {
    pub(crate) fn new(settings: &Arc<Settings>) -> Self {
        Self {
            partitions: settings.offsets_topic_num_partitions,
        }
    }

    /// Makes the offsets topic when it is needed for the first time, as Kafka does.
    pub(crate) fn ensure_topic(&self, node: &Node) -> Result<(), Refusal> {
        if node.topics.get(OFFSETS_TOPIC).is_some() {
            return Ok(());
        }
        let configs = [
            ("cleanup.policy", "compact"),
            (
                "segment.bytes",
                &node.settings.offsets_topic_segment_bytes.to_string(),
            ),
        ];
        let configs = configs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let made = node.topics.create(
            OFFSETS_TOPIC,
            self.partitions,
            configs,
            false,
            node.clock.wall(),
        );
        match made {
            Ok(_) => {
                self.topics_changed(&node.topics);
                Ok(())
            }
            Err(_) if node.topics.get(OFFSETS_TOPIC).is_some() => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    pub(crate) fn topics_changed(&self, _: &Topics) {}

    pub(crate) fn disconnected(&self, _: ConnectionId, _: &BTreeSet<usize>) {}

    pub(crate) fn active(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The partition of a group: Java's hash of its id.
    pub(crate) fn partition_of(&self, group: &str) -> usize {
        (java_hash(group) & 0x7fff_ffff) as usize % self.partitions.max(1) as usize
    }

    pub(crate) async fn ask(
        &self,
        node: &Node,
        session: &mut Session,
        exchange: &Exchange,
        group: &str,
        request: GroupRequest,
    ) -> Option<GroupResponse> {
        self.ensure_topic(node).ok()?;
        let partition = self.partition_of(group);
        self.ask_partition(session, exchange, partition, request)
            .await
    }

    pub(crate) async fn ask_partition(
        &self,
        session: &mut Session,
        _: &Exchange,
        partition: usize,
        _: GroupRequest,
    ) -> Option<GroupResponse> {
        session.coordinators.insert(partition);
        None
    }
}

/// `String.hashCode` of Java: over UTF-16 units.
fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0_u32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(u32::from(unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_as_kafka_spreads_them() {
        // What Java's "…".hashCode() gives.
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("hello"), 99_162_322);
        assert_eq!(java_hash("polygenelubricants") as i32, i32::MIN);
        let groups = Groups { partitions: 50 };
        assert_eq!(groups.partition_of("polygenelubricants"), 0);
    }
}
