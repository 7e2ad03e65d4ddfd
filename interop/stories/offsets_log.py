"""`__consumer_offsets`, both ways: Kafka's own formatters read what kohort broker wrote, and kohort's coordinator reads what Apache Kafka wrote."""

import json
import pathlib
import re

from members import Feeder, Group
from raw import Cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPIC, PARTITIONS = "kept", 6


def play(stage):
    stage.need("member:java", "member:confluent", "apache")
    ours(stage, stage.kohort_broker(**{"group.initial.rebalance.delay.ms": 500}))
    theirs(stage, stage.apache(**{"offsets.topic.num.partitions": 3}))


def live(stage, broker):
    """A group of a Java and a librdkafka member that has read and committed."""
    Cluster(broker.bootstrap).create(TOPIC, PARTITIONS)
    group = Group(stage, broker.bootstrap, TOPIC, PARTITIONS, "keepers")
    feeder = Feeder(stage, broker.bootstrap, TOPIC, PARTITIONS)
    group.start("java", "j")
    group.start("confluent", "c")
    group.settle()
    group.pump(2)
    group.all_seen(feeder.stop())
    group.pump(7)  # more than the clients' auto.commit.interval.ms
    return group


def committed(stage, broker):
    """Partition → (offset, member id), and member id → (client id, number of partitions), as ConsumerGroupCommand says."""
    tool = lambda *more: stage.tool("consumer.group.ConsumerGroupCommand", "--bootstrap-server", broker.bootstrap, "--describe", "--group", "keepers", *more)
    offsets = {int(p): (int(o), m) for p, o, m in re.findall(rf"^keepers\s+{TOPIC}\s+(\d+)\s+(\d+)\s+\d+\s+\d+\s+(\S+)", tool(), re.M)}
    members = {m: (c, int(n)) for m, c, n in re.findall(r"^keepers\s+(\S+)\s+\S+\s+(\S+)\s+(\d+)\s*$", tool("--members"), re.M)}
    return offsets, members


def formatted(stage, broker, name):
    said = stage.tool("consumer.ConsoleConsumer", "--bootstrap-server", broker.bootstrap, "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000",
                      "--formatter", f"org.apache.kafka.tools.consumer.{name}")
    found, at = [], 0
    while at < len(said):  # one object after the other, with nothing between them
        one, at = json.JSONDecoder().raw_decode(said, at)
        found.append(one)
    return found


def ours(stage, broker):
    group = live(stage, broker)
    offsets, members = committed(stage, broker)
    stage.equal("ConsumerGroupCommand: every partition has an offset", PARTITIONS, len(offsets))
    for name in list(group.members):
        group.close(name)
    group.until(lambda: {"j", "c"} <= group.closed, 20, "both members to end")  # or the log would never be at its end
    last = {}
    for line in formatted(stage, broker, "OffsetsMessageFormatter"):
        key = line["key"]["data"]
        if key["group"] == "keepers":
            last[key["partition"]] = line["value"]["data"]["offset"]
    stage.equal("OffsetsMessageFormatter: the last offset of each partition", {p: o for p, (o, _) in offsets.items()}, last)
    groups = [line for line in formatted(stage, broker, "GroupMetadataMessageFormatter") if line["key"]["data"]["group"] == "keepers"]
    value = next(line["value"]["data"] for line in groups if line.get("value") and len(line["value"]["data"]["members"]) == 2)
    stage.equal("GroupMetadataMessageFormatter: members and protocol", (sorted(members), "cooperative-sticky"), (sorted(m["memberId"] for m in value["members"]), value["protocol"]))


def theirs(stage, broker):
    live(stage, broker)
    offsets, members = committed(stage, broker)
    cluster = Cluster(broker.bootstrap)
    lines = [f"{key.hex()} {value.hex() if value is not None else '-'}" for p in range(3) for key, value in cluster.records("__consumer_offsets", p)]
    said = stage.run(["cargo", "run", "-q", "--release", "--locked", "--manifest-path", ROOT / "Cargo.toml", "-p", "kohort-group", "--example", "describe_log"],
                     stdin="\n".join(lines).encode() + b"\n", seconds=400).decode()
    words = [line.split(" ") for line in said.splitlines()]
    stage.check(["group", "keepers", "Stable", "cooperative-sticky", "2"] in words, f"Apache Kafka's log of {len(lines)} records, replayed: the group is Stable with two members", said)
    stage.equal("replayed: offsets", {p: o for p, (o, _) in offsets.items()}, {int(w[3]): int(w[4]) for w in words if w[:2] == ["offset", "keepers"]})
    found = {w[2]: (w[3], len(w[5].split(","))) for w in words if w[:2] == ["member", "keepers"]}
    stage.equal("replayed: members, clients, numbers of partitions", members, found)
    owners = {int(p.rpartition("-")[2]): w[2] for w in words if w[:2] == ["member", "keepers"] for p in w[5].split(",")}
    stage.equal("replayed: who owns which partition", {p: m for p, (_, m) in offsets.items()}, owners)
