//! Where the broker keeps things: nowhere but in memory, or in a folder.
//!
//! ```text
//!   DIR/format                                  "kohort data 1"
//!   DIR/lock                                    locked while a broker uses the folder
//!   DIR/catalog.json                            topics, their settings, the cluster's id; replaced as a whole
//!   DIR/topics/NAME/ID/PARTITION/OFFSET.log     segments: record batches as clients see them
//! ```
//!
//! Plain files rather than an embedded database: a fetch hands out what one positioned read found, without a copy or a
//! lookup for each batch, an append is one write, and what a log needs otherwise (its index, the producers) is rebuilt from
//! the batch headers in one pass.

use crate::log::{DiskStore, MemoryStore, SegmentStore, write_whole};
use crate::topic_config::TopicConfigs;
use kohort_wire::primitives::Uuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The format of the folder that this code reads and writes.
const FORMAT: u32 = 1;

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// Another broker uses it.
    #[error(
        "the data folder {folder} is in use by another broker{holder}; stop that one, or choose another folder"
    )]
    InUse {
        /// The folder.
        folder: String,
        /// Which process, if it said so.
        holder: String,
    },
    /// It was written by a newer kohort.
    #[error(
        "the data folder {folder} has format {found}, expected {FORMAT}: a newer kohort wrote it; use that one, or another folder"
    )]
    NewerFormat {
        /// The folder.
        folder: String,
        /// Its format.
        found: u32,
    },
    /// It holds something else.
    #[error(
        "the folder {folder} is not empty and holds no data of a kohort broker; choose an empty or a new folder"
    )]
    Foreign {
        /// The folder.
        folder: String,
    },
    /// Its catalog cannot be read.
    #[error(
        "the catalog of topics {file} is damaged: {why}; restore it from a backup, or choose another folder"
    )]
    Catalog {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused.
    #[error(
        "cannot use the data folder {folder}: {source}; expected a folder, or a name for one, where this process may write"
    )]
    Io {
        /// The folder.
        folder: String,
        /// What the system said.
        source: io::Error,
    },
}

/// What the broker knows about itself and its topics.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Catalog {
    pub(crate) cluster_id: String,
    /// Producer ids below this one may have been given out.
    pub(crate) reserved_producer_id: i64,
    #[serde(skip)]
    pub(crate) next_producer_id: i64,
    pub(crate) topics: Vec<CatalogTopic>,
}

/// A topic in the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CatalogTopic {
    pub(crate) name: String,
    #[serde(with = "hexadecimal")]
    pub(crate) id: Uuid,
    pub(crate) partitions: i32,
    #[serde(default)]
    pub(crate) configs: TopicConfigs,
}

/// Where the broker keeps things.
pub(crate) enum Storage {
    Memory,
    Disk(DataFolder),
}

/// A folder that this process has for itself.
pub(crate) struct DataFolder {
    path: PathBuf,
    lock: Mutex<Option<File>>,
    closed: Arc<AtomicBool>,
}

impl Storage {
    /// Memory, or the folder with what it holds; an empty or missing folder is prepared.
    pub(crate) fn open(folder: Option<&Path>) -> Result<(Self, Catalog), StorageError> {
        let Some(path) = folder else {
            return Ok((Storage::Memory, Catalog::new()));
        };
        let name = path.display().to_string();
        let io = |source| StorageError::Io {
            folder: name.clone(),
            source,
        };
        fs::create_dir_all(path).map_err(io)?;
        let lock = lock(path)?;
        check_format(path)?;
        let file = path.join("catalog.json");
        let (catalog, is_new) = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Catalog::new(), true),
            Err(error) => return Err(io(error)),
            Ok(text) => {
                let damaged = |error: serde_json::Error| StorageError::Catalog {
                    file: file.display().to_string(),
                    why: error.to_string(),
                };
                (serde_json::from_slice(&text).map_err(damaged)?, false)
            }
        };
        let next_producer_id = catalog.reserved_producer_id;
        let catalog = Catalog {
            next_producer_id,
            ..catalog
        };
        let folder = DataFolder {
            path: path.to_owned(),
            lock: Mutex::new(Some(lock)),
            closed: Arc::default(),
        };
        folder.remove_orphans(&catalog).map_err(io)?;
        let storage = Storage::Disk(folder);
        // A full disk must not keep the broker from starting.
        if is_new {
            storage.save(&catalog).map_err(io)?;
        }
        Ok((storage, catalog))
    }

    pub(crate) fn save(&self, catalog: &Catalog) -> io::Result<()> {
        let Storage::Disk(folder) = self else {
            return Ok(());
        };
        if folder.closed.load(Ordering::Acquire) {
            return Err(io::Error::other("the broker has stopped"));
        }
        let text = serde_json::to_vec_pretty(catalog)?;
        write_whole(&folder.path.join("catalog.json"), |file| {
            file.write_all(&text)
        })
    }

    /// Where the segments of a partition are.
    pub(crate) fn partition(&self, topic: &str, id: Uuid, index: i32) -> Box<dyn SegmentStore> {
        match self {
            Storage::Memory => Box::new(MemoryStore),
            Storage::Disk(folder) => {
                let path = folder
                    .topic(topic)
                    .join(hexadecimal::text(&id))
                    .join(index.to_string());
                Box::new(DiskStore::new(path, Arc::clone(&folder.closed)))
            }
        }
    }

    /// Removes what is left of a deleted topic. If that fails, the next start does it.
    pub(crate) fn remove_topic(&self, name: &str, id: Uuid) {
        if let Storage::Disk(folder) = self {
            let topic = folder.topic(name);
            let removed = fs::remove_dir_all(topic.join(hexadecimal::text(&id)));
            if let Err(error) = removed
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!("cannot remove the files of the deleted topic {name}: {error}");
            }
            // Only if it is empty.
            let _ = fs::remove_dir(topic);
        }
    }

    /// Lets go of the folder: nothing is written any more, and another broker may use it.
    pub(crate) fn close(&self) {
        if let Storage::Disk(folder) = self {
            folder.closed.store(true, Ordering::Release);
            folder
                .lock
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
        }
    }
}

