"""Kafka requests made by hand, for what no client does on purpose: sending one batch twice, lying about a checksum.

Old, fixed-width versions wherever both Apache Kafka 4 and kohort serve them, so that the encoding stays small. `Wire` is one
connection; `Cluster` knows the leaders and the coordinator.
"""

import socket
import struct
import time

RETRIABLE = (3, 5, 6, 7, 14, 15, 16)  # no such topic yet, no leader, not the leader, timed out, coordinator loading, absent, elsewhere


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value if len(value) > 1 else value[0]

    def bytes(self, size):
        value = self.data[self.at:self.at + size]
        if len(value) != size:
            raise ValueError(f"expected {size} bytes, got {len(value)}")
        self.at += size
        return value

    def text(self):
        size = self.take("h")
        return None if size < 0 else self.bytes(size).decode()

    def array(self, item):
        return [item() for _ in range(max(0, self.take("i")))]


def text(s):
    return struct.pack(">h", -1) if s is None else struct.pack(">h", len(s.encode())) + s.encode()


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


class Wire:
    def __init__(self, address, timeout=30):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, api, version, body, flexible=False):
        self.count += 1
        request = struct.pack(">hhi", api, version, self.count) + text("interop") + (b"\0" if flexible else b"") + body
        self.socket.sendall(struct.pack(">i", len(request)) + request)
        answer = Reader(self.exactly(struct.unpack(">i", self.exactly(4))[0]))
        number = answer.take("i")
        if number != self.count:
            raise ValueError(f"expected the answer to request {self.count}, got that to {number}")
        if flexible:
            answer.take("B")
        return answer

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


