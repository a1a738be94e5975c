"""Targets that are wrong in one way: `python faulty.py FAULT`. Each is the honest example with one thing changed.

And two that are honest in another way: `honest-block` and `honest-prefix` have a cache that a power cut takes.
"""

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "examples"))
from dict_disk import BLOCK, HELLO, DictDisk, Refused, answer

FAULTS = {}
LINES = {}


def wrong(cls):
    """A disk that is wrong; its fault is its name with dashes."""
    FAULTS[re.sub(r"(?<=.)([A-Z])", r"-\1", cls.__name__).lower()] = cls
    return cls


def says(function):
    """A dialogue that is wrong: called with the request and the response, it prints what it likes."""
    LINES[function.__name__.replace("_", "-")] = function
    return function


class HonestBlock(DictDisk):
    """After a power cut each block holds what it held at the last flush, or anything written since; snapshots flush."""

    profile = "block"

    def create(self, blocks):
        super().create(blocks)
        self.choose, self.since = random.Random(blocks), []
        self.flush()

    def write(self, lba, data):
        super().write(lba, data)
        self.remember()

    def unmap(self, lba, count):
        super().unmap(lba, count)
        self.remember()

    def snapshot(self, name):
        super().snapshot(name)
        self.flush()

    def delete(self, name):
        super().delete(name)
        self.flush()

    def revert(self, name):
        super().revert(name)
        self.flush()

    def remember(self):
        self.since.append((dict(self.live), dict(self.snapshots)))

    def flush(self):
        self.since = [(dict(self.live), dict(self.snapshots))]

    def crash(self):
        kept = {l: self.choose.choice(self.since)[0].get(l) for l in range(self.blocks)}
        self.live = {l: data for l, data in kept.items() if data}
        self.flush()

    restart = flush


class HonestPrefix(HonestBlock):
    """After a power cut it is as it was at some point since the last flush."""

    profile = "prefix"

    def flush(self):
        self.since = []
        self.remember()

    def snapshot(self, name):
        DictDisk.snapshot(self, name)
        self.remember()

    def delete(self, name):
        DictDisk.delete(self, name)
        self.remember()

    def revert(self, name):
        DictDisk.revert(self, name)
        self.remember()

    def crash(self):
        live, snapshots = self.choose.choice(self.since)
        self.live, self.snapshots = dict(live), dict(snapshots)
        self.flush()

    def restart(self):
        self.flush()


HONEST = {"none": DictDisk, "honest-block": HonestBlock, "honest-prefix": HonestPrefix}


@wrong
class AliasedSnapshots(DictDisk):
    def snapshot(self, name):
        super().snapshot(name)
        self.snapshots[name] = self.live


@wrong
class OneSnapshotForAll(DictDisk):
    def snapshot(self, name):
        super().snapshot(name)
        for other in self.snapshots:
            self.snapshots[other] = self.snapshots[name]


@wrong
class RevertAliases(DictDisk):
    def revert(self, name):
        self.live = self.existing(name)


