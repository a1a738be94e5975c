"""The time that the model takes to judge long histories of overlapping requests."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.judging.oracles.model import judge_one
from conformance.selftest.overlapping_model import generated

PROFILES = ("ack", "prefix", "block")
STEPS = ("request", "block")  # one step of the order


@dataclass(frozen=True)
class JudgeSpeed:
    """The cost of judging honest histories of one profile and granularity.

    `seconds` of CPU time for each history, in ascending order."""

    profile: str
    atomic: str
    operations: int
    seconds: list[float]
    undecided: int
    rejected: int  # the judge is wrong

    def at(self, share: float) -> float:
        """Return the seconds within which this share of the histories was judged."""
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


def measure(histories: int, ops: int, in_flight: int, seed: int) -> Iterator[JudgeSpeed]:
    """Judge histories of each profile and granularity, as the generator makes them.

    They have power cuts, snapshots, and up to `in_flight` requests at once, at a power cut too. The
    disk keeps the contract, and lets each step take effect at a random moment.
    """
    for profile in PROFILES:
        for atomic in STEPS:
            seconds: list[float] = []
            operations = undecided = rejected = 0
            for number in range(histories):
                trace = generated(seed + number, ops, profile, atomic, in_flight)
                began = time.process_time()
                opinion = judge_one(trace)
                seconds.append(time.process_time() - began)
                operations += trace.operations
                undecided += bool(opinion.unsure)
                rejected += opinion.at is not None
            yield JudgeSpeed(profile, atomic, operations, sorted(seconds), undecided, rejected)
