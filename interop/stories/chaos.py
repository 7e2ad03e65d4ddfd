"""Chaos: brokers and members are killed, paused and restarted, at once, for a while; the oracle judges records, commits and owners.

The faults come from two threads, one for the three brokers (one of them is away at a time) and one for the members; what they do is
drawn from a seed. Members are processes of two kinds: those that tell events and commit after each batch, and those that print values
and commit by the timer. The verdict: every acknowledged record was delivered; in the log of `__consumer_offsets` no commit goes back,
and none that was acknowledged is missing; no partition was given to two members in one generation, nor taken from a member before it
let go, unless it was fenced.

$KOHORT_CHAOS_SECONDS (default 60) is how long faults strike, $KOHORT_CHAOS_SEED what is drawn.
"""

import collections
import json
import os
import random
import signal
import struct
import subprocess
import threading
import time

from members import Feeder
from raw import Cluster, Reader
from stage import Failed

TOPIC, PARTITIONS, BROKERS, EACH = "chaos", 12, 3, 3
SESSION_MS = 6000


def play(stage):
    stage.need("member:confluent")
    seconds, seed = float(os.environ.get("KOHORT_CHAOS_SECONDS", 60)), int(os.environ.get("KOHORT_CHAOS_SEED", 1))
    os.environ.setdefault("KAFKA_HEAP", "384m")
    kafka = stage.apache(brokers=BROKERS, **{"group.initial.rebalance.delay.ms": 300})
    cluster = Cluster(kafka.bootstrap)
    cluster.create(TOPIC, PARTITIONS, BROKERS)
    feeder = Feeder(stage, kafka.bootstrap, TOPIC, PARTITIONS, interval_ms=100)
    group = Group(stage, kafka.bootstrap)
    for _ in range(EACH):
        group.start("events"), group.start("values")
    group.until_all_has_come(feeder.pause(), 60)
    feeder.resume()

    strikes = collections.Counter()
    nemeses = [Nemesis(seconds, strikes, random.Random(seed), Brokers(kafka)), Nemesis(seconds, strikes, random.Random(seed + 1), group)]
    for nemesis in nemeses:
        nemesis.start()
    for nemesis in nemeses:
        nemesis.join()
        if nemesis.problem:
            raise Failed(f"expected faults to end as they should: {nemesis.problem}")
    stage.say(f"seed {seed}, {seconds:.0f} s of faults: " + ", ".join(f"{what} {n}" for what, n in sorted(strikes.items())))
    time.sleep(5)  # of quiet, in which records still come
    acknowledged = feeder.stop()
    group.until_all_has_come(acknowledged, 120)
    group.end()
    judge(stage, cluster, group, acknowledged)


def judge(stage, cluster, group, acknowledged):
    total = sum(acknowledged.values())
    stage.equal("no record is in the log that was not acknowledged", acknowledged, cluster.ends(TOPIC))
    missing = {p: n - len(group.delivered[p]) for p, n in acknowledged.items() if n > len(group.delivered[p])}
    commits = committed(cluster)
    back = [(p, a, b) for p, offsets in commits.items() for a, b in zip(offsets, offsets[1:]) if b < a]
    forgotten = {p: (told, max(commits[p], default=0)) for p, told in group.committed.items() if told > max(commits[p], default=0)}
    two, shared, fenced = owners(group)
    stage.say(f"records acknowledged {total}, delivered {sum(map(len, group.delivered.values()))}, missing {sum(missing.values())}, "
              f"repeated {sum(group.repeated.values())}; commits {sum(map(len, commits.values()))}, regressed {len(back)}; "
              f"assignments {sum(len(e) for e in group.events.values())}, to a second owner {len(two) + len(shared)} (taken from fenced members {fenced})")
    stage.equal("records missing", {}, missing)
    stage.equal("commits regressed", [], back[:5])
    stage.equal("acknowledged commits that the log does not have", {}, forgotten)
    stage.equal("partitions given to two members in one generation", [], shared[:5])
    stage.equal("partitions taken from a member before it let go, though it was not fenced", [], two[:5])
    stage.equal("members that ended by themselves", [], group.ended)


def committed(cluster):
    """Partition → the offsets committed, in the order of the log."""
    found = collections.defaultdict(list)
    for p in cluster.metadata("__consumer_offsets")[1]["__consumer_offsets"]:
        for key, value in cluster.records("__consumer_offsets", p):
            key = Reader(key or b"\xff\xff")
            if key.take("h") in (0, 1) and (key.text(), key.text()) == ("chaos", TOPIC) and value is not None:
                found[key.take("i")].append(struct.unpack_from(">q", value, 2)[0])
    return found


def owners(group):
    """(taken too early, given twice in one generation, how many were taken from members that were fenced), from what members told."""
    by_generation, two, fenced = {}, [], 0
    told = sorted((e["t"], name, e["event"], e.get("generation"), p) for name, events in group.events.items() for e in events for _, p in e["partitions"])
    holders = collections.defaultdict(set)
    for i, (t, name, kind, generation, p) in enumerate(told):
        if kind != "assigned":
            holders[p].discard(name)
            continue
        by_generation.setdefault((p, generation), set()).add(name)
        for other in holders[p] - {name}:
            if group.gone.get(other, t) < t:
                continue
            later = next((k for _, who, k, _, q in told[i:] if who == other and q == p), "killed")
            if later == "revoked":  # it lets go only now: it was in good standing
                two.append((p, other, name, t))
            else:
                fenced += 1
        holders[p].add(name)
    return two, [(*key, sorted(names)) for key, names in by_generation.items() if len(names) > 1], fenced


