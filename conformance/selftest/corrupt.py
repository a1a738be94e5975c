"""Good traces that are corrupted on purpose, with one fault each. Every oracle must reject them, at
the same event.

Where `sure` is "construction", no disk at all could have answered so at `at`. Where it is "model",
the contract may allow such an answer now and then (a block may be read stale after a crash), so the
model chose a place where it does not; `at` is where the model rejects it.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conformance.contract.model import answer_of
from conformance.contract.trace import Event, Trace
from conformance.judging.oracles.model import judge_one


@dataclass(frozen=True)
class Corrupted:
    """A bad trace, its kind, the index of the first event that the contract does not allow, and who
    says so.
    """

    trace: Trace
    kind: str
    at: int
    sure: str


Change = tuple[int, Event | None]  # the event at an index becomes another; None: it is left out
Corruption = Callable[[Trace, random.Random], Iterator[Change]]

TRIES = 40  # places that are tried before a kind is given up for a trace
INVENTED = 2**31 - 1  # a tag that no trace writes
CONSTRUCTED: dict[str, Corruption] = {}
CHOSEN: dict[str, Corruption] = {}


def corrupt(trace: Trace, kind: str, seed: int) -> Corrupted | None:
    """Return the trace with a fault of that kind, at a place chosen by the seed; None if there is
    no place for it.
    """
    choose = random.Random(f"{kind} {seed}")
    if kind in CONSTRUCTED:
        for at, event in CONSTRUCTED[kind](trace, choose):
            return Corrupted(_changed(trace, at, event), kind, at, "construction")
        return None
    for _, (at, event) in zip(range(TRIES), CHOSEN[kind](trace, choose), strict=False):
        bad = _changed(trace, at, event)
        opinion = judge_one(bad)
        if opinion.at is not None:
            return Corrupted(bad, kind, opinion.at, "model")
    return None


def _changed(trace: Trace, at: int, event: Event | None) -> Trace:
    events = [*trace.events[:at], *([event] if event is not None else []), *trace.events[at + 1 :]]
    return Trace(trace.hello, events, trace.seed, trace.options)


def _constructed(function: Corruption) -> Corruption:
    CONSTRUCTED[function.__name__.replace("_", "-")] = function
    return function


def _chosen(function: Corruption) -> Corruption:
    CHOSEN[function.__name__.replace("_", "-")] = function
    return function


def _shuffled(
    trace: Trace, choose: random.Random, *ops: str, answers: tuple[str, ...] = ("ok",)
) -> Iterator[tuple[int, Event]]:
    """Return the events of these operations with these answers, in a random order."""
    places = [
        index
        for index, event in enumerate(trace.events)
        if event["op"] in ops and answer_of(event) in answers
    ]
    choose.shuffle(places)
    return ((index, trace.events[index]) for index in places)


def _with_tags(event: Event, tags: list[int]) -> Event:
    return {**event, "result": {"ok": True, "tags": tags}}


def _refused(event: Event, code: str) -> Event:
    return {**event, "result": {"ok": False, "error": code}}


def _with_one(event: Event, at: int, tag: int) -> Event:
    tags = list(event["result"]["tags"])
    tags[at] = tag
    return _with_tags(event, tags)


def _earlier_tags(trace: Trace, before: int, lba: int) -> list[int]:
    """Return what was written to the block before that event, the newest first, and zero."""
    tags = [
        event["tags"][lba - event["lba"]]
        for event in reversed(trace.events[:before])
        if event["op"] == "write" and event["lba"] <= lba < event["lba"] + len(event["tags"])
    ]
    return [*tags, 0]


FAULTS = ("out-of-range", "no-such-snapshot", "snapshot-exists", "bad-request")


@_constructed
def invented_data(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A read returns data that was never written."""
    for at, event in _shuffled(trace, choose, "read"):
        yield at, _with_one(event, choose.randrange(event["count"]), INVENTED)


