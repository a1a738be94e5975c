"""A virtual disk that takes eight requests at a time: version 2 of the dialogue, in one file.

Each request is a generator: between two `yield`s it takes one step, and a seeded chooser says whose
step is next. So every run can be repeated. Run as a program it speaks the dialogue on stdin and
stdout; `python:overlapping_disk:Disk` uses it in process.
"""

import json
import random
import select
import sys
from collections.abc import Callable, Generator
from typing import Any

Message = dict[str, Any]
Steps = Generator[None, None, Message]  # a request under way: it returns its answer

OK: Message = {"ok": True}
HELLO: Message = {
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


def refused(error: str) -> Message:
    """Return a refusal with an error code of the contract."""
    return {"ok": False, "error": error, "message": error}


class Disk:
    """The disk. `call` starts a request, `step` takes one step of one of them."""

    def __init__(self, options: Message | None = None) -> None:
        self.hello = dict(HELLO)
        self.seed = (options or {}).get("seed", 0)
        self.flying: list[list[Any]] = []  # the steps, and what to call with the answer
        self.live: list[int] = []
        self.snaps: dict[str, list[int]] = {}

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        """Start a request; `done` is called with its answer."""
        if message["op"] in ("create", "crash"):
            self.flying.clear()  # a power cut ends everything that is in flight
            done(getattr(self, message["op"])(message))
        else:
            self.flying.append([getattr(self, message["op"])(message), done])

    def step(self) -> bool:
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

    def request(self, message: Message) -> Message:
        """Return the answer to one request alone."""
        answers: list[Message] = []
        self.call(message, answers.append)
        while not answers:
            self.step()
        return answers[0]

    def close(self) -> None:
        """Forget what is in flight."""
        self.flying.clear()

    def create(self, message: Message) -> Message:
        """Make a zero-filled disk; forget any earlier one."""
        self.choose = random.Random(self.seed)
        self.live, self.snaps = [0] * message["blocks"], {}
        return OK

    def crash(self, message: Message) -> Message:
        """Cut the power and recover."""
        return OK  # every change that took effect is durable: the profile is ack

    def fault(self, message: Message) -> str | None:
        """Return the code that the request must be refused with, or None."""
        if "lba" in message:
            count = len(message["tags"]) if "tags" in message else message["count"]
            if message["lba"] + count > len(self.live):
                return "out-of-range"
        name = message.get("name", message.get("view"))
        if message["op"] == "snapshot":
            if not valid(message["name"]):
                return "bad-request"
            return "snapshot-exists" if name in self.snaps else None
        return "no-such-snapshot" if name is not None and name not in self.snaps else None

    def restart(self, message: Message) -> Steps:
        """Close the disk and open it."""
        yield
        return OK

    def flush(self, message: Message) -> Steps:
        """Make durable what was written before."""
        yield
        return OK

    def write(self, message: Message) -> Steps:
        """Write blocks from `lba` on."""
        yield
        if error := self.fault(message):
            return refused(error)
        self.live[message["lba"] : message["lba"] + len(message["tags"])] = message["tags"]
        yield
        return OK

    def unmap(self, message: Message) -> Steps:
        """Make blocks read as zeroes."""
        yield
        if error := self.fault(message):
            return refused(error)
        zeroes = [0] * message["count"]
        self.live[message["lba"] : message["lba"] + len(zeroes)] = zeroes
        return OK

    def read(self, message: Message) -> Steps:
        """Read blocks of a snapshot or of the live disk."""
        yield
        if error := self.fault(message):
            return refused(error)
        blocks = self.snaps.get(message.get("view", ""), self.live)
        tags = blocks[message["lba"] : message["lba"] + message["count"]]
        yield
        return OK | {"tags": tags}

    def snapshot(self, message: Message) -> Steps:
        """Keep the live disk as it is now under a name."""
        yield
        if error := self.fault(message):
            return refused(error)
        self.snaps[message["name"]] = list(self.live)
        yield
        return OK

    def delete(self, message: Message) -> Steps:
        """Delete a snapshot."""
        yield
        if error := self.fault(message):
            return refused(error)
        del self.snaps[message["name"]]
        return OK

    def revert(self, message: Message) -> Steps:
        """Make the live disk a copy of a snapshot."""
        yield
        if error := self.fault(message):
            return refused(error)
        self.live[:] = self.snaps[message["name"]]
        return OK


def valid(name: str) -> bool:
    """Return whether the contract allows this name of a snapshot."""
    return 0 < len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)


def serve(disk: Disk) -> None:
    """Answer requests on stdin as they come, and take steps while none comes."""

    def answer(number: int) -> Callable[[Message], None]:
        def done(response: Message) -> None:
            sys.stdout.write(json.dumps(response | {"id": number}) + "\n")
            sys.stdout.flush()

        return done

    stdin = open(0, "rb", buffering=0)  # noqa: SIM115  # a buffer would hide from select
    while True:
        if disk.flying and not select.select([stdin], [], [], 0)[0]:
            disk.step()
            continue
        line = stdin.readline()
        if not line or (message := json.loads(line))["op"] == "bye":
            return
        if message["op"] == "hello":
            print(json.dumps({"ok": True, **disk.hello}), flush=True)
        else:
            disk.call(message, answer(message["id"]))


if __name__ == "__main__":
    serve(Disk())
