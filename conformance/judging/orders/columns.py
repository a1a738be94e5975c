"""One block by itself: what may have happened to it, and what it may hold.

A disk of one block takes the steps that change or read this block, and those that concern every
block: snapshot, delete, revert, flush, power cut. It is the contract itself (`contract.model`) on a
disk of one block. docs/decisions.md says why this is exact ("Blocks are judged apart"); for `ack`
and `block` it is proved in proofs/theories/OverlappingDiskBlocks.v.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from conformance.contract import model
from conformance.contract.model import EMPTY, ZERO, State
from conformance.contract.trace import Event
from conformance.judging.orders.budget import Budget
from conformance.judging.orders.steps import OF_BLOCKS
from conformance.judging.orders.worlds import World, after


class Column(NamedTuple):
    """One possible history of a block: its steps in flight that took effect, and the number of its
    disk of one block.
    """

    done: frozenset[int]
    disk: int


Columns = frozenset[Column]
Blocks = tuple[Columns, ...]  # of the blocks that are judged apart, in the order of their LBAs


class Disks:
    """The disks of one block that came up in a search, by number. `kinds` of two are the same if
    they differ only in what a power cut may leave."""

    def __init__(self, hello: dict[str, Any], budget: Budget) -> None:
        self._budget = budget
        self.worlds: list[World] = []
        self.kinds: list[int] = []
        self._numbers: dict[Any, int] = {}
        self._kinds: dict[Any, int] = {}
        self._after: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._columns: dict[Columns, Columns] = {}
        self._both: dict[tuple[Columns, Columns], Columns] = {}
        create = {"op": "create", "blocks": 1, "result": {"ok": True}}
        (blank,) = model.step(model.init(hello), create)
        self.blank: Columns = frozenset([Column(frozenset(), self._number(World(blank)))])

    def live(self, disk: int) -> int:
        """Return the tag that the live block holds."""
        tag: int = self.worlds[disk].now.live.get(0, ZERO)
        return tag

    def after(self, disk: int, event: Event) -> tuple[int, ...]:
        """Return the disks after a step of one block (`on_block`); none if it is not allowed."""
        key = disk, *meaning(event)
        found = self._after.get(key)
        if found is None:
            self._budget.take()
            worlds = after(self.worlds[disk], event)
            found = tuple(self._number(one) for world in worlds for one in _decided(world))
            self._after[key] = found
        return found

    def merged(self, columns: Iterable[Column]) -> Columns:
        """Return the columns; those that differ only in what a power cut may leave are one, with
        the tags of all. That admits the same: a power cut leaves one tag of a block."""
        disks: dict[tuple[frozenset[int], int], int] = {}
        for done, disk in columns:
            key = done, self.kinds[disk]
            known = disks.get(key)
            disks[key] = disk if known is None or known == disk else self._join(known, disk)
        made = frozenset(Column(done, disk) for (done, _), disk in disks.items())
        return self._columns.setdefault(made, made)  # equal columns are one object

    def both(self, one: Columns, other: Columns) -> Columns:
        """Return the columns of either, merged."""
        found = self._both.get((one, other))
        if found is None:
            found = self._both[one, other] = self.merged(one | other)
        return found

    def _join(self, one: int, other: int) -> int:
        found = self._joined.get((one, other))
        if found is None:
            state = self.worlds[one].now
            left = state.survivors
            since = left.since.get(0)
            for tag in left_over(self.worlds[other].now) - left_over(state):
                since = tag, since
            survivors = left if since is None else left._replace(since=left.since.set(0, since))
            found = self._number(World(state._replace(survivors=survivors)))
            self._joined[one, other] = found
        return found

    def _number(self, world: World) -> int:
        state, saved = world
        views = frozenset((name, blocks.get(0)) for name, blocks in state.snaps.items())
        kind: Any = state.live.get(0), views, state.power
        if saved is not None:
            old = frozenset((name, blocks.get(0)) for name, blocks in saved.snaps.items())
            kind = *kind, saved.live.get(0), old
        key = kind, left_over(state)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.worlds)
            self.worlds.append(world)
            self.kinds.append(self._kinds.setdefault(kind, len(self._kinds)))
        return number


def left_over(state: State) -> frozenset[int]:
    """Return the tags of which a power cut leaves one, on a disk of one block."""
    left = state.survivors
    tags, pair = {left.live.get(0, ZERO)}, left.since.get(0)
    while pair is not None:
        tags.add(pair[0])
        pair = pair[1]
    return frozenset(tags)


def _decided(world: World) -> Iterator[World]:
    """Yield the worlds with each value that a power cut may have left in the block."""
    state = world.now
    held = state.live.get(0, ZERO)
    if isinstance(held, int):
        yield world
        return
    for tag in model.possible(held, state.bound):
        live = EMPTY.set(0, tag)
        left = model.Image(live, state.snaps, EMPTY, None)
        yield World(state._replace(live=live, survivors=left, bound=EMPTY))


def meaning(event: Event) -> tuple[Any, ...]:
    """Return what tells two steps of one block apart."""
    op = event["op"]
    if op == "write":
        told = event["result"] is not None and event.get("told", True)
        return op, event["tags"][0], event.get("fua"), told
    if op == "read":
        return op, event["result"]["tags"][0], event.get("view")
    return op, event.get("name"), model.answer_of(event)


def looked_at(events: Sequence[Event]) -> Sequence[int]:
    """Return the blocks that requests name, in order; the others hold zeroes in every view."""
    size = events[0].get("blocks", 0) if events else 0
    named: set[int] = set()
    for event in events:
        if event["op"] in OF_BLOCKS:
            blocks = named_blocks(event)
            named.update(range(max(0, blocks.start), min(blocks.stop, size)))
    return sorted(named)


def touched(event: Event, apart: Sequence[int]) -> Sequence[int]:
    """Return the blocks judged apart that an acknowledged step changes or reads.

    A step that is refused or goes past the end changes and reads none.
    """
    if model.answer_of(event) != "ok" or not apart:
        return ()
    if event["op"] not in OF_BLOCKS:
        return apart
    blocks = named_blocks(event)
    return blocks if blocks.start >= 0 and blocks.stop <= apart[-1] + 1 else ()


def on_block(event: Event, lba: int) -> Event:
    """Return the part of an acknowledged step that one block sees: of its one block, or all."""
    if event["op"] not in OF_BLOCKS:
        return event
    offset = lba - event["lba"]
    if event["op"] == "write":
        return {**event, "lba": 0, "tags": [event["tags"][offset]]}
    if event["op"] == "read":
        result = {"ok": True, "tags": [event["result"]["tags"][offset]]}
        return {**event, "lba": 0, "count": 1, "result": result}
    return {**event, "lba": 0, "count": 1}


def named_blocks(event: Event) -> range:
    """Return the blocks that a read, a write or an unmap names, also past the end."""
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    return range(event["lba"], event["lba"] + count)


def without_data(event: Event) -> Event:
    """Return the step without its data: its names and its refusal are left."""
    if event["op"] not in OF_BLOCKS or model.answer_of(event) != "ok":
        return event
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    seen = {"op": "read", "lba": event["lba"], "count": count, "result": {"ok": True, "tags": []}}
    return {**seen, "view": event["view"]} if event.get("view") is not None else seen
