"""The search for an order in one block, between the steps that it shares with other blocks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from conformance.contract.trace import Event
from conformance.judging.orders.budget import Budget
from conformance.judging.orders.columns import Blocks, Column, Columns, Disks, meaning, on_block
from conformance.judging.orders.flight import Flight
from conformance.judging.orders.levels import levels
from conformance.judging.orders.steps import Step

CHANGE_ALL = ("flush", "restart", "crash")  # sent alone, or taken when they are called


class Situation(NamedTuple):
    """What decides on the effect of a shared step on a block, besides its columns."""

    name: tuple[Any, ...]  # equal for blocks to which the same happens
    event: Event  # what the block sees of the step
    local: list[Step]  # steps of this block alone that may take effect before
    tag: int | None  # what the live block has to hold then, if that is known
    later: frozenset[int]  # steps after which one of these comes too late


class OneBlock:
    """The transitions of the columns of a block. `apart` are the LBAs that are judged so, in order.

    `done` are shared steps in flight that took effect.
    """

    def __init__(self, flight: Flight, disks: Disks, budget: Budget, apart: Sequence[int]) -> None:
        self._flight, self._disks, self._budget = flight, disks, budget
        self._places = {lba: place for place, lba in enumerate(apart)}
        self._made: dict[tuple[Any, ...], Columns] = {}  # answers of this moment
        self._situations: dict[tuple[Any, ...], list[tuple[int, int, Situation]]] = {}  # the same

    def blank(self) -> Blocks:
        """Return the blocks of a new disk."""
        return (self._disks.blank,) * len(self._places)

    def columns(self, blocks: Blocks, lba: int) -> Columns:
        """Return the columns of one block."""
        return blocks[self._places[lba]]

    def replaced(self, blocks: Blocks, lba: int, columns: Columns) -> Blocks:
        """Return the blocks with these columns of one of them."""
        place = self._places[lba]
        return *blocks[:place], columns, *blocks[place + 1 :]

    def moment(self) -> None:
        """Forget results: something was answered, so other steps are in flight now."""
        self._made.clear()
        self._situations.clear()

    def shared(
        self, blocks: Blocks, done: frozenset[int], step: Step, before: set[int]
    ) -> Blocks | None:
        """Return the blocks after a step that they share, None if one of them does not allow it;
        before it, those of `before` that are of one block alone may take effect.
        """
        made, changed = self._made, list[Columns]()
        for place, lba, at in self._at(step, before):
            columns = blocks[place]
            key = columns, at.name, done & at.later
            after = made.get(key)
            if after is None:
                after = made[key] = self._shared(columns, done, lba, step, at)
            if not after:
                return None
            if after is not columns:  # equal columns are one object
                changed = changed or list(blocks)
                changed[place] = after
        return tuple(changed) or blocks

    def _shared(
        self, columns: Columns, done: frozenset[int], lba: int, step: Step, at: Situation
    ) -> Columns:
        return self._disks.merged(
            Column(column.done, disk)
            for ways in self._ways(columns, done, lba, at.local)
            for column in ways
            if not self._flight.too_late(done | column.done, step, lba)
            for disk in self._disks.after(column.disk, at.event)
            if at.tag is None or self._disks.live(disk) == at.tag
        )

    def _at(self, step: Step, before: set[int]) -> list[tuple[int, int, Situation]]:
        """Return, for each block of the step, its place, its LBA, and its situation now."""
        durable = step.event.get("fua"), step.event.get("told")
        found = self._situations.get((step.number, durable))
        if found is None:
            found = [
                (self._places[lba], lba, self._situation(lba, step, durable, before))
                for lba in step.blocks
            ]
            self._situations[step.number, durable] = found
        return found

    def _situation(
        self, lba: int, step: Step, durable: tuple[Any, ...], before: set[int]
    ) -> Situation:
        """Return what decides on the effect of a step on a block at this moment."""
        local = self._flight.local(lba, before)
        tag = self._flight.known.images.get(step.request, {}).get(lba)
        event = on_block(step.event, lba)
        later = self._flight.later(step, lba)
        name = step.number, durable, tag, later, lba if local else meaning(event)
        later = later.union(*[self._flight.later(one, lba) for one in local])
        return Situation(name, event, local, tag, later)

    def may_become(
        self, blocks: Blocks, image: dict[int, int], coming: dict[int, set[int]] | None
    ) -> bool:
        """Return whether the live disk may hold this image, now or after the steps that write
        `coming`.
        """
        return coming is None or all(
            tag in coming.get(lba, ())
            or lba in self._places
            and any(self._disks.live(one.disk) == tag for one in self.columns(blocks, lba))
            for lba, tag in image.items()
        )

    def all_answered(
        self, blocks: Blocks, done: frozenset[int], steps: list[Step], before: set[int]
    ) -> Blocks | None:
        """Return the blocks after these steps, each of one block; None if one of them cannot come
        next.
        """
        taken = list(blocks)
        for step in steps:
            (lba,) = step.blocks
            place = self._places[lba]
            columns = taken[place] = self._answered(taken[place], done, lba, step, before)
            if not columns:
                return None
        return tuple(taken)

    def _answered(
        self, columns: Columns, done: frozenset[int], lba: int, step: Step, before: set[int]
    ) -> Columns:
        """Return the columns in which a step of this block has taken effect; it is in flight no
        more.
        """
        key = columns, done, lba, step.number
        made = self._made.get(key)
        if made is None:
            local = self._flight.local(lba, before)
            found = (
                self._ways_to(columns, done, lba, step, local)
                if local
                else self._at_once(columns, done, lba, step)
            )
            made = self._made[key] = self._disks.merged(
                Column(one.done - {step.number}, one.disk) for one in found
            )
        return made

    def _ways_to(
        self, columns: Columns, done: frozenset[int], lba: int, step: Step, local: list[Step]
    ) -> Iterator[Column]:
        """Yield the columns in which the step has taken effect, some of `local` before it."""
        for ways in self._ways(columns, done, lba, [*local, step]):
            for one in ways:
                if step.number in one.done:
                    yield one
            ways[:] = [one for one in ways if step.number not in one.done]

    def _at_once(
        self, columns: Columns, done: frozenset[int], lba: int, step: Step
    ) -> Iterator[Column]:
        """Yield the columns in which the step has taken effect, with no other one before it."""
        event = on_block(step.event, lba)
        for one in columns:
            if step.number in one.done:
                yield one
                continue
            self._budget.take()
            if not self._flight.too_late(done | one.done, step, lba):
                for disk in self._disks.after(one.disk, event):
                    yield Column(one.done, disk)

    def _ways(
        self, columns: Columns, done: frozenset[int], lba: int, steps: list[Step]
    ) -> Iterator[list[Column]]:
        """Yield what the columns become by these steps of the block."""
        if not steps:
            return iter([[*columns]])
        events = {step.number: on_block(step.event, lba) for step in steps}

        def after(column: Column) -> Iterator[Column]:
            for step in steps:
                if step.number in column.done:
                    continue
                self._budget.take()
                if not self._flight.too_late(done | column.done, step, lba):
                    for disk in self._disks.after(column.disk, events[step.number]):
                        yield Column(column.done | {step.number}, disk)

        return levels(columns, self._disks.merged, after)

    def all_after(self, blocks: Blocks, event: Event) -> Blocks:
        """Return all blocks after an event that is no step in flight."""
        if event["op"] not in CHANGE_ALL:
            return blocks
        made = self._made
        for columns in set(blocks):
            if (columns,) not in made:
                made[columns,] = self._disks.merged(
                    Column(column.done, disk)
                    for column in columns
                    for disk in self._disks.after(column.disk, event)
                )
        return tuple(made[columns,] for columns in blocks)

    def all_cut(self, blocks: Blocks, done: frozenset[int], steps: list[Step]) -> Blocks:
        """Return all blocks at a power cut.

        These steps may still take effect, if they change blocks.
        """
        steps = [step for step in steps if step.event["op"] in ("write", "unmap")]
        after = []
        for lba, columns in zip(self._places, blocks, strict=True):
            own = [step for step in steps if lba in step.blocks and step.number not in done]
            if self._flight.rules.profile == "block":
                reached = [self._all_taken(column, lba, own) for column in columns]
            else:
                own = [step for step in own if step.local]
                reached = [one for some in self._ways(columns, done, lba, own) for one in some]
            after.append(self._disks.merged(Column(frozenset(), one.disk) for one in reached))
        return tuple(after)

    def _all_taken(self, column: Column, lba: int, steps: Iterable[Step]) -> Column:
        """Return the column after all of these writes and unmaps. None takes effect at a power cut
        that follows on another one.
        """
        for step in steps:
            if step.number not in column.done:
                for disk in self._disks.after(column.disk, on_block(step.event, lba)):
                    column = Column(column.done | {step.number}, disk)
        return column
