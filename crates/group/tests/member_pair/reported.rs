//! Faults that were reported in public about whole groups, with real members and the real coordinator. Each names its report.

use crate::room::Room;
use kohort_group::assign::by_name;
use kohort_group::coordinator;
use kohort_group::member::{CommitId, Input, MemberConfig, Offset, StateName, Subscription};
use kohort_group::partitions::{Topic, TopicPartition};
use kohort_group::topics::{TopicImage, TopicInfo};
use kohort_wire::ApiKey;

fn with(names: &[&str]) -> impl Fn(&mut MemberConfig) + Copy + use<> {
    let cooperative = names.contains(&"cooperative-sticky");
    let range = names.contains(&"range");
    let sticky = names.contains(&"sticky");
    move |config: &mut MemberConfig| {
        let listed = [
            (cooperative, "cooperative-sticky"),
            (sticky, "sticky"),
            (range, "range"),
        ];
        let listed = listed.into_iter().filter(|(listed, _)| *listed);
        config.assignors = listed.map(|(_, name)| by_name(name).unwrap()).collect();
    }
}

fn all_seen(room: &Room, who: usize) -> Vec<&str> {
    let seen = room.people[who].seen.iter();
    seen.map(|(_, text)| text.as_str()).collect()
}

/// confluent-kafka-go#622, librdkafka#3306: ten partitions; a third member comes and takes three, none moves between the two that were
/// there; it goes, and nothing is revoked from the two that stay.
#[test]
fn who_stays_swaps_nothing() {
    let mut room = Room::new(&[("t", 10)]);
    let a = room.enter(|_| {});
    room.settle(1_000);
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [5, 5]);
    room.pass(5_000);
    let before = [a, b].map(|who| room.people[who].owned.clone());
    let c = room.enter(|_| {});
    room.until(5_000, "shared", |room| {
        room.settled() && room.people[c].owned.len() == 3
    });
    room.pass(5_000);
    for (who, before) in [a, b].into_iter().zip(&before) {
        let gained = room.people[who].owned.minus(before);
        assert!(gained.is_empty(), "{gained} came from the other");
    }
    let told = [a, b].map(|who| room.story(who).len());
    let before = [a, b].map(|who| room.people[who].owned.clone());
    room.tell(c, Input::Close { drain: true });
    room.until(10_000, "shared", |room| {
        room.people[a].owned.len() + room.people[b].owned.len() == 10
    });
    room.pass(5_000);
    for (at, who) in [a, b].into_iter().enumerate() {
        assert_eq!(room.people[who].owned.len(), 5);
        assert!(room.people[who].owned.is_superset_of(&before[at]));
        let news = &room.story(who)[told[at]..];
        assert!(
            news.iter().all(|text| text.starts_with("assign")),
            "{news:?}"
        );
    }
}

/// sarama#1493, franz-go v1.10.0, kafka-python#2305: sticky alone: six partitions of one member, and when another comes it has three of
/// its own still, and those that it gave away are the other's.
#[test]
fn sticky_members_keep_their_own() {
    let mut room = Room::new(&[("t", 6)]);
    let a = room.enter(with(&["sticky"]));
    room.settle(1_000);
    let b = room.enter(with(&["sticky"]));
    room.until(5_000, "shared", |room| room.sizes() == [3, 3]);
    room.pass(5_000);
    let mine = room.people[a].owned.clone();
    let c = room.enter(with(&["sticky"]));
    room.until(5_000, "shared", |room| room.sizes() == [2, 2, 2]);
    assert!(mine.is_superset_of(&room.people[a].owned));
    let theirs = room.people[b].owned.clone();
    room.tell(c, Input::Close { drain: true });
    room.until(10_000, "shared", |room| {
        room.people[a].owned.len() == 3 && room.people[b].owned.len() == 3
    });
    assert!(room.people[b].owned.is_superset_of(&theirs));
}

/// KAFKA-14382: three members; one that must let go is done at once, another hears two seconds late. A few generations, then rest.
#[test]
fn a_member_that_is_two_seconds_late_unsettles_nobody_for_long() {
    let mut room = Room::new(&[("t", 12)]);
    room.enter(|_| {});
    room.enter(|_| {});
    let slow = room.enter(|_| {});
    room.until(10_000, "shared", |room| room.sizes() == [4, 4, 4]);
    room.pass(5_000);
    room.people[slow].late = Some((ApiKey::SyncGroup, 2_000));
    let before = room.generations;
    room.enter(|_| {});
    room.until(30_000, "shared", |room| room.sizes() == [3, 3, 3, 3]);
    room.pass(30_000);
    let rounds = room.generations - before;
    assert!(rounds <= 6, "{rounds} generations");
    room.pass(60_000);
    assert_eq!(room.generations - before, rounds);
}

