"""Three brokers, the coordinator's is killed under a kohort group: it finds the new one, goes on, and misses nothing."""

import time

from members import Feeder, Group
from raw import Cluster

PARTITIONS = 12


def play(stage):
    stage.need("member:confluent")
    kafka = stage.apache(brokers=3, **{"group.initial.rebalance.delay.ms": 500})
    cluster = Cluster(kafka.bootstrap)
    cluster.create("watched", PARTITIONS, 3)
    group = Group(stage, kafka.bootstrap, "watched", PARTITIONS, "survivors")
    feeder = Feeder(stage, kafka.bootstrap, "watched", PARTITIONS)
    for name in ("a", "b", "c"):
        group.start("kohort", name)
    group.settle()
    before = {p: set(o) for p, o in group.owners.items()}
    node, address = cluster.coordinator("survivors")
    stage.say(f"a group of three; its coordinator is broker {node} at {address}")
    group.pump(3)

    kafka.kill(node)
    killed = time.monotonic()
    group.pump(1)
    seen = {p: len(group.seen[p]) for p in range(PARTITIONS)}
    group.until(lambda: all(len(group.seen[p]) > seen[p] + 20 for p in range(PARTITIONS)), 60, "records of every partition after the kill")
    stage.say(f"records of every partition arrive {time.monotonic() - killed:.1f} s after the kill (other brokers lead those that the killed one led)")
    other, address = cluster.coordinator("survivors")
    stage.check(other != node, f"the coordinator is now broker {other} at {address}")
    group.pump(8)  # more than two heartbeat intervals at the new coordinator
    stage.equal("nobody lost a partition: the session goes on at the new coordinator", before, {p: set(o) for p, o in group.owners.items()})

    group.start("kohort", "d")
    group.settle()
    stage.say("a fourth member has joined at the new coordinator")
    group.close("a", feeder)
    group.settle()
    stage.say("one of the first three has left")
    kafka.restart(node)
    group.pump(5)
    group.settle()
    stage.say(f"broker {node} is back")
    group.judge(feeder, "three brokers, one killed")
