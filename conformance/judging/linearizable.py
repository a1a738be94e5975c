"""Linearizability: is there an order of overlapping requests that explains their answers?

Wing and Gong's search with Lowe's memory of what was tried (as in porcupine), for each block by
itself: linearizability is local (Herlihy and Wing, 1990), and to the contract a block is a register
that writes set and reads show. A request of several blocks is one call for each: disks promise no
more of requests that overlap.
"""

from collections.abc import Sequence
from typing import NamedTuple

FOREVER = float("inf")
MOST_STEPS = 200_000  # steps of the search for one block


class Call(NamedTuple):
    """One request to one block: `tag` is what was written or read. It took effect between `invoked`
    and `returned`.

    FOREVER returned what was never answered: a write that may have happened or not; a read of that
    sort says nothing.
    """

    op: str  # "write" or "read"
    lba: int
    tag: int
    invoked: float
    returned: float


class Opinion(NamedTuple):
    """`verdict` is pass, fail or inconclusive; `lba` the block, and `stuck` the calls of which none
    can come next.
    """

    verdict: str
    lba: int | None = None
    stuck: tuple[Call, ...] = ()


def judge(calls: Sequence[Call], most_steps: int = MOST_STEPS) -> Opinion:
    """Return whether all calls have an order, each block beginning as zeroes. Fails before it is
    inconclusive.
    """
    blocks: dict[int, list[Call]] = {}
    for call in calls:
        if call.op == "write" or call.returned != FOREVER:
            blocks.setdefault(call.lba, []).append(call)
    unsure = Opinion("pass")
    for lba, of_block in sorted(blocks.items()):
        opinion = _register(lba, sorted(of_block, key=lambda call: call.invoked), most_steps)
        if opinion.verdict == "fail":
            return opinion
        if opinion.verdict == "inconclusive":
            unsure = opinion
    return unsure


def _register(lba: int, calls: list[Call], most_steps: int) -> Opinion:
    """Judge one block.

    A state is the set of calls that have taken effect (bits of a number), and the block's content.
    """
    answered = sum(1 << index for index, call in enumerate(calls) if call.returned != FOREVER)
    tried = {(0, 0)}
    stack = [(0, 0)]
    furthest = 0
    while stack:
        done, tag = stack.pop()
        if done & answered == answered:
            return Opinion("pass")
        if (done & answered).bit_count() > (furthest & answered).bit_count():
            furthest = done
        for index in _next(calls, done):
            call = calls[index]
            if call.op == "read" and call.tag != tag:
                continue
            state = done | 1 << index, call.tag
            if state not in tried:
                tried.add(state)
                stack.append(state)
        if len(tried) > most_steps:
            return Opinion("inconclusive", lba)
    return Opinion("fail", lba, tuple(calls[index] for index in _next(calls, furthest)))


def _next(calls: list[Call], done: int) -> list[int]:
    """Return the calls that may take effect next: those invoked before any other that is left has
    returned.
    """
    candidates, first_return = [], FOREVER
    for index, call in enumerate(calls):
        if done >> index & 1:
            continue
        if call.invoked > first_return:
            break  # and so are all behind it
        candidates.append(index)
        first_return = min(first_return, call.returned)
    return [index for index in candidates if calls[index].invoked <= first_return]
