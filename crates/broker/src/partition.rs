//! One partition of a topic: its log, and the fetches that wait for it to grow.

use crate::log::{AppendInfo, PartitionLog};
use bytes::Bytes;
use kohort_wire::ErrorCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// One partition. All access to its log goes through one lock: an append or a read takes microseconds.
pub(crate) struct Partition {
    pub(crate) index: i32,
    log: Mutex<PartitionLog>,
    waiters: Mutex<Vec<Arc<Notify>>>,
}

impl Partition {
    pub(crate) fn new(index: i32, log: PartitionLog) -> Self {
        Self {
            index,
            log: Mutex::new(log),
            waiters: Mutex::default(),
        }
    }

    /// The log, locked; not to be held while waiting for anything.
    pub(crate) fn log(&self) -> MutexGuard<'_, PartitionLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a batch and wakes those who wait for it.
    pub(crate) fn append(&self, batch: &Bytes, now: i64) -> Result<AppendInfo, ErrorCode> {
        let info = self.log().append(batch, now)?;
        self.wake();
        Ok(info)
    }

    /// Wakes all who wait.
    pub(crate) fn wake(&self) {
        for waiter in self.waiters().drain(..) {
            waiter.notify_one();
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Arc<Notify>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for any of several partitions to grow; leaves no trace in them when dropped.
pub(crate) struct Watch {
    woken: Arc<Notify>,
    partitions: Vec<Arc<Partition>>,
}

impl Watch {
    /// Begins to watch. What is appended from now on is not missed.
    pub(crate) fn over(partitions: Vec<Arc<Partition>>) -> Self {
        let woken = Arc::new(Notify::new());
        for partition in &partitions {
            partition.waiters().push(Arc::clone(&woken));
        }
        Self { woken, partitions }
    }

    /// Returns when one of them has grown.
    pub(crate) async fn grown(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for partition in &self.partitions {
            let mut waiters = partition.waiters();
            if let Some(at) = waiters
                .iter()
                .position(|waiter| Arc::ptr_eq(waiter, &self.woken))
            {
                waiters.swap_remove(at);
            }
        }
    }
}
