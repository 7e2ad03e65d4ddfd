//! One consumer: positions, commits, leases, closing.

use super::*;
use kohort::{CommitError, Consumer, ConsumerBuilder, Event, Offset, Records, TopicPartition};
use kohort_broker::{Settings as BrokerSettings, Verdict};
use kohort_wire::ApiKey;
use std::collections::BTreeMap;
use std::time::Instant;

fn builder(address: &str) -> ConsumerBuilder {
    Consumer::builder()
        .settings(settings(address))
        .group("g")
        .topics(["t"])
}

async fn next_records(consumer: &mut Consumer) -> Records {
    loop {
        match soon("records", consumer.next()).await {
            Event::Records(records) => return records,
            Event::Error(error) => panic!("{error}"),
            Event::Closed => panic!("closed"),
            _ => {}
        }
    }
}

async fn committed(address: &str) -> i64 {
    let offsets = Admin::connect(address)
        .await
        .unwrap()
        .committed("g")
        .await
        .unwrap();
    offsets
        .get(&TopicPartition::new("t", 0))
        .copied()
        .unwrap_or(-1)
}

#[tokio::test]
async fn a_commit_covers_what_was_handed_out() {
    let (_broker, address) = broker(&[("t", 1)]).await;
    fill(&address, "t", 0, 0..10).await;
    let mut consumer = builder(&address).auto_commit(false).build().await.unwrap();
    assert_eq!(next_records(&mut consumer).await.last_offset(), 9);
    let offsets = soon("a commit", consumer.commit()).await.unwrap();
    assert_eq!(offsets[&TopicPartition::new("t", 0)].offset, 10);
    soon("a close", consumer.close()).await.unwrap();
    assert_eq!(committed(&address).await, 10);
}

#[tokio::test]
async fn a_close_commits_positions_by_itself_and_the_next_consumer_goes_on_there() {
    let (_broker, address) = broker(&[("t", 1)]).await;
    fill(&address, "t", 0, 0..10).await;
    let mut consumer = builder(&address).build().await.unwrap();
    next_records(&mut consumer).await;
    consumer.consumed_before(4);
    soon("a close", consumer.close()).await.unwrap();
    assert_eq!(committed(&address).await, 4);
    let mut consumer = builder(&address).build().await.unwrap();
    let records = next_records(&mut consumer).await;
    let first = records.iter().next().unwrap().unwrap();
    assert_eq!((first.offset, records.len()), (4, 6));
    consumer.not_consumed();
    soon("a close", consumer.close_now()).await.unwrap();
    assert_eq!(committed(&address).await, 4, "nothing more was consumed");
}

#[tokio::test]
async fn a_commit_of_what_is_not_owned_is_refused_here() {
    let (_broker, address) = broker(&[("t", 1)]).await;
    fill(&address, "t", 0, 0..1).await;
    let mut consumer = builder(&address).build().await.unwrap();
    next_records(&mut consumer).await;
    let stranger = TopicPartition::new("other", 3);
    let offset = Offset {
        offset: 1,
        leader_epoch: -1,
        metadata: String::new(),
    };
    let offsets = BTreeMap::from([(stranger, offset)]);
    let error = soon("a refusal", consumer.commit_offsets(offsets))
        .await
        .unwrap_err();
    assert!(matches!(error, CommitError::NotOwned(_)), "{error}");
    soon("a close", consumer.close()).await.unwrap();
}

/// rust-rdkafka#627, snuba#5229: a lease that is held delays the new owner; letting go lets it in.
#[tokio::test]
async fn a_revocation_lasts_as_long_as_it_is_held() {
    let (_broker, address) = broker(&[("t", 2)]).await;
    let mut first = builder(&address).build().await.unwrap();
    soon("both", until_owned(&mut first, 2)).await;
    let mut second = builder(&address).build().await.unwrap();
    let revocation = soon("a revocation", async {
        loop {
            if let Event::Revoked(revocation) = first.next().await {
                return revocation;
            }
        }
    })
    .await;
    assert_eq!(revocation.partitions.len(), 1);
    let early = tokio::time::timeout(Duration::from_millis(300), until_owned(&mut second, 1)).await;
    assert!(early.is_err(), "it is still held");
    revocation.release();
    soon("the hand-over", until_owned(&mut second, 1)).await;
    soon("a close", first.close()).await.unwrap();
    soon("all", until_owned(&mut second, 2)).await;
    soon("a close", second.close()).await.unwrap();
}

