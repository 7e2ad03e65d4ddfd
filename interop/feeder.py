"""Writes records steadily to all partitions of a topic, with librdkafka, idempotent, acks=all. Run by members.Feeder in the Python of the peers' venv.
Their values are `partition:n`, n counting from 0 in each partition.

stdin: `pause` (ends when all that was sent is acknowledged), `resume`, `stop`. stdout, one JSON object a line: {"ready": true}; after a
pause or stop {"acknowledged": {partition: records}, "failed": [texts]}.
"""

import argparse
import json
import os
import select
import time

from confluent_kafka import Producer

p = argparse.ArgumentParser()
p.add_argument("--bootstrap", required=True)
p.add_argument("--topic", required=True)
p.add_argument("--partitions", type=int, required=True)
p.add_argument("--interval-ms", type=float, default=20)
a = p.parse_args()

counts, failed = {}, []


def delivered(error, message):
    if error:
        failed.append(str(error))
    else:
        counts[message.partition()] = counts.get(message.partition(), 0) + 1


def say(value):
    print(json.dumps(value), flush=True)


def report():
    left = producer.flush(60)
    say({"acknowledged": counts, "failed": failed + [f"{left} records without an answer after 60 s"] * bool(left)})


producer = Producer({"bootstrap.servers": a.bootstrap, "linger.ms": 5, "enable.idempotence": True, "acks": "all"})
say({"ready": True})
running, due, n, words = True, time.monotonic(), 0, []
while True:
    # read without Python's buffer: a second word in it would not wake select
    if words or select.select([0], [], [], max(0.0, due - time.monotonic()) if running else None)[0]:
        words = words or os.read(0, 4096).decode().split() or ["stop"]
        word = words.pop(0)
        if word == "resume":
            running, due = True, time.monotonic()
        else:
            running = False
            report()
            if word != "pause":
                break
        continue
    for partition in range(a.partitions):
        producer.produce(a.topic, b"%d:%d" % (partition, n), partition=partition, on_delivery=delivered)
    producer.poll(0)
    n += 1
    due += a.interval_ms / 1000
