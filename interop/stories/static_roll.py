"""A rolling restart of ten static members, the leader among them, costs no rebalance: with kohort members, and with Java's."""

from members import Feeder, Group
from raw import Cluster

PARTITIONS, MEMBERS = 20, 10


def play(stage):
    stage.need("member:java", "apache")
    broker = stage.kohort_broker(**{"group.initial.rebalance.delay.ms": 1000})
    roll(stage, broker, "kohort")
    roll(stage, broker, "java", size=4)  # a JVM each


def roll(stage, broker, client, size=MEMBERS):
    topic = f"rolled-{client}"
    Cluster(broker.bootstrap).create(topic, PARTITIONS)
    group = Group(stage, broker.bootstrap, topic, PARTITIONS, f"static-{client}")
    feeder = Feeder(stage, broker.bootstrap, topic, PARTITIONS)
    for i in range(size):
        group.start(client, f"m{i}-0", "--instance-id", f"i{i}")
    group.settle(90)
    before = rounds(stage, broker, group.group)
    for i in range(size):
        group.close(f"m{i}-0", feeder)
        group.until(lambda: f"m{i}-0" in group.closed, 20, f"m{i}-0 to end")
        group.start(client, f"m{i}-1", "--instance-id", f"i{i}")
        group.settle(60, quiet=0.3)
    stage.equal(f"{size} static {client} members restarted, one after the other: rebalances", 0, rounds(stage, broker, group.group) - before)
    group.judge(feeder, f"static {client} members")
    for name in list(group.members):
        group.close(name)


def rounds(stage, broker, group):
    """How many rebalances the broker has published for the group."""
    said = stage.run([stage.kohort, "explain", group, "--bootstrap", broker.bootstrap, "--format", "json"]).decode()
    return len(said.splitlines()) - 1  # the last line is the sum
