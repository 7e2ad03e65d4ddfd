"""Java, librdkafka and kohort in one cooperative-sticky group, joining and leaving, on Apache Kafka and on kohort broker.

Hand-overs are counted; at no moment may a partition have two owners, and no record may be missed.
"""

from members import Feeder, Group
from raw import Cluster

PARTITIONS = 12


def play(stage):
    stage.need("member:java", "member:confluent")
    for where, broker in (("Apache Kafka 4.3.1", stage.apache()), ("kohort broker", stage.kohort_broker())):
        mix(stage, where, broker)
        broker.end()


def mix(stage, where, broker):
    Cluster(broker.bootstrap).create("mixed", PARTITIONS)
    group = Group(stage, broker.bootstrap, "mixed", PARTITIONS, "mixed-group")
    feeder = Feeder(stage, broker.bootstrap, "mixed", PARTITIONS)
    for client in ("java", "confluent", "kohort"):  # each of the three may come to lead
        group.start(client, f"{client}-1")
    group.settle()
    stage.say(f"{where}: a group of three")
    for client in ("kohort", "confluent", "java"):
        group.start(client, f"{client}-2")
        group.settle()
        stage.say(f"{where}: {client}-2 has joined")
    for name in ("java-1", "kohort-1", "confluent-1"):
        group.close(name, feeder)
        group.settle()
        stage.say(f"{where}: {name} has left")
    group.start("kohort", "kohort-3")
    group.start("confluent", "confluent-3")
    group.settle()
    group.close("java-2", feeder)
    group.close("confluent-2", feeder)
    group.settle()
    stage.say(f"{where}: two joined and two left at about the same time")
    group.judge(feeder, where)
