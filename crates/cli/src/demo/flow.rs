//! The steady flow of records.

use super::member::content;
use super::track::Produced;
use kohort::{Error, NewRecord, Producer, Settings};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// How often some records are sent.
const TICK: Duration = Duration::from_millis(20);
/// Records a second, where no input says how many there are.
const RATE: f64 = 300.0;

/// What flows, and for how long.
pub(super) struct Flow {
    pub(super) settings: Settings,
    pub(super) topic: String,
    pub(super) partitions: i32,
    pub(super) seed: u64,
    /// The records' values; numbered ones for ever if there are none.
    pub(super) lines: Option<Vec<Vec<u8>>>,
    pub(super) lasts: Duration,
}

impl Flow {
    /// Produces until the time is over and every record is acknowledged.
    pub(super) async fn run(self, produced: Produced) -> Result<(), Error> {
        let producer = Producer::builder()
            .settings(self.settings.clone())
            .build()
            .await?;
        let (sent, mut deliveries) = mpsc::unbounded_channel::<(kohort::Delivery, u64)>();
        let count = tokio::spawn(async move {
            while let Some((delivery, content)) = deliveries.recv().await {
                let stored = delivery.wait().await?;
                produced.add(stored.partition, stored.offset, content);
            }
            Ok(())
        });
        self.send(&producer, &sent).await?;
        drop(sent);
        producer.flush().await;
        count.await.map_err(|_| Error::Closed)??;
        producer.close().await
    }

    async fn send(
        &self,
        producer: &Producer,
        sent: &mpsc::UnboundedSender<(kohort::Delivery, u64)>,
    ) -> Result<(), Error> {
        let began = Instant::now();
        let rate = match &self.lines {
            Some(lines) => lines.len() as f64 / self.lasts.as_secs_f64(),
            None => RATE,
        };
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut number = 0;
        let mut random = self.seed;
        while began.elapsed() < self.lasts {
            ticks.tick().await;
            let due = (began.elapsed().min(self.lasts).as_secs_f64() * rate) as u64;
            while number < due {
                let Some(value) = self.value(number) else {
                    break;
                };
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let partition = (random >> 33) as i32 % self.partitions.max(1);
                let hash = content(&value);
                let record = NewRecord::to(&self.topic).partition(partition).value(value);
                let _ = sent.send((producer.send(record).await?, hash));
                number += 1;
            }
        }
        while let Some(value) = self.lines.as_ref().and_then(|_| self.value(number)) {
            let hash = content(&value);
            let record = NewRecord::to(&self.topic).value(value);
            let _ = sent.send((producer.send(record).await?, hash));
            number += 1;
        }
        sleep_until(began + self.lasts).await;
        Ok(())
    }

    fn value(&self, number: u64) -> Option<Vec<u8>> {
        match &self.lines {
            Some(lines) => lines.get(usize::try_from(number).ok()?).cloned(),
            None => Some(format!("record {number}").into_bytes()),
        }
    }
}