class Cluster:
    def __init__(self, bootstrap):
        self.bootstrap = bootstrap.split(",")

    def any(self):
        for address in self.bootstrap:
            try:
                return Wire(address)
            except OSError as e:
                problem = e
        raise problem

    def metadata(self, *topics):
        """(brokers by id, {topic: {partition: leader}}); Metadata v4."""
        with self.any() as wire:
            r = wire.call(3, 4, array([text(t) for t in topics]) + b"\0")
        r.take("i")
        brokers = {}
        for node, host, port, _ in r.array(lambda: (r.take("i"), r.text(), r.take("i"), r.text())):
            brokers[node] = f"{host}:{port}"
        r.text(), r.take("i")
        found = {}
        for _ in range(r.take("i")):
            _, name, _ = r.take("h"), r.text(), r.take("b")
            found[name] = {}
            for _ in range(r.take("i")):
                _, partition, leader = r.take("hii")
                r.array(lambda: r.take("i")), r.array(lambda: r.take("i"))
                found[name][partition] = leader
        return brokers, found

    def create(self, topic, partitions, copies=1):
        """CreateTopics v2; returns when every partition has a leader."""
        controller = self.retry(lambda: self.create_once(topic, partitions, copies), (0, 36))
        deadline = time.monotonic() + 30
        while True:
            leaders = self.metadata(topic)[1].get(topic, {})
            if len(leaders) == partitions and min(leaders.values()) >= 0:
                return controller
            if time.monotonic() > deadline:
                raise TimeoutError(f"expected {partitions} partitions of {topic} with leaders within 30 s, got {leaders}")
            time.sleep(0.05)

    def create_once(self, topic, partitions, copies):
        body = array([text(topic) + struct.pack(">ih", partitions, copies) + array([]) + array([])]) + struct.pack(">ib", 10000, 0)
        with self.any() as wire:
            r = wire.call(19, 2, body)
        r.take("i")
        return r.array(lambda: (r.text(), r.take("h"), r.text()))[0][1]

    @staticmethod
    def retry(ask, fine=(0,)):
        deadline = time.monotonic() + 30
        while True:
            error = ask()
            if error in fine:
                return error
            if error not in RETRIABLE or time.monotonic() > deadline:
                raise ValueError(f"expected error {' or '.join(map(str, fine))}, got {error}")
            time.sleep(0.1)

    def leader(self, topic, partition):
        brokers, topics = self.metadata(topic)
        return Wire(brokers[topics[topic][partition]])

    def end(self, topic, partition, at=-1):
        """The offset after the last record (at=-1), the first one (-2), or the first at that time; ListOffsets v1."""
        found = {}

        def ask():
            try:
                with self.leader(topic, partition) as wire:
                    r = wire.call(2, 1, struct.pack(">i", -1) + array([text(topic) + array([struct.pack(">iq", partition, at)])]))
            except (OSError, KeyError):
                return 5
            error, _, found["offset"] = r.array(lambda: (r.text(), r.array(lambda: r.take("ihqq")[1:])))[0][1][0]
            return error
        self.retry(ask)
        return found["offset"]

    def ends(self, topic):
        return {p: self.end(topic, p) for p in sorted(self.metadata(topic)[1][topic])}

    def coordinator(self, group):
        """(node, address); FindCoordinator v1."""
        found = {}

        def ask():
            with self.any() as wire:
                r = wire.call(10, 1, text(group) + b"\0")
            _, error, _ = r.take("i"), r.take("h"), r.text()
            node, host, port = r.take("i"), r.text(), r.take("i")
            found["at"] = node, f"{host}:{port}"
            return error
        self.retry(ask)
        return found["at"]

    def commit(self, group, topic, offsets):
        """Commits from outside, into an empty group; OffsetCommit v2."""
        def ask():
            body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">q", -1)
            body += array([text(topic) + array([struct.pack(">iq", p, o) + text("") for p, o in offsets.items()])])
            with Wire(self.coordinator(group)[1]) as wire:
                r = wire.call(8, 2, body)
            return max(e for _, ps in r.array(lambda: (r.text(), r.array(lambda: r.take("ih")))) for _, e in ps)
        self.retry(ask)

    def producer_id(self):
        """(id, epoch) for an idempotent producer; InitProducerId v4."""
        found = {}

        def ask():
            with self.any() as wire:
                r = wire.call(22, 4, b"\0" + struct.pack(">iqh", 60000, -1, -1) + b"\0", flexible=True)
            _, error, *found["id"] = r.take("ihqh")
            return error
        self.retry(ask)
        return tuple(found["id"])

    def produce(self, topic, partition, batch):
        """(error, base offset) of one batch with acks=all; Produce v7."""
        body = text(None) + struct.pack(">hi", -1, 10000) + array([text(topic) + array([struct.pack(">ii", partition, len(batch)) + batch])])
        with self.leader(topic, partition) as wire:
            r = wire.call(0, 7, body)
        return r.array(lambda: (r.text(), r.array(lambda: r.take("ihqqq")[1:3])))[0][1][0]

    def batches(self, topic, partition):
        """The headers of all record batches from the start: (base offset, codec, records)."""
        return [(base, codec, count) for base, codec, count, _, _ in self.whole(topic, partition)]

    def records(self, topic, partition):
        """(key, value) of all records from the start; batches must not be compressed."""
        return [record for _, _, count, _, body in self.whole(topic, partition) for record in uncompressed(body, count)]

    def whole(self, topic, partition):
        """All record batches from the start: (base offset, codec, records, last offset, bytes after the header); Fetch v10."""
        at, end, out = self.end(topic, partition, -2), self.end(topic, partition), []
        while at < end:
            body = struct.pack(">iiiibii", -1, 1000, 1, 1 << 24, 0, 0, -1)
            body += array([text(topic) + array([struct.pack(">iiqqi", partition, -1, at, -1, 1 << 24)])]) + array([])
            with self.leader(topic, partition) as wire:
                r = wire.call(1, 10, body)
            r.take("ihi")

            def one():
                header = r.take("ihqqq")
                r.array(lambda: r.take("qq"))
                return header[1], r.bytes(max(0, r.take("i")))
            error, data = r.array(lambda: (r.text(), r.array(one)))[0][1][0]
            if error:
                raise ValueError(f"expected no error of Fetch, got {error}")
            before = at
            for found in headers(data):
                if found[3] >= at:
                    out.append(found)
                    at = found[3] + 1
            if at == before:
                raise ValueError(f"expected a batch at offset {at} of {topic}-{partition}, got none in {len(data)} bytes")
        return out


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def headers(data):
    at = 0
    while at + 61 <= len(data):
        base, size = struct.unpack_from(">qi", data, at)
        if at + 12 + size > len(data):
            break
        attributes, last = struct.unpack_from(">hi", data, at + 21)
        yield base, CODECS[attributes & 7], struct.unpack_from(">i", data, at + 57)[0], base + last, data[at + 61:at + 12 + size]
        at += 12 + size


def uncompressed(data, count):
    """The keys and values of so many records."""
    at = 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return (n >> 1) ^ -(n & 1)

    def blob():
        nonlocal at
        size = number()
        if size < 0:
            return None
        at += size
        return data[at - size:at]

    for _ in range(count):
        size = number()
        end = at + size
        at += 1  # attributes
        number(), number()  # time and offset, as differences
        yield blob(), blob()
        at = end


TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def varint(n):
    n, out = (n << 1) ^ (n >> 63), b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def batch(values, producer=(-1, -1), sequence=-1, stamp=None):
    """One record batch (magic 2), not compressed, keys null."""
    stamp = int(time.time() * 1000) if stamp is None else stamp
    records = b""
    for i, value in enumerate(values):
        body = b"\0" + varint(0) + varint(i) + varint(-1) + (varint(-1) if value is None else varint(len(value)) + value) + varint(0)
        records += varint(len(body)) + body
    rest = struct.pack(">hiqqqhii", 0, len(values) - 1, stamp, stamp, *producer, sequence, len(values)) + records
    return struct.pack(">qiibI", 0, len(rest) + 9, -1, 2, crc32c(rest)) + rest
