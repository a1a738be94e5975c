"""A disk that takes several requests at a time and keeps the contract: each step of a request takes
effect at a random moment between its call and its answer. Judges are measured on its traces.
"""

import random
from collections.abc import Callable

from conformance.campaign import overlapping_driver
from conformance.contract import model
from conformance.contract.trace import Event, Trace
from conformance.judging.orders.steps import parts_of
from conformance.programs import overlap
from conformance.selftest.overlapping_histories import answers, joined, pretended
from conformance.targets.base import Message
from conformance.targets.overlapping import InProcess

OK: Message = {"ok": True}


class OverlappingModel:
    """The target. `chance` chooses what takes effect, what is answered, and what a power cut
    leaves."""

    def __init__(self, chance: random.Random, profile: str, atomic: str, in_flight: int = 8):
        self.hello: Message = {
            "name": "the contract",
            "version": "1",
            "protocol": 2,
            "block_size": 512,
            "crash_profile": profile,
            "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"],
            "atomic": atomic,
            "in_flight": in_flight,
            "payload": "tags",
        }
        self._chance = chance
        self._states = model.init(self.hello)
        self._flying: list[_Request] = []

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        """Take a request; `done` is called with its answer at a later step."""
        event: Event = {key: value for key, value in message.items() if key not in ("id", "data")}
        whole = event["op"] not in ("read", "write", "unmap") or "view" in event
        if whole or model.faults_of(self._states[0], event):
            parts = [event]
        else:
            parts = parts_of({**event, **pretended(event)}, self.hello["atomic"] == "block")
        self._flying.append(_Request(event, parts, done))

    def step(self) -> bool:
        """Let one step take effect, or answer a request. Return False if there is none."""
        if not self._flying:
            return False
        request = self._chance.choice(self._flying)
        if request.parts:
            request.given.append(self._effect(request.parts.pop(0)))
            if request.event["op"] == "crash":
                self._flying = [request]  # the power cut ends what is in flight
        else:
            self._flying.remove(request)
            request.done(joined(request.event, request.given))
        return True

    def _effect(self, part: Event) -> Message:
        """Let the part take effect on a possible state. Return the contract's answer."""
        for answer in answers(part, self._states[0]):
            after = model.step(self._states, {**part, "result": answer})
            if after:
                self._states = (self._chance.choice(after),)
                return dict(answer)
        raise AssertionError(part)


class _Request:
    def __init__(self, event: Event, parts: list[Event], done: Callable[[Message], None]):
        self.event, self.parts, self.done = event, parts, done
        self.given: list[Message] = []


def generated(seed: int, ops: int, profile: str, atomic: str, in_flight: int = 8) -> Trace:
    """Return the trace of a generated program of about `ops` requests on this disk."""
    chance = random.Random(seed)
    target = OverlappingModel(chance, profile, atomic, in_flight)
    program = overlap.written(chance, target.hello, ops, in_flight)
    return overlapping_driver.drive(InProcess(target), program, seed, {})  # type: ignore[arg-type]
