"""kcat (librdkafka in C) on kohort broker: produce, consume in a group, four codecs, headers, keys, tombstones, timestamps."""

import json

from raw import CODECS, Cluster


def play(stage):
    stage.need("kcat")
    broker = stage.kohort_broker()
    cluster = Cluster(broker.bootstrap)
    kcat = ["kcat", "-b", broker.bootstrap, "-q"]
    lines = [f"key-{i % 97}\tvalue {i} {'x' * (i % 300)}" for i in range(4000)]

    for codec in CODECS:
        topic = f"codec-{codec}"
        cluster.create(topic, 3)
        stage.run([*kcat, "-P", "-t", topic, "-K", "\t", "-z", codec, "-X", "linger.ms=50"], stdin="\n".join(lines).encode() + b"\n")
        got = stage.run([*kcat, "-C", "-t", topic, "-e", "-o", "beginning", "-f", "%k\t%s\n"]).decode().splitlines()
        stage.equal(f"{codec}: {len(lines)} records come back as they went", sorted(lines), sorted(got))
        kept = {c for p in range(3) for _, c, _ in cluster.batches(topic, p)}
        stage.equal(f"{codec}: the batches are kept in the codec in which they came", {codec}, kept)
        got = stage.run([*kcat, "-G", f"group-{codec}", "-X", "auto.offset.reset=earliest", "-c", str(len(lines)), "-f", "%k\t%s\n", topic]).decode().splitlines()
        stage.equal(f"{codec}: and in a group, too", sorted(lines), sorted(got))

    topic = "shapes"
    cluster.create(topic, 1)
    stage.run([*kcat, "-P", "-t", topic, "-H", "trace=4711", "-H", "empty=", "-H", "trace=4712", "-K", ":"], stdin=b"a:one\nb:two\n")
    stage.run([*kcat, "-P", "-t", topic, "-K", ":", "-Z"], stdin=b"a:\n")
    got = [json.loads(line) for line in stage.run([*kcat, "-C", "-t", topic, "-e", "-o", "beginning", "-J"]).splitlines()]
    stage.equal("keys, values and the tombstone are intact", [("a", "one"), ("b", "two"), ("a", None)], [(r["key"], r["payload"]) for r in got])
    stage.equal("headers are intact, in order, with the repeated name", ["trace", "4711", "empty", "", "trace", "4712"], got[0]["headers"])
    stage.check(all(r["ts"] > 1_600_000_000_000 and r["tstype"] == "create" for r in got), "the timestamps are the producer's", [r["ts"] for r in got])
    middle = got[1]["ts"]
    stage.equal("a query by time finds the first record of that time", min(r["offset"] for r in got if r["ts"] >= middle), cluster.end(topic, 0, middle))

    # committed offsets: the second run of a group goes on where the first has ended
    cluster.create("resumed", 1)
    stage.run([*kcat, "-P", "-t", "resumed"], stdin=b"".join(b"%d\n" % i for i in range(10)))
    group = [*kcat, "-G", "resumes", "-X", "auto.offset.reset=earliest", "-f", "%s\n"]
    first = stage.run([*group, "-c", "4", "resumed"]).split()
    second = stage.run([*group, "-c", "6", "resumed"]).split()
    stage.equal("a group goes on where it has stopped", [b"%d" % i for i in range(10)], first + second)
