"""Requests that overlap: the checker against all orders, a device that caches, and qemu-nbd with
four connections.
"""

import random
import threading
import time
from itertools import permutations
from typing import Any

import pytest
from click.testing import CliRunner

from conformance import targets
from conformance.campaign import overlap
from conformance.cli import main
from conformance.judging.linearizable import FOREVER, Call, judge
from conformance.media import nbd
from conformance.targets.base import Message


def by_all_orders(calls: list[Call]) -> str:
    """Return whether some order keeps what was answered before something else was invoked, and
    makes every read right: the definition."""
    unanswered = [call for call in calls if call.returned == FOREVER]
    for dropped in range(1 << len(unanswered)):
        kept = [
            call
            for call in calls
            if call not in unanswered or not dropped >> unanswered.index(call) & 1
        ]
        for order in permutations(kept):
            if all(
                not later.returned < earlier.invoked
                for i, earlier in enumerate(order)
                for later in order[i + 1 :]
            ):
                held = 0
                for call in order:
                    if call.op == "read" and call.tag != held:
                        break
                    held = call.tag
                else:
                    return "pass"
    return "fail"


def test_it_agrees_with_the_definition() -> None:
    choose, found = random.Random(1), []
    for _ in range(1500):
        calls = []
        for number in range(choose.randint(2, 6)):
            invoked = choose.randrange(10)
            op = choose.choice(["write", "read"])
            returned = (
                invoked + 1 + choose.randrange(6)
                if op == "read" or choose.random() < 0.8
                else FOREVER
            )
            calls.append(
                Call(
                    op,
                    0,
                    number + 1 if op == "write" else choose.randrange(5),
                    invoked + number / 100,
                    returned + number / 100,
                )
            )
        found.append(by_all_orders(calls))
        assert judge(calls).verdict == found[-1], calls
    assert found.count("pass") > 100 < found.count("fail")


def test_blocks_are_judged_each_by_itself_and_the_culprit_is_named() -> None:
    calls = [
        Call("write", 0, 1, 0, 1),
        Call("write", 1, 2, 0, 1),
        Call("read", 0, 1, 2, 3),
        Call("read", 1, 0, 2, 3),
    ]
    opinion = judge(calls)
    assert opinion.verdict == "fail" and opinion.lba == 1 and opinion.stuck == (calls[3],)


def test_it_gives_up_and_says_so() -> None:
    calls = [Call("write", 0, number, 0, 10) for number in range(1, 15)] + [
        Call("read", 0, 99, 11, 12)
    ]
    assert judge(calls, most_steps=500).verdict == "inconclusive"
    assert judge(calls + [Call("read", 1, 5, 0, 1)], most_steps=500).verdict == "fail", (
        "a failure is sure"
    )


class Shared:
    """A disk in memory; with `delay`, connections answer reads from a cache that they refresh now
    and then.
    """

    def __init__(self, caches: bool) -> None:
        self.content, self.lock, self.caches = bytearray(512 * 8), threading.Lock(), caches

    def connect(self) -> "Connection":
        return Connection(self)


class Connection:
    def __init__(self, disk: Shared) -> None:
        self.disk, self.reads = disk, 0
        self.kept: bytes | None = None

    def write(self, offset: int, data: bytes) -> None:
        with self.disk.lock:
            self.disk.content[offset : offset + len(data)] = data
        time.sleep(0)

    def read(self, offset: int, length: int) -> bytes:
        self.reads += 1
        with self.disk.lock:
            if self.kept is None or not self.disk.caches or self.reads % 8 == 0:
                self.kept = bytes(self.disk.content)
        return self.kept[offset : offset + length]

    def close(self) -> None:
        pass


@pytest.mark.parametrize("caches, verdict", [(False, "pass"), (True, "fail")])
def test_a_cache_that_other_connections_write_behind_is_found(caches: bool, verdict: str) -> None:
    assert judge(overlap.drive(Shared(caches).connect, 4, 200, seed=1)).verdict == verdict


def test_what_nobody_wrote_is_said() -> None:
    disk = Shared(False)
    disk.content[:] = b"x" * len(disk.content)
    with pytest.raises(overlap.Wrong, match="foreign"):
        overlap.drive(disk.connect, 2, 50, seed=1)


class Disk:
    """A target in memory, whose connections may read from caches of their own; with `loses`, a
    power cut undoes a write.
    """

    hello = {
        "ok": True,
        "name": "shared",
        "version": "1",
        "block_size": 512,
        "crash_profile": "block",
        "capabilities": ["flush", "crash"],
        "devices": 1,
        "tolerates": 0,
    }
    caches = loses = False

    def __init__(self, options: dict[str, Any]) -> None:
        self.disk = Shared(self.caches)
        self.connect = self.disk.connect

    def request(self, message: Message) -> Message:
        op, at = message["op"], message.get("lba", 0) * 512
        match op:
            case "create":
                self.disk.content[:] = bytes(len(self.disk.content))
                self.end = message["blocks"] * 512
            case "write" if at + len(message["data"]) <= self.end:
                self.disk.content[at : at + len(message["data"])] = message["data"]
            case "read" if at + message["count"] * 512 <= self.end:
                return {
                    "ok": True,
                    "data": bytes(self.disk.content[at : at + message["count"] * 512]),
                }
            case "read" | "write":
                return {"ok": False, "error": "out-of-range"}
            case "crash" if self.loses:
                self.disk.content[:512] = bytes(512)
        return {"ok": True}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("fault, verdict", [(None, "pass"), ("caches", "fail"), ("loses", "fail")])
def test_a_target_with_connections_is_judged_by_rounds(
    fault: str | None, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault:
        monkeypatch.setattr(Disk, fault, True)
    found = overlap.run(
        targets.Factory("shared", Disk), connections=4, rounds=3, requests=100, seed=1
    )
    assert found.verdict == verdict, found
    assert found.rounds == 3 or verdict == "fail" and "no order explains read of tag" in found.said


def test_rounds_are_inconclusive_where_the_checker_gives_up_or_requests_cannot_overlap() -> None:
    found = overlap.run(targets.Factory("shared", Disk), 4, 1, 100, seed=1, most_steps=3)
    assert found.verdict == "inconclusive" and found.rounds == 1
    said = CliRunner().invoke(main, ["run", "--target", "model", "--traces", "2", "--overlap", "3"])
    assert said.exit_code == 3 and "one request at a time" in " ".join(said.output.split())


def test_a_connection_that_breaks_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: nbd.NbdDevice, offset: int, length: int) -> None:
        raise nbd.NbdError("broken pipe", 32)

    monkeypatch.setattr(Connection, "read", refuse)
    found = overlap.run(targets.Factory("shared", Disk), 2, 2, 20, seed=1)
    assert found.verdict == "fail" and "broken pipe" in found.said


def test_no_server_is_inconclusive() -> None:
    done = CliRunner().invoke(main, ["overlap", "nbd+unix:///?socket=/nonexistent"])
    assert (
        done.exit_code == 3 and "Traceback" not in done.output and "inconclusive: " in done.output
    )
