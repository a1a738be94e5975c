"""A virtual disk that takes eight requests at a time: version 2 of the dialogue, in one file.

Each request is a generator: between two `yield`s it takes one step, and a seeded chooser says whose
step is next. So every run can be repeated. Run as a program it speaks the dialogue on stdin and
stdout; `python:overlapping_disk:Disk` uses it in process.
"""

import json
import random
import select
import sys

OK = {"ok": True}
HELLO = {
    "name": "overlapping_disk",
    "version": "1",
    "block_size": 512,
    "payload": "tags",
    "crash_profile": "ack",
    "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"],
    "devices": 0,
    "tolerates": 0,
    "protocol": 2,
    "in_flight": 8,
    "atomic": "request",
}


def refused(error):
    return {"ok": False, "error": error, "message": error}


class Disk:
    """The disk. `call` starts a request, `step` takes one step of one of them."""

    def __init__(self, options=None):
        self.hello = dict(HELLO)
        self.seed = (options or {}).get("seed", 0)
        self.flying = []  # [process, done]
        self.live, self.snaps = [], {}

    def call(self, message, done):
        if message["op"] in ("create", "crash"):
            self.flying.clear()  # a power cut ends everything that is in flight
            done(getattr(self, message["op"])(message))
        else:
            self.flying.append([getattr(self, message["op"])(message), done])

    def step(self):
        """Take one step. Return whether anything is in flight."""
        if not self.flying:
            return False
        entry = self.flying[self.choose.randrange(len(self.flying))]
        try:
            next(entry[0])
        except StopIteration as end:
            if entry in self.flying:
                self.flying.remove(entry)
                entry[1](end.value)
        return True

    def request(self, message):
        """One request alone."""
        answers = []
        self.call(message, answers.append)
        while not answers:
            self.step()
        return answers[0]

    def close(self):
        self.flying.clear()

    def create(self, message):
        self.choose = random.Random(self.seed)
        self.live, self.snaps = [0] * message["blocks"], {}
        return OK

    def crash(self, message):
        return OK  # what took effect is durable: the profile is ack

    def fault(self, message):
        """The code that the request must be refused with, or None."""
        if "lba" in message:
            count = len(message["tags"]) if "tags" in message else message["count"]
            if message["lba"] + count > len(self.live):
                return "out-of-range"
        name = message.get("name", message.get("view"))
        if message["op"] == "snapshot":
            if not valid(name):
                return "bad-request"
            return "snapshot-exists" if name in self.snaps else None
        return "no-such-snapshot" if name is not None and name not in self.snaps else None

    def restart(self, message):
        yield
        return OK

    def flush(self, message):
        yield
        return OK

    def write(self, message):
        yield
        lba, tags = message["lba"], message["tags"]
        if error := self.fault(message):
            return refused(error)
        self.live[lba : lba + len(tags)] = tags
        yield
        return OK

    def unmap(self, message):
        yield
        lba, count = message["lba"], message["count"]
        if error := self.fault(message):
            return refused(error)
        self.live[lba : lba + count] = [0] * count
        yield
        return OK

    def read(self, message):
        yield
        lba, count, view = message["lba"], message["count"], message.get("view")
        if error := self.fault(message):
            return refused(error)
        tags = (self.live if view is None else self.snaps[view])[lba : lba + count]
        yield
        return OK | {"tags": tags}

    def snapshot(self, message):
        yield
        if error := self.fault(message):
            return refused(error)
        self.snaps[message["name"]] = list(self.live)
        yield
        return OK

    def delete(self, message):
        yield
        if error := self.fault(message):
            return refused(error)
        del self.snaps[message["name"]]
        yield
        return OK

    def revert(self, message):
        yield
        if error := self.fault(message):
            return refused(error)
        self.live[:] = self.snaps[message["name"]]
        yield
        return OK


def valid(name):
    return 0 < len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)


def serve(disk):
    """Answer requests on stdin as they come, and take steps while none comes."""

    def answer(number):
        def done(response):
            sys.stdout.write(json.dumps(response | {"id": number}) + "\n")
            sys.stdout.flush()

        return done

    while True:
        if disk.flying and not select.select([sys.stdin], [], [], 0)[0]:
            disk.step()
            continue
        line = sys.stdin.buffer.raw.readline()
        if not line or (message := json.loads(line))["op"] == "bye":
            return
        if message["op"] == "hello":
            print(json.dumps({"ok": True, **disk.hello}), flush=True)
        else:
            disk.call(message, answer(message["id"]))


if __name__ == "__main__":
    serve(Disk())
