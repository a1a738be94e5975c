"""Faults of the disk under the driver, injected on purpose: a judge that misses them would miss them in a driver too."""

from collections.abc import Callable
from pathlib import Path

from conformance.media.logwrites import Write
from conformance.media.recorded import Recorded

Fault = Callable[[list[Write]], list[Write]]


def none(entries: list[Write]) -> list[Write]:
    return entries


FAULTS: dict[str, Fault] = {"none": none}


class Faulty(Recorded):
    """As Recorded, but a fault stands between the log and what a power cut leaves."""

    def __init__(self, disk: Path, log: Path, room: int, fault: Fault):
        super().__init__(disk, log, room)
        self._fault = fault

    def _new(self) -> list[Write]:
        return self._fault(super()._new())
