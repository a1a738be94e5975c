"""The results of a campaign."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from conformance.campaign.overlap import Overlap
from conformance.contract.coverage import Coverage, Outcome
from conformance.contract.trace import Passed, Trace
from conformance.judging.explain import Verdict

MOST_FAILURES = 3  # a campaign ends after as many, unless told otherwise

# What may happen in a declared operation, as rows of the coverage: those that never happened are
# shown too.
OUTCOMES = {
    "write": ("ok", "out-of-range", "no-space", "cut"),
    "read": ("ok", "out-of-range", "no-such-snapshot"),
    "unmap": ("ok", "out-of-range", "no-space", "cut"),
    "flush": ("ok", "cut"),
    "snapshot": ("ok", "snapshot-exists", "bad-request", "no-space", "cut"),
    "delete": ("ok", "no-such-snapshot", "cut"),
    "revert": ("ok", "no-such-snapshot", "no-space", "cut"),
    "crash": ("ok", "cut"),
    "restart": ("ok", "cut"),
    "clean": ("ok", "cut"),
    "checkpoint": ("ok", "cut"),
    "scrub": ("ok",),
    "fail": ("ok", "cut"),
    "return": ("ok", "cut"),
    "replace": ("ok", "cut"),
    "tick": ("ok", "cut"),
    "settle": ("ok", "cut"),
}


@dataclass(frozen=True)
class Failure:
    """A trace that failed, as short as it could be made, and how long it was."""

    trace: Trace
    verdict: Verdict
    number: int | None  # the trace's number in the campaign; None: kept from an earlier run
    before: int  # operations before shrinking
    failed: int = 1  # how many of `repeats` runs of the shrunk trace failed
    repeats: int = 1  # 0 if it was never sent again
    unfinished: bool = False  # shrinking ended early, or what failed was not seen again
    usual: Sequence[str] = ()  # options of the disk that have their usual value

    @property
    def on_file(self) -> Trace:
        """The trace as it is written to a file: it says how far it was shrunk."""
        return replace(self.trace, before=self.before, unfinished=self.unfinished)

    @property
    def flaky(self) -> bool:
        """True if the failure did not come back each time."""
        return self.failed < self.repeats


@dataclass
class Campaign:
    """The results of many traces."""

    target: str
    seed: int
    ops: int = 30  # requested operations per trace
    judged: dict[int, tuple[Trace | Passed, Verdict]] = field(default_factory=dict)  # by number
    failures: list[Failure] = field(default_factory=list)
    happened: Coverage = field(default_factory=Coverage)
    counters: Counter[str] = field(default_factory=Counter)  # the target's own
    skipped: list[str] = field(default_factory=list)  # capabilities not declared
    reason: str = ""  # why the campaign is inconclusive
    output: str = ""  # the output of an unusable target
    seconds: float = 0.0
    most_failures: int = MOST_FAILURES
    judges: tuple[str, ...] = ()  # the oracles that judged every trace
    without: tuple[str, ...] = ()  # capabilities that were left out though the target may have them
    declared: frozenset[str] = frozenset()  # what can be asked for: capabilities, IN_FLIGHT
    unasked: frozenset[str] = frozenset()  # the others that the target declares
    interrupted: bool = False  # Ctrl-C or SIGTERM ended it before it was complete
    shrinking: bool = False  # a failure is being shrunk
    usual: bool = True  # power cuts are random, and as many requests are in flight as usual
    how: str = ""  # other options of the command that ran it
    workloads: int = 0  # number of workloads of an exhaustive campaign
    faults: tuple[str, ...] = ()  # faults of the media, by name
    excused: Counter[str] = field(
        default_factory=Counter
    )  # class -> failures that an honest engine may show under these faults
    resumed: int = 0  # number of those that had passed before
    states: int = 0  # crash states that were opened
    overlap: Overlap | None = None  # rounds of overlapping requests, if the run had any

    @property
    def operations(self) -> int:
        """The operations of all traces."""
        return sum(trace.operations for trace, _ in self.judged.values())

    @property
    def crashes(self) -> int:
        """The power cuts of all traces."""
        return sum(trace.crashes for trace, _ in self.judged.values())

    @property
    def coverage(self) -> Counter[Outcome]:
        """(operation, outcome) -> times."""
        return self.happened.outcomes

    @property
    def undecided(self) -> Counter[str]:
        """Number of traces, by judge, that it gave up on although another judge decided them."""
        return Counter(name for _, verdict in self.judged.values() for name in verdict.undecided)

    @property
    def verdict(self) -> str:
        """fail if any trace failed, else inconclusive if anything is, else pass.

        A judge that decided no trace at all makes it inconclusive, one that gave up on some does
        not."""
        overlap = self.overlap.verdict if self.overlap else "pass"
        if self.failures or overlap == "fail":
            return "fail"
        unclear = (
            self.reason
            or self.interrupted
            or overlap != "pass"
            or not (self.judged or self.resumed)
            or any(v.verdict != "pass" for _, v in self.judged.values())
            or len(self.judged) in self.undecided.values()
        )
        return "inconclusive" if unclear else "pass"
