//! Where the broker keeps things: nowhere but in memory, or in a folder.

use crate::topic_config::TopicConfigs;
use kohort_wire::primitives::Uuid;
use std::io;

/// What the broker knows about itself and its topics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) cluster_id: String,
    pub(crate) next_producer_id: i64,
    pub(crate) topics: Vec<CatalogTopic>,
}

/// A topic in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct CatalogTopic {
    pub(crate) name: String,
    pub(crate) id: Uuid,
    pub(crate) partitions: i32,
    pub(crate) configs: TopicConfigs,
}

/// Where the broker keeps things.
pub(crate) enum Storage {
    Memory,
}

impl Storage {
    /// Memory, and an empty catalog.
    pub(crate) fn open() -> io::Result<(Self, Catalog)> {
        let catalog = Catalog {
            cluster_id: new_cluster_id(),
            ..Catalog::default()
        };
        Ok((Storage::Memory, catalog))
    }

    pub(crate) fn save(&self, _: &Catalog) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn save_producer_id(&self, _: &mut Catalog) -> io::Result<()> {
        Ok(())
    }
}

/// 22 characters, as Kafka's cluster ids are: a random id in URL-safe base 64.
fn new_cluster_id() -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut number = u128::from_be_bytes(crate::topics::new_id());
    let mut text = String::with_capacity(22);
    for _ in 0..22 {
        text.push(char::from(DIGITS[(number & 63) as usize]));
        number >>= 6;
    }
    text
}