@wrong
class PartialOutOfRangeWrites(DictDisk):
    def write(self, lba, data):
        try:
            super().write(lba, data)
        except Refused:
            for l in range(lba, min(self.blocks, lba + len(data) // BLOCK)):
                self.live[l] = data[(l - lba) * BLOCK:][:BLOCK]
            raise


@wrong
class AcceptsOutOfRange(DictDisk):
    def check(self, lba, count):
        pass


@wrong
class WrapsTheAddress(DictDisk):
    def write(self, lba, data):
        super().write(lba & 0xFFFF_FFFF, data)


@wrong
class LosesAcknowledgedWrites(DictDisk):
    def create(self, blocks):
        super().create(blocks)
        self.durable = {}

    def flush(self):
        self.durable = dict(self.live)

    def crash(self):
        self.live = dict(self.durable)


@wrong
class CrashLosesFlushedData(DictDisk):
    def flush(self):
        self.old = dict(self.live)

    def crash(self):
        self.live = {l: data for l, data in self.live.items() if l}


@wrong
class CrashLosesSnapshots(DictDisk):
    def crash(self):
        self.snapshots.clear()


@wrong
class UnmapIgnored(DictDisk):
    def unmap(self, lba, count):
        self.check(lba, count)


@wrong
class UnmapForgottenByCrash(DictDisk):
    def create(self, blocks):
        super().create(blocks)
        self.hidden = {}

    def unmap(self, lba, count):
        self.check(lba, count)
        self.hidden |= {l: self.live.pop(l) for l in range(lba, lba + count) if l in self.live}

    def crash(self):
        self.live = self.hidden | self.live


@wrong
class RevertDeletesSnapshots(DictDisk):
    def revert(self, name):
        super().revert(name)
        self.snapshots = {name: self.snapshots[name]}


@wrong
class RevertIgnored(DictDisk):
    def revert(self, name):
        self.existing(name)


@wrong
class WrongErrorCode(DictDisk):
    def existing(self, name):
        if name not in self.snapshots:
            raise Refused("out-of-range")
        return self.snapshots[name]


@wrong
class AcceptsDuplicateNames(DictDisk):
    def snapshot(self, name):
        self.snapshots.pop(name, None)
        super().snapshot(name)


@wrong
class AcceptsBadNames(DictDisk):
    def snapshot(self, name):
        if name in self.snapshots:
            raise Refused("snapshot-exists")
        self.snapshots[name] = dict(self.live)


@wrong
class RefusesReads(DictDisk):
    def read(self, lba, count, view=None):
        if len(self.live) > 2:
            raise Refused("data-lost")
        return super().read(lba, count, view)


@wrong
class DoesNotOpenAgain(DictDisk):
    def crash(self):
        raise Refused("data-lost")


@wrong
class CreateKeepsTheOldDisk(DictDisk):
    def create(self, blocks):
        self.blocks = blocks
        if not hasattr(self, "live"):
            self.live, self.snapshots = {}, {}
        self.snapshots.clear()


@wrong
class SwapsNeighbours(DictDisk):
    def read(self, lba, count, view=None):
        return super().read(lba ^ 1 if self.blocks > lba ^ 1 and count == 1 else lba, count, view)


@wrong
class TearsBlocks(DictDisk):
    def write(self, lba, data):
        old = self.live.get(lba, bytes(BLOCK))
        super().write(lba, data)
        if old != bytes(BLOCK):
            self.live[lba] = self.live[lba][:256] + old[256:]


@wrong
class CreatesNothing(DictDisk):
    def create(self, blocks):
        raise Refused("no-space")


@says
def hangs(request, response):
    if request["op"] == "write":
        time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def hangs_in_hello(request, response):
    time.sleep(60)


@says
def ignores_end_and_signals(request, response):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if request["op"] == "flush":
        while True:
            time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def prints_garbage(request, response):
    print("\x00\xff{[" if request["op"] == "read" else json.dumps(response), flush=True)


@says
def prints_bytes(request, response):
    sys.stdout.flush()
    os.write(1, b"\xff\xfe\x00\n" if request["op"] == "write" else json.dumps(response).encode() + b"\n")


@says
def prints_megabytes(request, response):
    print("x" * (3 << 20) if request["op"] == "read" else json.dumps(response), flush=True)


@says
def never_ends_the_line(request, response):
    if request["op"] != "read":
        print(json.dumps(response), flush=True)
        return
    while True:
        os.write(1, b"y" * (1 << 16))


@says
def nested(request, response):
    print("[" * 200_000 if request["op"] == "read" else json.dumps(response), flush=True)


@says
def exits(request, response):
    if request["op"] == "read":
        print("disk on fire", file=sys.stderr, flush=True)
        os._exit(7)
    print(json.dumps(response), flush=True)


@says
def exits_in_hello(request, response):
    sys.exit("cannot find my disk")


@says
def raises(request, response):
    if request["op"] == "flush":
        raise RuntimeError("unexpected flush")
    print(json.dumps(response), flush=True)


@says
def closes_the_pipe(request, response):
    if request["op"] == "write":
        os.close(1)
        time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def answers_twice(request, response):
    print(json.dumps(response), flush=True)
    if request["op"] != "hello":
        print(json.dumps(response), flush=True)


@says
def chats_on_stdout(request, response):
    if request["op"] == "write":
        print("DEBUG: writing", request.get("lba"))
    print(json.dumps(response), flush=True)


@says
def wrong_length(request, response):
    if "data" in response:
        response = {**response, "data": response["data"][:4]}
    print(json.dumps(response), flush=True)


@says
def not_base64(request, response):
    if "data" in response:
        response = {**response, "data": "*" * 16}
    print(json.dumps(response), flush=True)


@says
def no_data(request, response):
    response.pop("data", None)
    print(json.dumps(response), flush=True)


@says
def not_an_object(request, response):
    print(json.dumps([response] if request["op"] == "write" else response), flush=True)


@says
def null(request, response):
    print("null" if request["op"] == "write" else json.dumps(response), flush=True)


@says
def ok_is_a_word(request, response):
    print(json.dumps({**response, "ok": "true"} if request["op"] == "write" else response), flush=True)


@says
def invents_an_error(request, response):
    print(json.dumps(response if response["ok"] else {"ok": False, "error": "EINVAL"}), flush=True)


@says
def bad_hello(request, response):
    print(json.dumps({**response, "block_size": 100} if request["op"] == "hello" else response), flush=True)


@says
def floods_stderr(request, response):
    sys.stderr.write("noise\n" * 50_000)
    if request["op"] == "read":
        os._exit(1)
    print(json.dumps(response), flush=True)


def main():
    fault = sys.argv[1]
    disk = {**FAULTS, **HONEST}.get(fault, DictDisk)()
    HELLO["crash_profile"] = getattr(disk, "profile", "ack")
    say = LINES.get(fault, lambda request, response: print(json.dumps(response), flush=True))
    if fault not in FAULTS and fault not in LINES and fault not in HONEST:
        sys.exit(f"no such fault: {fault}")
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "bye":
            break
        say(dict(request), answer(disk, request))


if __name__ == "__main__":
    main()