class Nemesis(threading.Thread):
    """Strikes again and again until the time is over; each strike ends with all being well again."""

    def __init__(self, seconds, strikes, dice, victims):
        super().__init__(daemon=True)
        self.until, self.strikes, self.dice, self.victims, self.problem = time.monotonic() + seconds, strikes, dice, victims, None

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.strikes[self.victims.strike(self.dice)] += 1
                time.sleep(self.dice.uniform(*self.victims.rest))
        except Exception as e:
            self.problem = f"{type(e).__name__}: {e}"


class Brokers:
    rest = (2, 8)

    def __init__(self, kafka):
        self.kafka = kafka

    def strike(self, dice):
        node, kind, away = dice.randint(1, BROKERS), dice.choice(("killed", "paused", "restarted")), dice.uniform(1, 14)
        if kind == "paused":
            pid = int((self.kafka.folder / str(node) / "pid").read_text())
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(away)
            finally:
                os.kill(pid, signal.SIGCONT)
        else:
            self.kafka.script("stop", "--broker", node, *["--kill"] * (kind == "killed"))
            time.sleep(away if kind == "killed" else 0)
            self.kafka.restart(node)
        return f"brokers {kind}"


class Group:
    """The members, and what they said."""

    rest = (0.5, 5)

    def __init__(self, stage, bootstrap):
        self.stage, self.bootstrap, self.started = stage, bootstrap, 0
        self.members, self.readers = {}, []
        self.delivered, self.repeated = collections.defaultdict(set), collections.Counter()
        self.events = collections.defaultdict(list)  # member → what it told of its partitions
        self.committed = collections.defaultdict(int)  # partition → the highest offset whose commit was acknowledged
        self.gone = {}  # member → when it was killed, by the wall clock
        self.leaving, self.ended, self.lock = set(), [], threading.Lock()

    def start(self, kind):
        name, self.started = f"{kind}-{self.started}", self.started + 1
        command = [self.stage.kohort, "consume", "--bootstrap", self.bootstrap, "--group", "chaos", "--topic", TOPIC, "--from", "beginning", "--client-id", name,
                   "-X", f"session.timeout.ms={SESSION_MS}"]
        command += ["--format", "json", "--commit", "each"] if kind == "events" else ["-X", "auto.commit.interval.ms=1000"]
        child = self.stage.spawn(command, name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        reader = threading.Thread(target=self.read, args=(name, child, self.take_event if kind == "events" else self.take_value), daemon=True)
        self.members[name] = child
        self.readers.append(reader)
        reader.start()

    def read(self, name, child, take):
        for line in child.stdout:
            with self.lock:
                try:
                    take(name, line)
                except ValueError:
                    # A process that is killed may be in the middle of a line.
                    if name not in self.gone:
                        self.ended.append(f"{name} wrote {line!r}")
        if child.wait() and name not in self.gone or name not in self.leaving:
            self.ended.append(f"{name} with status {child.returncode}: {self.stage.errors(name)}")

    def take_value(self, _, line):
        partition, n = map(int, line.split(":"))
        if not line.endswith("\n"):
            raise ValueError("half a line")
        self.deliver(partition, n)

    def take_event(self, name, line):
        event = json.loads(line)
        if event["event"] == "records":
            for _, partition, count, last in event["partitions"]:
                for n in range(last - count + 1, last + 1):
                    self.deliver(partition, n)
        elif event["event"] in ("assigned", "revoked", "lost"):
            self.events[name].append(event)
        elif event["event"] == "committed":
            for _, partition, offset in event["offsets"]:
                self.committed[partition] = max(self.committed[partition], offset)

    def deliver(self, partition, n):
        self.repeated[partition] += n in self.delivered[partition]
        self.delivered[partition].add(n)

    def until_all_has_come(self, acknowledged, seconds):
        self.stage.until(lambda: all(len(self.delivered[p]) >= n for p, n in acknowledged.items()), seconds, f"all {sum(acknowledged.values())} records to arrive",
                         lambda: f"got {sum(map(len, self.delivered.values()))}; missing of {[p for p, n in acknowledged.items() if len(self.delivered[p]) < n]}; {self.ended}")

    def strike(self, dice):
        name, kind, away = dice.choice(sorted(self.members)), dice.choice(("killed", "paused", "restarted")), dice.uniform(0.2, 2 * SESSION_MS / 1000)
        child = self.members[name]
        if kind == "paused":
            child.send_signal(signal.SIGSTOP)
            try:
                time.sleep(away)
            finally:
                child.send_signal(signal.SIGCONT)
            return "members paused"
        self.leaving.add(name)
        del self.members[name]
        if kind == "killed":
            self.gone[name] = time.time() * 1000
            child.kill()
            time.sleep(away / 4)
        else:
            self.leave(name, child)
        self.start(name.split("-")[0])
        return f"members {kind}"

    def leave(self, name, child):
        child.terminate()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            raise Failed(f"expected {name} to leave within 60 s of SIGTERM: {self.stage.errors(name)}") from None

    def end(self):
        for name, child in list(self.members.items()):
            self.leaving.add(name)
            self.leave(name, child)
        for reader in self.readers:
            reader.join(10)
