"""Extents: runs of blocks that every request names whole or not at all.

Where a request is one step of the order, and a power cut leaves no mixture of steps, the blocks of
an extent change together and are read together. So an extent is to the contract what a block is: a
trace has an order if and only if it has one with each extent as one block, whose tag stands for all
its tags. That makes few blocks of a large disk, and a request of one extent is a step of one block.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise

from conformance.contract import model
from conformance.contract.model import ZERO
from conformance.contract.trace import Event, Trace
from conformance.judging.orders.columns import named_blocks
from conformance.judging.orders.steps import OF_BLOCKS, by_block, cut_profile


def by_extent(trace: Trace) -> tuple[Trace, Sequence[int]]:
    """Return the trace with each extent as one block, and how many blocks each of them has.

    Where blocks do not change together, it is the same trace, and no numbers.
    """
    size: int = trace.events[0].get("blocks", 0) if trace.events else 0
    if not size or model.answer_of(trace.events[0]) != "ok":
        return trace, ()
    if by_block(trace) or cut_profile(trace) == "block":
        return trace, ()
    ranges = [named_blocks(event) for event in trace.events if event["op"] in OF_BLOCKS]
    inside = {(blocks.start, blocks.stop) for blocks in ranges if _is_inside(blocks, size)}
    bounds = sorted({0, size, *chain.from_iterable(inside)})
    at = {bound: extent for extent, bound in enumerate(bounds)}
    tags: dict[tuple[int, ...], int] = {}

    def tags_of(event: Event, some: Sequence[int]) -> list[int]:
        start, stop = event["lba"], event["lba"] + len(some)
        return [
            tags.setdefault(content, 1 + len(tags)) if any(content) else ZERO
            for first, end in pairwise(bounds[at[start] : at[stop] + 1])
            for content in [tuple(some[first - start : end - start])]
        ]

    def in_extents(event: Event) -> Event:
        blocks = named_blocks(event)
        if not _is_inside(blocks, size):
            return {**event, "lba": size}  # past the end of the other disk, too
        changed = {**event, "lba": at[blocks.start]}
        if event["op"] == "write":
            return {**changed, "tags": tags_of(event, event["tags"])}
        changed["count"] = at[blocks.stop] - at[blocks.start]
        if event["op"] == "read" and model.answer_of(event) == "ok":
            found = tags_of(event, event["result"]["tags"])
            changed["result"] = {**event["result"], "tags": found}
        return changed

    events = [in_extents(event) if event["op"] in OF_BLOCKS else event for event in trace.events]
    events[0] = {**trace.events[0], "blocks": len(bounds) - 1}
    return replace(trace, events=events), [end - start for start, end in pairwise(bounds)]


def _is_inside(blocks: range, size: int) -> bool:
    return 0 <= blocks.start < blocks.stop <= size
