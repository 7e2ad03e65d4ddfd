"""A retried batch is stored once: the same bytes of an idempotent producer sent twice, on Apache Kafka and on kohort broker.

Also over SIGKILL of `kohort broker --data`; a gap in the sequence and a wrong checksum are refused.
"""

import struct

from raw import Cluster, batch

OUT_OF_ORDER, CORRUPT = 45, 2


def play(stage):
    broker = stage.kohort_broker(data=True)
    sequences(stage, "kohort broker", Cluster(broker.bootstrap))
    restart(stage, broker)
    sequences(stage, "Apache Kafka 4.3.1", Cluster(stage.apache().bootstrap))


def sequences(stage, where, cluster):
    cluster.create("once", 1)
    producer = cluster.producer_id()
    first = batch([b"a", b"b", b"c"], producer, 0)
    stage.equal(f"{where}: the first batch is stored at offset 0", (0, 0), cluster.produce("once", 0, first))
    stage.equal(f"{where}: the same batch again has the answer of the first", (0, 0), cluster.produce("once", 0, first))
    stage.equal(f"{where}: three records are there, not six", 3, cluster.end("once", 0))
    stage.equal(f"{where}: the next batch follows", (0, 3), cluster.produce("once", 0, batch([b"d"], producer, 3)))
    stage.equal(f"{where}: a gap in the sequence is refused", OUT_OF_ORDER, cluster.produce("once", 0, batch([b"x"], producer, 9))[0])
    stage.equal(f"{where}: an older batch sent again is known, too", (0, 0), cluster.produce("once", 0, first))
    broken = bytearray(batch([b"e"], producer, 4))
    broken[-2] ^= 1
    stage.equal(f"{where}: a wrong checksum is refused", CORRUPT, cluster.produce("once", 0, bytes(broken))[0])
    other = cluster.producer_id()
    stage.check(other[0] != producer[0], f"{where}: another producer gets another id", other)
    stage.equal(f"{where}: and sequences of its own", (0, 4), cluster.produce("once", 0, batch([b"e"], other, 0)))
    stage.equal(f"{where}: five records in all", 5, cluster.end("once", 0))


def restart(stage, broker):
    cluster = Cluster(broker.bootstrap)
    cluster.create("kept", 1)
    producer = cluster.producer_id()
    last = batch([b"a", b"b"], producer, 0)
    stage.equal("kohort broker: stored before SIGKILL", (0, 0), cluster.produce("kept", 0, last))
    broker.kill()
    broker.start()
    stage.equal("kohort broker: sent again after SIGKILL, it has the answer of the first", (0, 0), cluster.produce("kept", 0, last))
    stage.equal("kohort broker: two records are there, not four", 2, cluster.end("kept", 0))
    stage.equal("kohort broker: the sequence goes on after SIGKILL", (0, 2), cluster.produce("kept", 0, batch([b"c"], producer, 2)))
    later = cluster.producer_id()
    stage.check(later[0] != producer[0], "kohort broker: no producer id is given out twice over SIGKILL", struct.pack(">q", later[0]).hex())
