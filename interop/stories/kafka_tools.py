"""Apache Kafka's own command line tools 4.3.1 on kohort broker: topics, console producer and consumer, groups."""

import re
import subprocess

from raw import Cluster
from stage import JARS


def play(stage):
    stage.need("apache")
    broker = stage.kohort_broker(**{"group.initial.rebalance.delay.ms": 500})
    server = ["--bootstrap-server", broker.bootstrap]
    topics(stage, server)
    console(stage, server)
    groups(stage, broker, server)


def topics(stage, server):
    tool = lambda *args: stage.tool("TopicCommand", *server, *args)
    stage.check("Created topic orders" in tool("--create", "--topic", "orders", "--partitions", "4", "--replication-factor", "1"), "TopicCommand --create")
    tool("--create", "--topic", "doomed", "--partitions", "1")
    listed = tool("--list").split()
    stage.check({"orders", "doomed"} <= set(listed), "TopicCommand --list has both", listed)
    said = tool("--describe", "--topic", "orders")
    stage.check("PartitionCount: 4" in said and len(re.findall(r"Partition: \d+\s+Leader: \d+", said)) == 4, "TopicCommand --describe: 4 partitions, each with a leader", said)
    tool("--alter", "--topic", "orders", "--partitions", "6")
    stage.check("PartitionCount: 6" in tool("--describe", "--topic", "orders"), "TopicCommand --alter: 6 partitions")
    tool("--delete", "--topic", "doomed")
    listed = tool("--list").split()
    stage.check("doomed" not in listed and "orders" in listed, "TopicCommand --delete", listed)
    stage.run(java("TopicCommand", *server, "--create", "--topic", "orders"), status=1)
    stage.say("ok: TopicCommand --create of a topic that exists fails")


def java(name, *args):
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{JARS / '4.3.1'}/*", f"org.apache.kafka.tools.{name}", *args]


def console(stage, server):
    lines = [f"order {i}" for i in range(1000)]
    stage.tool("ConsoleProducer", *server, "--topic", "orders", stdin="\n".join(lines).encode() + b"\n")  # idempotent, as is the default
    got = stage.tool("consumer.ConsoleConsumer", *server, "--topic", "orders", "--group", "clerks", "--from-beginning", "--max-messages", "1000", "--timeout-ms", "20000")
    stage.equal("ConsoleProducer and ConsoleConsumer --group: 1000 records", sorted(lines), sorted(got.splitlines()))
    stage.tool("ConsoleProducer", *server, "--topic", "orders", "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
               stdin=b"source:web\tk1\tlast order\n")
    got = stage.tool("consumer.ConsoleConsumer", *server, "--topic", "orders", "--group", "clerks", "--max-messages", "1", "--timeout-ms", "20000",
                     "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true")
    stage.equal("the group goes on with the next record; key and header are intact", "source:web\tk1\tlast order", got.strip())


def groups(stage, broker, server):
    cluster, tool = Cluster(broker.bootstrap), lambda *args: stage.tool("consumer.group.ConsumerGroupCommand", *server, *args)
    end = sum(cluster.ends("orders").values())
    live = stage.spawn(java("consumer.ConsoleConsumer", *server, "--topic", "orders", "--group", "living"), "living", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    stage.until(lambda: "Stable" in tool("--describe", "--group", "living", "--state"), 40, "a Stable group")
    listed = tool("--list").split()
    stage.check({"clerks", "living"} <= set(listed), "ConsumerGroupCommand --list", listed)
    said = tool("--list", "--state")
    stage.check(re.search(r"living\s+(Classic\s+)?Stable", said) and re.search(r"clerks\s+(Classic\s+)?Empty", said), "ConsumerGroupCommand --list --state", said)
    said = tool("--describe", "--group", "clerks")
    rows = re.findall(r"^clerks\s+orders\s+(\d)\s+(\S+)\s+(\d+)\s+(\S+)", said, re.M)
    stage.equal("ConsumerGroupCommand --describe: nothing is left to read", (end, "0"), (sum(int(r[2]) for r in rows), max(r[3] for r in rows if r[1] != "-")))
    said = tool("--describe", "--group", "living", "--state")
    stage.check(re.search(r"living\s.*\srange\s+Stable\s+(-\s+)?(-\s+)?1\s*$", said, re.M), "ConsumerGroupCommand --describe --state: range, Stable, one member", said)
    said = tool("--describe", "--group", "living", "--members", "--verbose")
    stage.check(re.search(r"living\s+console-consumer-\S+.*\s6\s.*orders[:(]", said), "ConsumerGroupCommand --describe --members --verbose: its six partitions", said)
    said = tool("--delete", "--group", "living")
    stage.check("GroupNotEmptyException" in said, "ConsumerGroupCommand --delete of a living group is refused", said)
    live.terminate()
    live.wait(20)
    stage.until(lambda: "Empty" in tool("--describe", "--group", "living", "--state"), 20, "an Empty group after its member has left")
    stage.say("ok: the member has left the group")
    said = tool("--reset-offsets", "--group", "clerks", "--topic", "orders", "--to-earliest", "--execute")
    stage.check(len(re.findall(r"^clerks\s+orders\s+\d\s+0", said, re.M)) == 6, "ConsumerGroupCommand --reset-offsets --to-earliest", said)
    said = tool("--delete-offsets", "--group", "clerks", "--topic", "orders")
    stage.check(said.count("Successful") >= 6, "ConsumerGroupCommand --delete-offsets", said)
    said = tool("--delete", "--group", "clerks", "--group", "living")
    stage.check("successful" in said.lower() and not {"clerks", "living"} & set(tool("--list").split()), "ConsumerGroupCommand --delete", said)
