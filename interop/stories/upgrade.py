"""Two rolling bounces from range to cooperative-sticky, Java and kohort members in one group, and back down; on Apache Kafka and on kohort broker."""

from members import Feeder, Group
from raw import Cluster

PARTITIONS = 12
STEPS = ("range", "cooperative-sticky,range", "cooperative-sticky", "cooperative-sticky,range", "range")
MEMBERS = (("bounced", "java-1"), ("kohort", "kohort-1"), ("bounced", "java-2"), ("kohort", "kohort-2"))


def play(stage):
    for where, broker in (("Apache Kafka 4.3.1", stage.apache()), ("kohort broker", stage.kohort_broker())):
        bounce(stage, where, broker)
        broker.end()


def bounce(stage, where, broker):
    Cluster(broker.bootstrap).create("upgraded", PARTITIONS)
    group = Group(stage, broker.bootstrap, "upgraded", PARTITIONS, "upgraded-group")
    feeder = Feeder(stage, broker.bootstrap, "upgraded", PARTITIONS)
    names = {}
    for client, name in MEMBERS:
        names[name] = f"{name}-0"
        group.start(client, names[name], assignor=STEPS[0])
    group.settle()
    for step, assignor in enumerate(STEPS[1:], 1):
        for client, name in MEMBERS:
            group.close(names[name], feeder)
            names[name] = f"{name}-{step}"
            group.start(client, names[name], assignor=assignor)
            group.settle(quiet=0.5)
        stage.say(f"{where}: all four list {assignor}")
    verdict = group.judge(feeder, where)
    stage.equal(f"{where}: no member was refused", [], verdict["errors"])
