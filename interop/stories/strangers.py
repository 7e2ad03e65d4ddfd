"""Guests of a kohort group: a KIP-848 consumer that makes Apache Kafka take the group over and give it back, and a librdkafka member
that joins after the broker was restarted under the group (then a broker knows only the protocol that was in use)."""

from members import Feeder, Group
from raw import Cluster

PARTITIONS = 12


def play(stage):
    stage.need("member:java", "member:confluent")
    kafka = stage.apache()
    guest(stage, kafka)
    restarted(stage, "Apache Kafka 4.3.1", kafka, lambda: (kafka.kill(1), kafka.restart(1)))
    kafka.end()
    broker = stage.kohort_broker(data=True)
    restarted(stage, "kohort broker", broker, lambda: (broker.kill(), broker.start()))


def begin(stage, broker, topic):
    Cluster(broker.bootstrap).create(topic, PARTITIONS)
    group = Group(stage, broker.bootstrap, topic, PARTITIONS, f"{topic}-group")
    feeder = Feeder(stage, broker.bootstrap, topic, PARTITIONS)
    for name in ("kohort-1", "kohort-2"):
        group.start("kohort", name)
    group.settle()
    return group, feeder


def guest(stage, kafka):
    group, feeder = begin(stage, kafka, "guests")
    group.start("java", "java-848", assignor="consumer")
    group.settle(90)
    stage.say("a member with group.protocol=consumer has joined; all have fair shares")
    group.start("kohort", "kohort-3")
    group.settle(90)
    stage.say("a kohort member has joined the group that the broker has taken over")
    group.close("java-848", feeder)
    group.settle(90)
    group.close("kohort-1", feeder)
    group.settle(90)
    stage.say("the guest has left, and so has a kohort member")
    group.judge(feeder, "with a KIP-848 guest")


def restarted(stage, where, broker, restart):
    group, feeder = begin(stage, broker, "restarted")
    group.all_seen(feeder.pause())
    restart()
    feeder.resume()
    group.pump(5)
    group.start("confluent", "confluent-1")
    group.settle(90)
    stage.say(f"{where}: a librdkafka member has joined after the restart")
    group.close("kohort-1", feeder)
    group.settle(90)
    group.judge(feeder, f"{where}, restarted")