@_constructed
def refusal_without_a_fault(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A granted request is refused with a code that this operation never has."""
    for at, event in _shuffled(
        trace, choose, "write", "unmap", "read", "flush", "restart", "snapshot", "delete"
    ):
        yield (
            at,
            _refused(event, "snapshot-exists" if event["op"] != "snapshot" else "out-of-range"),
        )


@_constructed
def wrong_code(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A refusal that is due comes with a code that this operation never has."""
    for at, event in _shuffled(
        trace, choose, "write", "unmap", "read", "snapshot", "delete", "revert", answers=FAULTS
    ):
        yield (
            at,
            _refused(event, "snapshot-exists" if event["op"] != "snapshot" else "out-of-range"),
        )


@_constructed
def does_not_open(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A crash or a restart ends in a refusal."""
    for at, event in _shuffled(trace, choose, "crash", "restart"):
        yield at, _refused(event, "no-space")


@_constructed
def delete_out_of_space(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A delete is refused for want of space, which it is there to make."""
    for at, event in _shuffled(trace, choose, "delete"):
        yield at, _refused(event, "no-space")


@_chosen
def missing_refusal(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A request that must be refused is granted."""
    for at, event in _shuffled(
        trace, choose, "write", "unmap", "snapshot", "delete", "revert", answers=FAULTS
    ):
        yield at, {**event, "result": {"ok": True}}


@_chosen
def missing_refusal_of_a_read(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A read past the end, or of no snapshot, returns zeroes."""
    for at, event in _shuffled(trace, choose, "read", answers=FAULTS):
        if event["count"] <= 4096:
            yield at, _with_tags(event, [0] * event["count"])


@_chosen
def stale_read(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A block of the live disk reads as it did earlier."""
    for at, event in _shuffled(trace, choose, "read"):
        if event.get("view") is None:
            block = choose.randrange(event["count"])
            now = event["result"]["tags"][block]
            older = [tag for tag in _earlier_tags(trace, at, event["lba"] + block) if tag != now]
            if now and older:
                yield at, _with_one(event, block, older[0])


@_chosen
def resurrected_block(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A block that is zero reads as what it held before."""
    for at, event in _shuffled(trace, choose, "read"):
        zeroes = [block for block, tag in enumerate(event["result"]["tags"]) if tag == 0]
        if zeroes:
            block = choose.choice(zeroes)
            yield at, _with_one(event, block, _earlier_tags(trace, at, event["lba"] + block)[0])


@_chosen
def swapped_blocks(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """Two neighbours are read in each other's place."""
    for at, event in _shuffled(trace, choose, "read"):
        tags = list(event["result"]["tags"])
        if len(tags) > 1:
            block = choose.randrange(len(tags) - 1)
            tags[block], tags[block + 1] = tags[block + 1], tags[block]
            yield at, _with_tags(event, tags)


@_chosen
def other_view(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A read returns what another view held there."""
    reads = list(_shuffled(trace, choose, "read"))
    for at, event in reads:
        for _, other in reads:
            same_place = (other["lba"], other["count"]) == (event["lba"], event["count"])
            if same_place and other.get("view") != event.get("view"):
                yield at, _with_tags(event, other["result"]["tags"])


@_chosen
def changed_snapshot(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A snapshot holds what was written after it was taken."""
    for at, event in _shuffled(trace, choose, "read"):
        if event.get("view") is not None:
            block = choose.randrange(event["count"])
            yield at, _with_one(event, block, _earlier_tags(trace, at, event["lba"] + block)[0])


@_chosen
def lost_by_a_crash(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """After a crash or a restart, a block is zero again."""
    for crash, _ in _shuffled(trace, choose, "crash", "restart"):
        for at in range(crash + 1, min(crash + 6, len(trace.events))):
            event = trace.events[at]
            if event["op"] == "read" and answer_of(event) == "ok" and any(event["result"]["tags"]):
                block = choose.choice(
                    [block for block, tag in enumerate(event["result"]["tags"]) if tag]
                )
                yield at, _with_one(event, block, 0)
                break


@_chosen
def torn_in_two(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """After a crash, one of the blocks of a write is there and the others are not."""
    for at, event in _shuffled(trace, choose, "read"):
        tags = event["result"]["tags"]
        for write in (e for e in trace.events[:at] if e["op"] == "write" and len(e["tags"]) > 1):
            first = write["lba"] - event["lba"]
            if first >= 0 and tags[first : first + len(write["tags"])] == write["tags"]:
                yield (
                    at,
                    _with_one(
                        event,
                        first,
                        _earlier_tags(trace, trace.events.index(write), write["lba"])[0],
                    ),
                )


@_chosen
def write_that_was_never_sent(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A write is missing from the trace, but not from the disk."""
    for at, _ in _shuffled(trace, choose, "write"):
        yield at, None


@_chosen
def revert_that_was_never_sent(trace: Trace, choose: random.Random) -> Iterator[Change]:
    """A revert, a delete, a snapshot or an unmap is missing from the trace, but not from the
    disk.
    """
    for at, _ in _shuffled(trace, choose, "revert", "delete", "snapshot", "unmap"):
        yield at, None


KINDS = (*CONSTRUCTED, *CHOSEN)
