"""What goes in comes out: checksums of `kohort produce < file` and `kohort consume … | sort`, on every broker, before and after SIGKILL."""

import random

from raw import Cluster

LINES, PARTITIONS = 20_000, 6


def play(stage):
    path, expected = text(stage)
    broker = stage.kohort_broker()
    there_and_back(stage, "kohort broker in memory", broker, path, expected)
    broker.end()
    sigkill(stage, path, expected)
    for where, version, brokers in (("Apache Kafka 4.3.1", "4.3.1", 1), ("Apache Kafka 3.9.1", "3.9.1", 1), ("three brokers of Apache Kafka 4.3.1", "4.3.1", 3)):
        broker = stage.apache(version, brokers)
        there_and_back(stage, where, broker, path, expected, copies=min(brokers, 3))
        broker.end()


def text(stage):
    """A file of lines that are awkward: empty, equal, long, not ASCII, with spaces at their ends, and bytes that are no UTF-8."""
    dice, words = random.Random(423), "Lorem ipsum dolor sit amet, consectetur adipiscing elit – größer ßtraße 集団 再配分 \t \\n \x00".split(" ")
    lines = [b"", b"", b" ", b"\xff\xfe broken", b"trailing  ", b"\r", b"x" * 100_000]
    while len(lines) < LINES:
        lines.append(f"{len(lines)} {' '.join(dice.choices(words, k=dice.randrange(40)))}".encode())
    dice.shuffle(lines)
    path = stage.folder / "lines.txt"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path, stage.shell(f"sort {path} | sha256sum")


def produce(stage, where, broker, path):
    stage.shell(f"$kohort produce --bootstrap {broker.bootstrap} --topic lines < {path} > {stage.folder}/said 2>&1 || {{ cat {stage.folder}/said >&2; exit 1; }}")
    said = (stage.folder / "said").read_text(errors="replace")
    stage.equal(f"{where}: every line is in the log once", LINES, sum(Cluster(broker.bootstrap).ends("lines").values()))
    stage.check(str(LINES) in said.replace(",", "").replace("_", ""), f"{where}: produce says how many were acknowledged", said)


def consume(stage, broker, group, then):
    return stage.shell(f"$kohort consume --bootstrap {broker.bootstrap} --topic lines --group {group} --from beginning --at-end 2> {stage.folder}/{group}.err {then} "
                       f"|| {{ tail -c 2000 {stage.folder}/{group}.err >&2; exit 1; }}")


def there_and_back(stage, where, broker, path, expected, copies=1):
    Cluster(broker.bootstrap).create("lines", PARTITIONS, copies)
    produce(stage, where, broker, path)
    stage.equal(f"{where}: the sum of what is consumed is the sum of the file", expected, consume(stage, broker, "first", "| sort | sha256sum"))
    stage.equal(f"{where}: the same group again gets nothing, it has committed", "0", consume(stage, broker, "first", "| wc -l").strip())


def sigkill(stage, path, expected):
    broker, where = stage.kohort_broker(data=True), "kohort broker --data"
    there_and_back(stage, where, broker, path, expected)
    broker.kill()
    broker.start()
    where += " after SIGKILL"
    stage.equal(f"{where}: every line is still there", LINES, sum(Cluster(broker.bootstrap).ends("lines").values()))
    stage.equal(f"{where}: the old group's offsets are, too", "0", consume(stage, broker, "first", "| wc -l").strip())
    stage.equal(f"{where}: a new group gets the sum of the file", expected, consume(stage, broker, "second", "| sort | sha256sum"))
    broker.kill()
    broker.start()
    stage.equal(f"{where} of a broker that had started from its data: the same sum", expected, consume(stage, broker, "third", "| sort | sha256sum"))
    broker.end()
