"""What a story plays on: brokers, programs, ports and files. Whatever was started here is ended when the story is over, by process id."""

import os
import pathlib
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PEERS = pathlib.Path(os.environ.get("KOHORT_PEERS", HERE.parent.parent / "shared")) / "peers"
BUILD = pathlib.Path(os.environ.get("MEMBERS_BUILD", pathlib.Path.home() / ".cache" / "kafka-members"))
JARS = pathlib.Path(os.environ.get("KAFKA_JARS", pathlib.Path.home() / ".cache" / "kafka-jars"))


class Failed(Exception):
    """Something was not as it must be."""


class Missing(Exception):
    """The story cannot be played here; says what is missing."""


class Stage:
    def __init__(self, name, kohort, ports, keep=False):
        self.name, self.kohort, self.keep = name, str(kohort), keep
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"kohort-{name}-"))
        self.ports, self.started = iter(range(ports, ports + 700)), []

    def close(self):
        for thing in reversed(self.started):
            thing.end()
        if self.keep:
            print(f"  kept {self.folder}", flush=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # words

    def say(self, what):
        print(f"  {what}", flush=True)

    def check(self, holds, what, got=""):
        if not holds:
            raise Failed(f"{what}: {got}" if got != "" else what)
        self.say(f"ok: {what}")

    def equal(self, what, expected, got):
        if expected != got:
            raise Failed(f"{what}: expected {shorten(expected)}, got {shorten(got)}")
        self.say(f"ok: {what}")

    def until(self, condition, seconds, what, state=lambda: ""):
        end = time.monotonic() + seconds
        while not (got := condition()):
            if time.monotonic() > end:
                raise Failed(f"expected {what} within {seconds} s; {state()}")
            time.sleep(0.05)
        return got

    # programs

    def need(self, *what):
        for w in what:
            kind, _, client = w.partition(":")
            if kind in ("member", "apache") and not PEERS.is_dir():
                raise Missing(f"the peers are not there: no folder {PEERS} (set KOHORT_PEERS to the folder that has peers/ in it)")
            if kind == "member":
                if not (BUILD / client).exists():
                    self.run([PEERS / "members" / "build", client], seconds=600)
            elif kind == "apache":
                self.need("java", "mvn")
            elif not shutil.which(w):
                raise Missing(f"{w} is not installed (Debian: apt-get install {w})")

    def port(self, width=1):
        """The first of `width` ports that are free now, below the range of outgoing ones."""
        run = 0
        for port in self.ports:
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    s.bind(("127.0.0.1", port))
                    run += 1
                except OSError:
                    run = 0
            if run == width:
                return port - width + 1
        raise Failed(f"no {width} free ports for {self.name}")

    def run(self, command, stdin=None, seconds=60, status=0, env=None):
        """Runs a program to its end; gives back its standard output as bytes."""
        command = [str(c) for c in command]
        try:
            done = subprocess.run(command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True,
                                  timeout=seconds, env=dict(os.environ, **(env or {})))
        except subprocess.TimeoutExpired as e:
            raise Failed(f"expected an end of `{' '.join(command)}` within {seconds} s; it wrote {shorten(e.stdout)} {shorten(e.stderr)}")
        if status is not None and done.returncode != status:
            raise Failed(f"expected exit status {status} of `{' '.join(command)}`, got {done.returncode}: {shorten(done.stderr)} {shorten(done.stdout)}")
        return done.stdout

    def shell(self, line, seconds=120):
        """A pipeline as one would type it; $kohort is the binary."""
        return self.run(["bash", "-o", "pipefail", "-c", line], seconds=seconds, env={"kohort": self.kohort, "LC_ALL": "C"}).decode()

    def spawn(self, command, log, **more):
        errors = open(self.folder / f"{log}.err", "ab")
        p = subprocess.Popen([str(c) for c in command], stderr=errors, **more)
        errors.close()
        self.started.append(Ended(p))
        return p

    def errors(self, log):
        return (self.folder / f"{log}.err").read_text(errors="replace")[-800:]

    def kohort_broker(self, data=False, **settings):
        broker = KohortBroker(self, self.port(), self.folder / "kohort-data" if data else None, settings)
        broker.start()
        self.started.append(broker)
        return broker

    def apache(self, version="4.3.1", brokers=1, **settings):
        self.need("apache")
        port = self.port(width=100 + brokers)
        cluster = Apache(self.folder / f"apache-{version}-{brokers}-{port}", version)
        self.started.append(cluster)
        cluster.bootstrap = cluster.script("start", "--version", version, "--brokers", brokers, "--port", port,
                                           *[f"{k}={v}" for k, v in settings.items()]).strip().splitlines()[-1]
        return cluster

    def java(self, program, *args):
        """The command that runs a program of java/ on Apache Kafka's client 4.3.1."""
        self.need("apache")
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{JARS / '4.3.1'}/*",
                str(pathlib.Path(__file__).resolve().parent / "java" / f"{program}.java"), *args]

    def tool(self, name, *args, stdin=None, seconds=60):
        """One of Apache Kafka 4.3.1's command line tools, by the name of its class."""
        self.need("apache")
        jars = JARS / "4.3.1"
        if not (jars / ".done").exists():  # the script fetches them when a broker is started first
            self.apache().end()
        # the tools' start is most of their time: one compiler tier and no parallel collector spare a small machine
        return self.run(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*",
                         f"org.apache.kafka.tools.{name}", *args], stdin=stdin, seconds=seconds).decode()


def shorten(value, size=600):
    value = value if isinstance(value, str) else value.decode(errors="replace") if isinstance(value, bytes) else repr(value)
    return value if len(value) <= size else f"{value[:size // 2]} … {value[-size // 2:]}"


class Ended:
    """A process that is ended with the story."""

    def __init__(self, process):
        self.process = process

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class KohortBroker:
    def __init__(self, stage, port, data, settings):
        self.stage, self.address, self.bootstrap, self.version = stage, f"127.0.0.1:{port}", f"127.0.0.1:{port}", "kohort"
        self.command = [stage.kohort, "broker", "--listen", self.address]
        if data:
            self.command += ["--data", str(data)]
        for key, value in settings.items():
            self.command += ["-X", f"{key}={value}"]
        self.process = None

    def start(self, seconds=20):
        errors = open(self.stage.folder / "broker.err", "ab")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        errors.close()
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            line, end = b"", time.monotonic() + seconds
            while not line.startswith(b"ready "):
                if not s.select(max(0, end - time.monotonic())):
                    raise Failed(f"expected a line `ready {self.address}` of kohort broker within {seconds} s, got none: {self.stage.errors('broker')}")
                line = self.process.stdout.readline()
                if not line:
                    raise Failed(f"expected kohort broker to serve, it ended with {self.process.wait()}: {self.stage.errors('broker')}")
        if line.decode().strip() != f"ready {self.address}":
            raise Failed(f"expected `ready {self.address}`, got {line!r}")

    def stop(self, sign=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sign)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise Failed(f"expected kohort broker to end within 15 s of signal {sign}")

    def kill(self):
        self.stop(signal.SIGKILL)

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Apache:
    """One to nine Apache Kafka brokers by the peers' script."""

    def __init__(self, folder, version):
        self.folder, self.version, self.bootstrap = folder, version, None

    def script(self, verb, *args):
        done = subprocess.run([str(PEERS / "apache-kafka" / "kafka"), verb, str(self.folder), *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"Apache Kafka {self.version}: {verb} ended with {done.returncode}: {shorten(done.stderr)}")
        return done.stdout

    def kill(self, node):
        self.script("stop", "--broker", node, "--kill")

    def restart(self, node):
        self.script("restart", "--broker", node)

    def end(self):
        if self.folder.exists():
            self.script("stop")