/// KAFKA-8179, librdkafka#3163: two partitions, one member, then two: what each is told, to the letter. Revoked never comes for nothing,
/// assigned comes once for each round that has ended, with what is new.
#[test]
fn a_cooperative_hand_over_to_the_letter() {
    for explicit in [true, false] {
        let mut room = Room::new(&[("t", 2)]);
        let change = |config: &mut MemberConfig| config.explicit_revocation = explicit;
        let a = room.enter(change);
        room.settle(1_000);
        let b = room.enter(change);
        room.until(10_000, "shared", |room| room.sizes() == [1, 1]);
        room.pass(60_000);
        let gone = room.people[b].owned.clone();
        let told_a = [
            "assign t-0 t-1".to_owned(),
            "assign nothing".to_owned(),
            format!("revoke {gone}"),
            format!("revoked {gone}"),
            "assign nothing".to_owned(),
        ];
        assert_eq!(all_seen(&room, a), told_a);
        let told_b = ["assign nothing".to_owned(), format!("assign {gone}")];
        assert_eq!(all_seen(&room, b), told_b);
    }
}

/// franz-go#686, franz-go#720: the last member that lists range alone goes, the other one turns cooperative and has all six.
#[test]
fn the_last_eager_member_goes() {
    let mut room = Room::new(&[("t", 6)]);
    let one = room.enter(with(&["range"]));
    room.enter(with(&["range"]));
    room.until(10_000, "shared", |room| room.sizes() == [3, 3]);
    room.tell(one, Input::Close { drain: true });
    room.pass(1_000);
    let first = room.enter(with(&["cooperative-sticky", "range"]));
    room.until(10_000, "shared", |room| {
        room.settled() && room.people[first].owned.len() == 3
    });
    room.tell(1, Input::Close { drain: true });
    room.until(10_000, "all six", |room| {
        room.people[first].owned.len() == 6
    });
    room.pass(5_000);
    for partition in 0..6 {
        let started = TopicPartition::new("t", partition);
        assert!(room.people[first].starts.contains_key(&started));
    }
    let second = room.enter(with(&["cooperative-sticky", "range"]));
    room.until(10_000, "shared", |room| {
        room.settled() && room.people[second].owned.len() == 3
    });
    let mut members = [first, second];
    for member in &mut members {
        room.tell(*member, Input::Close { drain: true });
        room.pass(1_000);
        *member = room.enter(with(&["cooperative-sticky"]));
        let new = *member;
        room.until(15_000, "shared", |room| {
            room.settled() && room.people[new].owned.len() == 3
        });
    }
}

/// KAFKA-12477: a cooperative group of two; who lists range alone is turned away, loudly, and the two do not notice.
#[test]
fn an_eager_member_is_turned_away_from_a_cooperative_group() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    let (generations, told) = (
        room.generations,
        [a, b].map(|who| all_seen(&room, who).len()),
    );
    let stranger = room.enter(with(&["range"]));
    room.pass(60_000);
    assert_eq!(room.people[stranger].member.state(), StateName::Fatal);
    let last = all_seen(&room, stranger).pop().unwrap();
    assert!(last.contains("INCONSISTENT_GROUP_PROTOCOL"), "{last}");
    assert_eq!(room.generations, generations);
    assert_eq!([a, b].map(|who| all_seen(&room, who).len()), told);
}

/// KAFKA-9246: commits succeed while a rebalance is prepared, and hide it from nobody: the member beats all the same, and joins within
/// one interval.
#[test]
fn commits_do_not_hide_a_rebalance() {
    let mut room = Room::new(&[("t", 2)]);
    let quick = |config: &mut MemberConfig| config.heartbeat_interval_ms = 1_000;
    let a = room.enter(quick);
    room.settle(1_000);
    room.pass(10_000);
    let joins = room.people[a].sent[&ApiKey::JoinGroup];
    let b = room.enter(quick);
    let mut id = 0;
    let begun = room.now;
    while room.people[a].sent[&ApiKey::JoinGroup] == joins {
        assert!(room.now.since(begun) <= 1_050, "not within an interval");
        id += 1;
        let (topic, partition) = {
            let (topic, partition) = room.people[a].owned.iter().next().unwrap();
            (topic.clone(), partition)
        };
        let offset = Offset {
            offset: id as i64,
            leader_epoch: -1,
            metadata: String::new(),
        };
        let commit = Input::Commit {
            id: CommitId(id),
            offsets: Some([(TopicPartition { topic, partition }, offset)].into()),
            retry: false,
        };
        room.tell(a, commit);
        room.pass(50);
    }
    room.until(5_000, "shared", |room| room.people[b].owned.len() == 1);
    assert!(room.people[a].commits.values().all(Result::is_ok));
}

