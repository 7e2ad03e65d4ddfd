"""A consumer group made of several clients' members, watched from outside: who owns what when, and which records arrived.

The member programs are the peers'; their events tell what each member reports. From them: hand-overs, moments with two owners, and the
records that no member reported.
"""

import collections
import json
import os
import queue
import selectors
import subprocess
import threading
import time

from raw import Cluster
from stage import BUILD, HERE, PEERS, Failed


class Feeder:
    def __init__(self, stage, bootstrap, topic, partitions, interval_ms=20):
        self.stage = stage
        stage.need("member:confluent")
        self.process = stage.spawn([BUILD / "confluent" / "bin" / "python", HERE / "feeder.py", "--bootstrap", bootstrap, "--topic", topic, "--partitions", partitions,
                                    "--interval-ms", interval_ms], "feeder", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if s.select(90) else ""
        if not line:
            raise Failed(f"expected an answer of the feeder, got none: {self.stage.errors('feeder')}")
        return json.loads(line)

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def pause(self, word="pause"):
        """The number of records acknowledged per partition so far."""
        self.say(word)
        answer = self.answer()
        if answer["failed"]:
            raise Failed(f"expected every record to be acknowledged, got {answer['failed'][:3]}")
        return {int(p): n for p, n in answer["acknowledged"].items()}

    def resume(self):
        self.say("resume")

    def stop(self):
        return self.pause("stop")


class Group:
    def __init__(self, stage, bootstrap, topic, partitions, group, assignor="cooperative-sticky"):
        self.stage, self.bootstrap, self.topic, self.partitions, self.group, self.assignor = stage, bootstrap, topic, partitions, group, assignor
        self.cluster = Cluster(bootstrap)
        self.queue, self.members, self.events, self.errors = queue.Queue(), {}, [], []
        self.owners = collections.defaultdict(set)  # partition → members, as far as heard
        self.seen = collections.defaultdict(collections.Counter)  # partition → offset → times
        self.last_change, self.closing, self.closed = time.monotonic(), set(), set()
        # all start from the first record, whatever their defaults: so none may be missed
        self.cluster.commit(group, topic, {p: 0 for p in range(partitions)})

    def start(self, client, name, *more, assignor=None):
        assignor = assignor or self.assignor
        if client == "bounced":  # a Java member with a list of assignors
            command = self.stage.java("Bounced", self.bootstrap, self.group, self.topic, name, assignor)
        else:
            self.stage.need(*[] if client == "kohort" else [f"member:{client}"])
            command = [PEERS / "members" / "member", client, "--bootstrap", self.bootstrap, "--group", self.group, "--topic", self.topic, "--assignor", assignor,
                       "--name", name, *more]
        child = self.stage.spawn(command, name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, KOHORT=self.stage.kohort))
        self.members[name] = child
        threading.Thread(target=self.read, args=(name, child), daemon=True).start()

    def read(self, name, child):
        for line in child.stdout:
            try:
                self.queue.put(json.loads(line))
            except ValueError:
                self.queue.put({"t": time.time() * 1000, "member": name, "event": "error", "text": f"not JSON: {line}"})

    def close(self, name, feeder=None):
        """The member leaves. The feeder rests until it stops reading: some member programs do not report the records of their last 100 ms."""
        if feeder:
            self.all_seen(feeder.pause())
            self.pump(0.3)
        child = self.members.pop(name)
        child.stdin.write("close\n")
        child.stdin.flush()
        self.until(lambda: name in self.closing, 20, f"{name} to say that it closes")
        if feeder:
            feeder.resume()

    # events

    def take(self, event):
        kind, member = event["event"], event["member"]
        if kind == "records":
            for _, partition, count, last in event["partitions"]:
                self.seen[partition].update(range(last - count + 1, last + 1))
            return
        if kind == "error":
            self.errors.append(f"{member}: {event.get('text') or event.get('message') or event}")
            return
        if kind in ("closing", "closed"):
            getattr(self, kind).add(member)
            if kind == "closed":
                event["partitions"] = [[self.topic, p] for p, o in self.owners.items() if member in o]
        if kind not in ("assigned", "revoked", "lost", "closed"):
            return
        partitions = [p[1] for p in event["partitions"]]
        if partitions:
            self.events.append((event["t"], member, kind, partitions))
            self.last_change = time.monotonic()
        for p in partitions:
            (self.owners[p].add if kind == "assigned" else self.owners[p].discard)(member)

    def pump(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self.take(self.queue.get(timeout=left))
            except queue.Empty:
                return

    def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"expected {what} within {seconds} s; {self.state()}")
            self.pump(0.05)

    def state(self):
        loads = collections.Counter(m for o in self.owners.values() for m in o)
        return f"loads {dict(loads)} of {self.partitions} partitions, members {sorted(self.members)}, errors {self.errors[-5:]}"

    def settled(self):
        owners = [o for o in self.owners.values() if o]
        if len(owners) != self.partitions or any(len(o) != 1 for o in owners):
            return False
        loads = collections.Counter(m for o in owners for m in o)
        return set(loads) == set(self.members) and max(loads.values()) - min(loads.values()) <= 1

    def settle(self, seconds=60, quiet=1.0):
        """Until each member has its fair share and nothing has changed for a while."""
        self.until(lambda: self.settled() and time.monotonic() - self.last_change > quiet, seconds, "every partition owned, by fair shares")

    def all_seen(self, acknowledged, seconds=30):
        self.until(lambda: all(len(self.seen[p]) >= n for p, n in acknowledged.items()), seconds, f"all {sum(acknowledged.values())} records to arrive, "
                   f"got {sum(map(len, self.seen.values()))}")

    # the verdict

    def verdict(self):
        """From all events, in order of the time at which the members said them."""
        holders, hands, two, spans, since = collections.defaultdict(set), 0, [], [], {}
        previous = {}
        for t, member, kind, partitions in sorted(self.events):
            for p in partitions:
                if kind == "assigned":
                    if holders[p] - {member}:
                        two.append((p, sorted(holders[p]), member, t))
                    if p in previous and previous[p] != member:
                        hands += 1
                        if p in since:
                            spans.append(t - since[p])
                    holders[p].add(member)
                    previous[p] = member
                    since.pop(p, None)
                else:
                    holders[p].discard(member)
                    if not holders[p]:
                        since[p] = t
        ends = self.cluster.ends(self.topic)
        missed = {p: sorted(set(range(end)) - set(self.seen[p]))[:5] for p, end in ends.items() if set(range(end)) - set(self.seen[p])}
        total = sum(ends.values())
        return {"records": total, "missed": sum(len(set(range(end)) - set(self.seen[p])) for p, end in ends.items()), "missed_first": missed,
                "repeated": sum(sum(c.values()) - len(c) for c in self.seen.values()), "hand_overs": hands, "two_owners": two, "ownerless_partition_ms": spans,
                "errors": self.errors}

    def judge(self, feeder, where):
        self.all_seen(feeder.stop(), 60)
        self.pump(0.5)
        v = self.verdict()
        spans = sorted(v["ownerless_partition_ms"])
        middle, longest = (spans[len(spans) // 2], spans[-1]) if spans else (0, 0)
        self.stage.say(f"{where}: {v['records']} records, {v['hand_overs']} hand-overs (ms without an owner: median {middle:.0f}, longest {longest:.0f}), "
                       f"{len(v['two_owners'])} moments with two owners, {v['missed']} records missed, {v['repeated']} repeated")
        for e in v["errors"][:5]:
            self.stage.say(f"a member reported: {e}")
        self.stage.check(v["hand_overs"] > 0, f"{where}: partitions changed hands")
        self.stage.equal(f"{where}: at no moment two owners", [], v["two_owners"][:5])
        self.stage.equal(f"{where}: no record missed", {}, v["missed_first"])
        return v
