"""The device of a racing program that fails, comes back, and catches up while requests overlap."""

import random
from collections.abc import Sequence

from conformance.programs.situation import ABSENT, DEGRADED, failure
from conformance.targets.base import Message

COMES_BACK = 0.5  # share of the pauses, while the device is away, in which it comes back
RETURNS = 0.5  # share of the devices that return as they are, if they can; others are replaced


class RacingDevice:
    """One device at a time, of so many `devices`: a second one may be more than is tolerated."""

    def __init__(self, choose: random.Random, devices: int, faults: Sequence[str]) -> None:
        self._choose, self._devices, self._faults = choose, devices, faults
        self._failed: int | None = None  # until it has caught up
        self._absent = False  # whether it may return as it is
        self.back = False  # whether it has come back, and lacks something until `settle`

    def comes_back(self) -> bool:
        """Draw whether a device that is away comes back now."""
        away = self._failed is not None and not self.back
        return away and self._choose.random() < COMES_BACK

    def fail(self) -> Message:
        """Let a device fail: the one that has failed already, if there is one. If it did so for
        good, it stays so."""
        stays = self._failed is not None and not self._absent and not self.back
        if self._failed is None:
            self._failed = self._choose.randrange(self._devices)
        how = self._choose.choice([ABSENT, DEGRADED, *self._faults])
        self._absent, self.back = how == ABSENT and not stays, False
        return {"op": "fail", "device": self._failed, **failure(how, self._faults)}

    def come_back(self) -> Message:
        """Let the device that failed come back, or a blank one in its place."""
        returns = self._absent and self._choose.random() < RETURNS
        self.back = True
        return {"op": "return" if returns else "replace", "device": self._failed}

    def settle(self) -> None:
        """Note that it catches up, if it is back. Otherwise a spare may be in its place."""
        self._absent = False
        if self.back:
            self._failed, self.back = None, False