impl DataFolder {
    fn topic(&self, name: &str) -> PathBuf {
        self.path.join("topics").join(name)
    }

    /// Files of topics that were deleted, or never came into being, when the broker was killed.
    fn remove_orphans(&self, catalog: &Catalog) -> io::Result<()> {
        let topics = self.path.join("topics");
        fs::create_dir_all(&topics)?;
        for topic in fs::read_dir(topics)? {
            let topic = topic?;
            for id in fs::read_dir(topic.path())? {
                let id = id?;
                let known = catalog.topics.iter().any(|entry| {
                    topic.file_name() == *entry.name
                        && id.file_name() == *hexadecimal::text(&entry.id)
                });
                if !known {
                    fs::remove_dir_all(id.path())?;
                }
            }
            let _ = fs::remove_dir(topic.path());
        }
        Ok(())
    }
}

impl Catalog {
    fn new() -> Self {
        Self {
            cluster_id: new_cluster_id(),
            ..Self::default()
        }
    }
}

fn lock(folder: &Path) -> Result<File, StorageError> {
    let name = folder.display().to_string();
    let path = folder.join("lock");
    let io = |source| StorageError::Io {
        folder: name.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim().parse::<u32>();
            let holder = holder.map_or_else(|_| String::new(), |pid| format!(" (process {pid})"));
            return Err(StorageError::InUse {
                folder: name,
                holder,
            });
        }
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    file.set_len(0).map_err(io)?;
    writeln!(file, "{}", std::process::id()).map_err(io)?;
    Ok(file)
}

fn check_format(folder: &Path) -> Result<(), StorageError> {
    let name = folder.display().to_string();
    let io = |source| StorageError::Io {
        folder: name.clone(),
        source,
    };
    let path = folder.join("format");
    match fs::read_to_string(&path) {
        Ok(text) => match text
            .trim()
            .strip_prefix("kohort data ")
            .map(str::parse::<u32>)
        {
            Some(Ok(FORMAT)) => Ok(()),
            Some(Ok(found)) if found > FORMAT => Err(StorageError::NewerFormat {
                folder: name,
                found,
            }),
            _ => Err(StorageError::Foreign { folder: name }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut others = fs::read_dir(folder).map_err(io)?.flatten();
            let ours = ["lock", "format.new", "lost+found"];
            if others.any(|entry| !ours.iter().any(|ours| entry.file_name() == *ours)) {
                let _ = fs::remove_file(folder.join("lock"));
                return Err(StorageError::Foreign { folder: name });
            }
            let text = format!("kohort data {FORMAT}\n");
            write_whole(&path, |file| file.write_all(text.as_bytes())).map_err(io)
        }
        Err(error) => Err(io(error)),
    }
}

/// Ids as 32 hexadecimal digits.
mod hexadecimal {
    use kohort_wire::primitives::Uuid;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn text(id: &Uuid) -> String {
        format!("{:032x}", u128::from_be_bytes(*id))
    }

    pub(super) fn serialize<S: Serializer>(id: &Uuid, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&text(id))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(from)?;
        let number = u128::from_str_radix(&text, 16).map_err(D::Error::custom)?;
        Ok(number.to_be_bytes())
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
