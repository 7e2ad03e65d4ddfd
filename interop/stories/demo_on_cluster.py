"""The demo's story on three brokers of Apache Kafka, one of which is killed while it runs: nothing missed, never two owners."""

import json
import subprocess
import time


def play(stage):
    kafka = stage.apache(brokers=3)
    out = open(stage.folder / "demo.json", "wb")
    demo = stage.spawn([stage.kohort, "demo", "--bootstrap", kafka.bootstrap, "--format", "json"], "demo", stdin=subprocess.DEVNULL, stdout=out)
    started = time.monotonic()
    time.sleep(15)
    stage.check(demo.poll() is None, "the demo runs when the broker is killed", stage.errors("demo"))
    kafka.kill(2)
    stage.say("broker 2 of 3 is killed, 15 s after the start")
    status = demo.wait(240)
    stage.equal("exit status", 0, status) if status == 0 else stage.check(False, f"exit status 0, got {status}", stage.errors("demo") + (stage.folder / "demo.json").read_text()[-1500:])
    result = json.loads((stage.folder / "demo.json").read_text())
    stage.say(f"the story took {time.monotonic() - started:.0f} s")
    for run in (result, result["beside"]):
        stage.say(", ".join(f"{key} {run[key]}" for key in ("mode", "produced", "delivered", "repeated", "missing", "two_owners", "ownerless_partition_ms", "crashed_partition_ms",
                                                            "away_partition_ms")) + f", {len(run['rebalances'])} rebalances")
    stage.check(result["produced"] > 0, "records were produced")
    stage.equal("no record is missing", 0, result["missing"])
    stage.equal("never two owners", 0, result["two_owners"])
