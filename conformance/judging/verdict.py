"""Verdicts on traces, and the classes and clauses of failures."""

from dataclasses import dataclass

from conformance.contract.printable import printable
from conformance.contract.trace import Trace, line
from conformance.judging.promises import Broken

CLAUSES = {
    "read": "Read: a view reads as the operations before it left it",
    "snapshot": "Snapshot: a snapshot reads for ever as the live disk read when it was taken",
    "unmap": "Unmap: an unmapped block reads as zeroes until it is written again",
    "refusal": "Answer: a request is refused if and only if it has a fault, with that fault's code",
    "nothing": "Answer: a refused operation changes nothing",
    "ack": "Crash (ack): every acknowledged operation survives a power cut; "
    "one cut short happens whole or not at all",
    "prefix": "Crash (prefix): a power cut keeps the history up to some point, "
    "no earlier than the last flush",
    "block": "Crash (block): each block keeps its value at the last flush or one written since; "
    "an acknowledged snapshot, deletion or revert survives, and is a flush",
    "fua": "Write (fua): a write that carries `fua` is durable when it is answered",
    "restart": "Restart: a disk that is closed cleanly and opened again is as it was",
    "devices": "Devices: while no more fail than are tolerated, no data is lost",
    "scrub": "Scrub: everything that is stored is whole, and no space is lost",
    "space": "Space: a target that declares `holds` has space for that many different blocks",
    "open": "Crash: after a power cut, as after a restart, the disk opens again",
    "inside": "Inside: the engine's inner steps are a behaviour of the specs below the contract",
    "overlap": "Order: some order of the requests, each between its call and its answer, explains "
    "every answer",
    "dialogue": "the dialogue: each request is answered in time, by one JSON object on a line",
}

KINDS = {
    "lost-acknowledgement": "what was acknowledged, and had to survive, "
    "did not survive a power cut or a restart",
    "stale": "a block holds an older value than it should",
    "resurrected": "data that was overwritten, unmapped or reverted away came back",
    "zeroed": "a block reads as zeroes that should hold data",
    "snapshot-bleed": "a snapshot changed after it was taken",
    "refused-write": "a write that was refused took place all the same",
    "misplaced": "misdirected: a block holds what was written to another block",
    "foreign": "leaked: a block holds data that was never written to this disk",
    "torn": "a block mixes sectors of several writes",
    "garbage": "a block holds what the kit never wrote as a block",
    "half-done": "an operation that had to happen whole or not at all happened in part",
    "not-a-prefix": "what survived a power cut is not the state at any point of the history",
    "unopenable": "the disk does not open again",
    "missing-refusal": "a request that has a fault was granted",
    "wrong-refusal": "a request was refused that has no fault, or with the wrong code",
    "lost-snapshot": "a snapshot is gone",
    "resurrected-snapshot": "a snapshot that was deleted came back",
    "lost-data": "data was lost without cause: "
    "no more devices had failed than the target tolerates",
    "scrub": "the target's own scrub reports a problem although no device has failed",
    "false-no-space": "a request was refused for want of space that the target promises to have",
    "inside": "the answers keep the contract, but the inner steps break the specs below it",
    "no-order": "no order of the requests that overlapped explains their answers",
    "hang": "the target did not answer in time",
    "exit": "the target ended, or broke off",
    "protocol": "the target's answer is invalid",
}


NO_ORDER = "no-order"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a trace. `at` is the index of an event; all but `verdict` are empty
    on a pass.
    """

    verdict: str  # pass, fail, inconclusive
    at: int | None = None
    kind: str = ""  # the class of a failure, such as stale or missing-refusal
    clause: str = ""
    expected: str = ""
    actual: str = ""
    source: str = ""  # where the wrong data came from
    excuse: str = ""  # the faults of the media that make a failure none
    reason: str = ""  # why it is inconclusive, or what the target printed
    lba: int | None = None  # the first block of a read that is wrong, or has no order
    undecided: tuple[str, ...] = ()  # the judges that gave up where another one decided

    def words(self, trace: Trace) -> list[str]:
        """Return the verdict for people, a few lines; control characters are escaped."""
        return [printable(text, "\t") for text in self._words(trace)]

    def _words(self, trace: Trace) -> list[str]:
        if self.verdict != "fail" or self.at is None:
            return [f"{self.verdict}: {self.reason}" if self.reason else self.verdict]
        text = [
            f"{self.kind} at operation {self.at}: {line(trace.events[self.at], self.lba)}",
            f"  expected  {self.expected}",
            f"  came      {self.actual}",
        ]
        text += [f"  source    {self.source}"] if self.source else []
        text += [f"  clause    {self.clause}"]
        text += (
            ["  these have no order:" if self.kind == NO_ORDER else "  it printed"]
            + ["    " + part for part in self.reason.splitlines()]
            if self.reason
            else []
        )
        return text


PASS = Verdict("pass")


def disallowed_inside(at: int, inside: str) -> Verdict:
    """Return the verdict that the contract is kept, but an engine's spec forbids its own events."""
    return Verdict(
        "fail",
        at,
        "inside",
        CLAUSES["inside"],
        "an event that the spec of this level allows",
        inside,
    )


PROMISED = {
    "scrub": "scrub",
    "wrong-refusal": "refusal",
    "missing-refusal": "refusal",
    "lost-data": "devices",
}


def broken_promise(promise: Broken) -> Verdict:
    """Return the failure of a target that did not keep a promise beyond the contract of the
    specs.
    """
    clause = CLAUSES[PROMISED.get(promise.kind, "space")]
    return Verdict("fail", promise.at, promise.kind, clause, promise.expected, promise.actual)


WRONG_DATA = frozenset(
    [
        "lost-acknowledgement",
        "stale",
        "resurrected",
        "zeroed",
        "snapshot-bleed",
        "refused-write",
        "misplaced",
        "foreign",
        # Blocks that may each be so, but not together. Without the power cut one of them is wrong
        # by itself.
        "not-a-prefix",
        "half-done",
    ]
)


OF_DIALOGUE = frozenset(["hang", "exit", "protocol"])


def alike(one: Verdict, other: Verdict) -> bool:
    """Return whether two failures may be the same bug.

    What class wrong data is of depends on what else a trace does, and a failure among requests
    that overlap may remain when they do not."""
    kinds = {one.kind, other.kind}
    return len(kinds) == 1 or kinds <= WRONG_DATA or NO_ORDER in kinds and not kinds & OF_DIALOGUE
