"""A target may lose data for good once too many of its devices were away: then no changes come."""

from typing import Any

import pytest

from conformance.campaign.driver import drive
from conformance.campaign.overlapping_driver import drive as drive_overlapping
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import model
from conformance.targets.base import Message, PowerCut
from conformance.targets.overlapping import calls

FAIL: list[dict[str, Any]] = [
    {"op": "fail", "device": device, "mode": "absent"} for device in (0, 1)
]
RETURN: list[dict[str, Any]] = [{"op": "return", "device": device} for device in (0, 1)]
WRITE: dict[str, Any] = {"op": "write", "lba": 0, "tags": [7]}
READ: dict[str, Any] = {"op": "read", "lba": 0, "count": 4}
SETTLE: dict[str, Any] = {"op": "settle"}


class LosesForGood:
    """A disk that stays lost once more devices were away than the one that it tolerates.

    With `heals` a second `settle` brings it back.
    """

    def __init__(self, heals: bool = False) -> None:
        self.hello: Message = {
            "ok": True,
            "block_size": 512,
            "crash_profile": None,
            "capabilities": ["device"],
            "devices": 2,
            "tolerates": 1,
            "payload": "tags",
        }
        self._away: set[int] = set()
        self._lost, self._heals, self._tags = False, heals, [0] * 4

    def request(self, message: Message) -> Message:
        """Answer a request."""
        match message["op"]:
            case "fail":
                self._away.add(message["device"])
                self._lost = self._lost or len(self._away) > 1
            case "return":
                self._away.discard(message["device"])
            case "read" | "write" | "settle" if self._lost:
                self._lost = not (self._heals and message["op"] == "settle")
                return {"ok": False, "error": "data-lost", "message": "for good"}
            case "write":
                self._tags[message["lba"]] = message["tags"][0]
            case "read":
                return {"ok": True, "tags": self._tags}
        return {"ok": True}

    def close(self) -> None:
        """Do nothing."""


def sent(program: list[dict[str, Any]], heals: bool, overlapping: bool) -> Trace:
    target, program = LosesForGood(heals), [{"op": "create", "blocks": 4}, *program]
    trace = drive_overlapping(calls(target), program) if overlapping else drive(target, program)
    assert judge([trace], {"model": model.judge})[0].verdict == "pass"
    return trace


@pytest.mark.parametrize("overlapping", [False, True])
def test_no_changes_come_until_a_settle_is_granted(overlapping: bool) -> None:
    outage = [WRITE, *FAIL, *RETURN, SETTLE, WRITE, READ]
    ops = [event["op"] for event in sent([*outage, SETTLE, WRITE], False, overlapping).events]
    assert ops.count("write") == 1 and ops[-2:] == ["read", "settle"]
    trace = sent([*outage, SETTLE, WRITE, READ], True, overlapping)
    assert [event["op"] for event in trace.events].count("write") == 2
    assert trace.events[-1]["result"]["ok"]


@pytest.mark.parametrize("overlapping", [False, True])
def test_within_the_redundancy_they_do(overlapping: bool) -> None:
    program = [WRITE, FAIL[0], RETURN[0], SETTLE, FAIL[1], WRITE, READ]
    ops = [event["op"] for event in sent(program, False, overlapping).events]
    assert ops.count("write") == 2


def test_a_device_that_failed_when_the_power_did_counts() -> None:
    """In flight or not, a `fail` that was cut short may have taken effect."""

    class Cuts(LosesForGood):
        cuts = True

        def request(self, message: Message) -> Message:
            answer = super().request(message)
            if message.get("cut"):
                raise PowerCut
            return answer

    program = [FAIL[0], {**FAIL[1], "cut": {"after": 1, "seed": 1}}, *RETURN, SETTLE, WRITE]
    for drives in (drive, lambda target, program: drive_overlapping(calls(target), program)):
        events = drives(Cuts(), [{"op": "create", "blocks": 4}, *program]).events
        assert [event["op"] for event in events if event["op"] in ("settle", "write")] == ["settle"]