async fn until_owned(consumer: &mut Consumer, count: usize) {
    loop {
        if let Event::Assigned(assigned) = consumer.next().await
            && assigned.owned.len() == count
        {
            return;
        }
    }
}

/// librdkafka#598: the member beats while the application is busy for longer than its session.
#[tokio::test]
async fn a_busy_application_keeps_its_partitions() {
    let mut broker_settings = BrokerSettings::for_tests();
    broker_settings
        .set("group.min.session.timeout.ms", "100")
        .unwrap();
    let broker = Broker::builder()
        .settings(broker_settings)
        .start()
        .await
        .unwrap();
    let address = broker.address().to_string();
    make(&address, &[("t", 1)]).await;
    fill(&address, "t", 0, 0..1).await;
    let mut consumer = builder(&address)
        .set("session.timeout.ms", "500")
        .set("heartbeat.interval.ms", "100")
        .build()
        .await
        .unwrap();
    next_records(&mut consumer).await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    soon("a commit", consumer.commit()).await.unwrap();
    soon("a close", consumer.close()).await.unwrap();
}

/// rust-rdkafka#636: nothing holds a consumer but its owner.
#[tokio::test]
async fn dropping_a_consumer_leaves_the_group_without_waiting() {
    let (_broker, address) = broker(&[("t", 1)]).await;
    let mut first = builder(&address).build().await.unwrap();
    soon("it", until_owned(&mut first, 1)).await;
    let started = Instant::now();
    drop(first);
    assert!(started.elapsed() < Duration::from_millis(200));
    let mut second = builder(&address).build().await.unwrap();
    soon("it again", until_owned(&mut second, 1)).await;
    soon("a close", second.close()).await.unwrap();
}

/// Commits that wait go out together: those of a second's work do not take a round trip each.
#[tokio::test]
async fn who_commits_faster_than_it_is_answered_delays_nobody() {
    let broker = Broker::builder()
        .settings(BrokerSettings::for_tests())
        .intercept(|request| match request.api {
            ApiKey::OffsetCommit => Verdict::Delay(Duration::from_millis(20)),
            _ => Verdict::Serve,
        })
        .start()
        .await
        .unwrap();
    let address = broker.address().to_string();
    make(&address, &[("t", 1)]).await;
    fill(&address, "t", 0, 0..10).await;
    let mut consumer = builder(&address).auto_commit(false).build().await.unwrap();
    next_records(&mut consumer).await;
    let started = Instant::now();
    let commits: Vec<_> = (0..1_000).map(|_| consumer.commit()).collect();
    soon("a close", consumer.close()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3), "not 20 s");
    for commit in commits {
        let offsets = commit.await.unwrap();
        assert_eq!(offsets[&TopicPartition::new("t", 0)].offset, 10);
    }
}

#[tokio::test]
async fn everything_read_is_told_once() {
    let (_broker, address) = broker(&[("t", 3)]).await;
    fill(&address, "t", 1, 0..50).await;
    let mut consumer = builder(&address).build().await.unwrap();
    let mut count = 0;
    loop {
        match soon("the end", consumer.next()).await {
            Event::Records(records) => count += records.len(),
            Event::AtEnd => break,
            _ => {}
        }
    }
    assert_eq!(count, 50);
    assert!(consumer.at_end());
    soon("a close", consumer.close()).await.unwrap();
}

#[tokio::test]
async fn paused_partitions_deliver_nothing() {
    let (_broker, address) = broker(&[("t", 1)]).await;
    fill(&address, "t", 0, 0..5).await;
    let mut consumer = builder(&address).build().await.unwrap();
    assert_eq!(next_records(&mut consumer).await.len(), 5);
    consumer.pause(None);
    fill(&address, "t", 0, 5..10).await;
    let quiet = tokio::time::timeout(Duration::from_millis(300), next_records(&mut consumer)).await;
    assert!(quiet.is_err(), "paused");
    consumer.resume(None);
    assert_eq!(next_records(&mut consumer).await.last_offset(), 9);
    soon("a close", consumer.close()).await.unwrap();
}
