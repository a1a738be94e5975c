"""An array that does by chance all that is allowed passes: no correct target is accused."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance import strategies
from conformance.campaign.random_campaign import campaign
from conformance.contract import model
from conformance.judging.oracles import named
from conformance.targets import Factory
from conformance.targets.base import Message, PowerCut
from conformance.targets.model import ModelTarget

DEVICE_OPS = ("fail", "return", "replace", "settle", "tick")
# How they are refused, if they have no fault; in place of no-space also with an unknown outcome.
MAY_BE_REFUSED = {
    **dict.fromkeys(("write", "unmap", "snapshot", "revert"), "no-space"),
    **dict.fromkeys(("delete", "flush"), "unknown-outcome"),
    **dict.fromkeys(("clean", "checkpoint"), "data-lost"),
}
BACK = "back"  # of a device that lacks something until the disk has settled


class FreeArray(ModelTarget):
    """The contract as an array of devices. What the contract leaves open, it does by chance."""

    knobs = {**ModelTarget.knobs, "tolerates": [0, 1, 2], "obliging": [0, 1]}

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.hello |= {"devices": 4, "tolerates": options["tolerates"]}
        self.hello["capabilities"] = [*self.hello["capabilities"], "device", "scrub"]
        self._states = model.init(self.hello)
        self._refuses = 0.0 if options["obliging"] else 0.5  # what it may refuse
        self._forget()

    def _forget(self) -> None:
        self._lacking: dict[int, str] = {}  # device -> absent, degraded or back
        self._lost = False
        self._incomplete = False  # whether a device was replaced, and has not caught up

    @property
    def _beyond(self) -> bool:
        return self._lost or len(self._lacking) > self.hello["tolerates"]

    @property
    def _lacks_too_much(self) -> bool:
        """True if not every device is back with all that it had."""
        return self._incomplete or not {*self._lacking.values()} <= {BACK}

    def request(self, message: Message) -> Message:
        op = message["op"]
        if op == "create":
            self._forget()
        if op in DEVICE_OPS:
            return self._of_devices(op, message)
        if op == "scrub":
            return self._answered(message, {"ok": True, "problems": []})
        if op == "read" and self._beyond and self._random.random() < 0.5:
            return {"ok": False, "error": "data-lost"}
        seldom = op in MAY_BE_REFUSED and self._random.random() < self._refuses / 20
        if seldom and not model.faults_of(self._states[0], message):
            return self._answered(message, {"ok": False, "error": MAY_BE_REFUSED[op]})
        return super().request(message)

    def _of_devices(self, op: str, message: Message) -> Message:
        device, luck = message.get("device", -1), self._random
        state = self._lacking.get(device)
        due = {
            "fail": state in (None, BACK),
            "return": state == "absent",
            "replace": state in ("absent", "degraded"),
        }.get(op, True)
        if "cut" in message and luck.random() < 0.5:
            if luck.random() < 0.5:
                self._do(op, device, message)
            self._states = model.step(self._states, {**message, "result": None})
            raise PowerCut
        if op == "settle" and self._lacks_too_much and luck.random() < self._refuses:
            return self._answered(message, {"ok": False, "error": "data-lost"})
        if (not due or self._beyond and op in ("fail", "return", "replace")) and (
            luck.random() < self._refuses
        ):
            return self._answered(message, {"ok": False, "error": "bad-request"})
        self._do(op, device, message)
        return self._answered(message, {"ok": True})

    def _do(self, op: str, device: int, message: Message) -> None:
        if op == "fail":
            self._lacking[device] = message["mode"]
        elif op == "replace":
            self._lacking[device] = BACK
            self._lost, self._incomplete = self._lost or self._beyond, True
        elif op == "return" and device in self._lacking:
            self._lacking[device] = BACK
        elif op == "settle":
            self._lacking = {one: how for one, how in self._lacking.items() if how != BACK}
            self._incomplete = self._lost or self._incomplete and bool(self._lacking)

    def _answered(self, message: Message, result: Message) -> Message:
        """Note the answer, and return it. One of several outcomes is chosen by chance."""
        if result.get("error") == "no-space" and self._random.randrange(2):
            result = {"ok": False, "error": "unknown-outcome"}
        after = model.step(self._states, {**message, "result": result})
        self._states = (self._random.choice(after),)
        return result


@pytest.mark.parametrize("seed", range(3))
def test_an_array_that_does_all_that_is_allowed_passes(seed: int) -> None:
    factory = Factory("free array", FreeArray, {"seed": seed}, FreeArray.knobs)
    result = campaign(factory, count=100, ops=30, seed=seed, oracles={"model": named("model")})
    assert result.verdict == "pass", result.failures and result.failures[0].verdict
    refused = {op for op, answer in result.coverage if answer == "bad-request"}
    assert refused >= {"fail", "return", "replace"}


def test_it_passes_the_state_machine() -> None:
    machine = strategies.machine(Factory("free array", FreeArray, {"seed": 1}, FreeArray.knobs))
    quick = settings(
        max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=quick)
