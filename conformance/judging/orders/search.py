"""The judge of requests that overlap: whether there is an order, and if not, at which answer."""

from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field, replace

from conformance.contract import model
from conformance.contract.trace import Event, Trace
from conformance.judging.orders.budget import TooMany
from conformance.judging.orders.columns import named_blocks
from conformance.judging.orders.extents import by_extent
from conformance.judging.orders.steps import OF_BLOCKS, by_block, may_be_whole, placed, until
from conformance.judging.orders.walk import Search

# Steps of the contract, each of one block or of the whole disk.
MOST_STEPS = 400_000  # for one trace, block by block
WHOLE_STEPS = 4_000  # steps with the whole disk, before blocks are judged apart
WHOLE_BLOCKS = 256  # blocks of a disk with which it may be so many: a step looks at all blocks
APART_STEPS = 200_000  # block by block, after the whole disk
# At least for each prefix of a trace without an order, to see at which answer it ends.
PREFIX_STEPS = 10_000  # block by block
CHANGES = ("write", "unmap", "flush")
WHOLE_PREFIX_STEPS = 2_000  # the same for a prefix of a trace


@dataclass
class Outcome:
    """The result of the search: `at` is the index of the first event without an order, or None.

    `unsure` says why the search gave up. `held` is what `Search.held` is; it is empty if there is
    no order, or the search gave up."""

    at: int | None = None
    unsure: str = ""
    held: dict[int, int] = field(default_factory=dict)


def judge(trace: Trace, most_steps: int = MOST_STEPS) -> Outcome:
    """Search for an order in which the contract admits the trace."""
    trace, sizes = by_extent(replace(trace, events=placed(trace.events)))
    if may_be_whole(trace) and not by_block(trace):
        with suppress(TooMany, model.Undecided):
            whole_steps = WHOLE_STEPS * WHOLE_BLOCKS // max(WHOLE_BLOCKS, _blocks(trace))
            return _outcome(trace, Search(trace, min(most_steps, whole_steps), True, sizes))
        most_steps = min(most_steps, APART_STEPS)
    try:
        return _outcome(trace, Search(trace, most_steps, sizes=sizes))
    except (TooMany, model.Undecided) as reason:
        return Outcome(None, str(reason))


def _blocks(trace: Trace) -> int:
    return max((event.get("blocks", 0) for event in trace.events), default=0)


def _is_within(event: Event, blocks: int) -> bool:
    """Return whether all blocks that a change names are on the disk."""
    return event["op"] not in OF_BLOCKS or named_blocks(event).stop <= blocks


def _outcome(trace: Trace, search: Search) -> Outcome:
    """Return what a search finds. Raises TooMany, Undecided."""
    at = search.run()
    if at is not None:
        # Nothing behind a prefix can be looked ahead to: it takes more steps than the whole trace.
        most = max(WHOLE_PREFIX_STEPS if search.whole else PREFIX_STEPS, 2 * search.taken)
        return Outcome(_first_without_order(trace, at, most, search.whole))
    return Outcome(held=search.held)


def _first_without_order(trace: Trace, at: int, most_steps: int, whole: bool) -> int:
    """Return the index of the first answer up to which the trace is seen to have no order.

    The search looks ahead, so that it ends early: `at` is no later than that answer. What takes
    more than `most_steps` is not seen: so the answer may not be the first, but none is wrong. Where
    a change within the disk is acknowledged, what came before has an order, and the change may come
    last."""
    blocks = _blocks(trace)
    answers = sorted(
        (event["answered"], index)
        for index, event in enumerate(trace.events)
        if event["answered"] is not None
        and not (
            event["op"] in CHANGES and model.answer_of(event) == "ok" and _is_within(event, blocks)
        )
    )
    ends = [position for position, _ in answers]

    def has_none(end: int) -> bool:
        return _has_none(trace, end, most_steps, whole)

    seen = trace.events[at]  # a power cut that was cut short has no answer
    first = bisect_left(ends, seen["called"] if seen["answered"] is None else seen["answered"])
    if first == len(ends):
        return at
    last, stride = first, 1  # it is seldom far away
    while last < len(ends) - 1 and not has_none(ends[last]):
        first, last, stride = last + 1, min(last + stride, len(ends) - 1), 2 * stride
    found = bisect_left(ends, True, first, last, key=has_none)
    return answers[found][1]


def _has_none(trace: Trace, end: int, most_steps: int, whole: bool) -> bool:
    """Return whether a search of at most `most_steps` steps sees that the trace up to `end` has no
    order.
    """
    try:
        prefix = Trace(trace.hello, until(trace.events, end))
        return Search(prefix, most_steps, whole).run() is not None
    except (TooMany, model.Undecided):
        return False