/// kafka-go#646, kafka-go#1134, kafka-go#1262, sarama-cluster#235, kafkajs#923: one partition becomes three; the leader joins, the next
/// generation has all three, and the new ones start.
#[test]
fn a_topic_that_grows_is_shared_out_in_the_next_generation() {
    let mut room = Room::new(&[("t", 1)]);
    room.enter(|_| {});
    room.enter(|_| {});
    room.until(5_000, "settled", Room::settled);
    room.pass(5_000);
    let before = room.generations;
    room.change_topics("t", 3);
    room.until(5_000, "shared", Room::settled);
    room.pass(1_000);
    assert_eq!(room.generations, before + 1);
    for partition in 0..3 {
        let one = TopicPartition::new("t", partition);
        let started = |person: &crate::room::Person| person.starts.contains_key(&one);
        assert!(room.people.iter().any(started), "{one}");
    }
}

/// KAFKA-7126: ten members with a pattern, whose metadata is of different ages; a topic appears. All look at the beginning of the
/// rebalance that the first one asks for, so that there is one generation, or two.
#[test]
fn a_new_topic_is_one_rebalance_however_many_notice() {
    let mut room = Room::new(&[("a0", 10)]);
    for who in 0..10 {
        room.enter(|_| {});
        room.tell(
            who,
            Input::Subscribe(Subscription::Pattern("a.*".to_owned())),
        );
    }
    room.until(20_000, "settled", |room| {
        room.settled() && room.people.iter().all(|p| p.owned.len() == 1)
    });
    room.pass(10_000);
    let before = room.generations;
    room.topics.insert("a1", 10);
    let image: TopicImage = room
        .topics
        .iter()
        .map(|(name, count)| (Topic::from(*name), TopicInfo::with_partitions(*count)))
        .collect();
    room.ask(coordinator::Input::Topics(image.clone()));
    for who in [3, 7, 0, 9, 1, 2, 8, 4, 5, 6] {
        room.tell(who, Input::Topics(image.clone()));
        room.pass(700);
    }
    room.until(20_000, "settled", |room| {
        room.settled() && room.people.iter().all(|p| p.owned.len() == 2)
    });
    let rounds = room.generations - before;
    assert!(rounds <= 2, "{rounds} generations");
}

/// KAFKA-14196: what is consumed until the partitions are let go is committed before the join, however slow the answer; the next owner
/// starts there.
#[test]
fn an_eager_hand_over_repeats_nothing_however_slow_the_commit() {
    let mut room = Room::new(&[("t", 1)]);
    let auto = |config: &mut MemberConfig| {
        config.assignors = vec![by_name("range").unwrap()];
        config.auto_commit_interval_ms = Some(60_000);
    };
    let at = |offset: i64| Offset {
        offset,
        leader_epoch: -1,
        metadata: String::new(),
    };
    let one = TopicPartition::new("t", 0);
    let a = room.enter(auto);
    room.settle(1_000);
    room.pass(5_000);
    room.people[a].late = Some((ApiKey::OffsetCommit, 500));
    room.people[a].release_ms = 100;
    let b = room.enter(auto);
    // The application reads on until it has let go.
    let mut offset = 0;
    while room.people[a].owned.len() == 1 {
        offset += 1;
        room.tell(a, Input::Consumed(one.clone(), at(offset)));
        room.pass(10);
        assert!(offset < 1_000);
    }
    room.until(5_000, "shared again", |room| {
        room.people[a].owned.len() + room.people[b].owned.len() == 1
    });
    room.tell(a, Input::Close { drain: false });
    room.until(10_000, "the other has it", |room| {
        room.people[b].owned.len() == 1
    });
    room.pass(100);
    let start = room.people[b].starts[&one].unwrap();
    assert_eq!(start, offset);
}
