"""Seven clients with their default settings on kohort broker, each in a group of its own: three join, one leaves, nothing is missed."""

from members import Feeder, Group
from raw import Cluster

PARTITIONS = 6
# what each can do best; kafkajs has protocol names of its own, so its group is kafkajs's alone
CLIENTS = (("java", "range"), ("java", "cooperative-sticky"), ("confluent", "range"), ("franz-go", "cooperative-sticky"), ("kafka-python", "cooperative-sticky"),
           ("aiokafka", "range"), ("kafkajs", "roundrobin"), ("sarama", "sticky"))


def play(stage):
    stage.need("npm", "go", *[f"member:{client}" for client, _ in CLIENTS])
    broker = stage.kohort_broker()
    for client, assignor in CLIENTS:
        topic = f"of-{client}-{assignor}"
        Cluster(broker.bootstrap).create(topic, PARTITIONS)
        group = Group(stage, broker.bootstrap, topic, PARTITIONS, topic, assignor)
        feeder = Feeder(stage, broker.bootstrap, topic, PARTITIONS)
        for n in (1, 2):
            group.start(client, f"{topic}-{n}")
        group.settle()
        group.start(client, f"{topic}-3")
        group.settle()
        group.close(f"{topic}-1", feeder)
        group.settle()
        group.judge(feeder, f"{client}, {assignor}")
        for name in list(group.members):
            group.close(name)
        group.until(lambda: len(group.closed) == 3, 20, "all to have closed")
