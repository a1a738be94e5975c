"""The search for an order in one block, between the steps that it shares with other blocks."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from conformance.contract.trace import Event
from conformance.judging.orders.budget import Budget
from conformance.judging.orders.columns import Blocks, Column, Columns, Disks, on_block
from conformance.judging.orders.flight import Flight
from conformance.judging.orders.levels import levels
from conformance.judging.orders.steps import OF_BLOCKS, Step

CHANGE_ALL = ("flush", "restart", "crash")  # sent alone, or taken when they are called


class Situation(NamedTuple):
    """What decides on the effect of a shared step on a block, besides its columns."""

    name: tuple[Any, ...]  # the same for all blocks to which the same happens
    event: Event  # what the block sees of the step
    local: list[Step]  # steps of this block alone that may take effect before
    tag: int | None  # what the live block has to hold then, if that is known
    later: frozenset[int]  # steps after which one of these comes too late


class OneBlock:
    """The transitions of the columns of a block.

    `done` are shared steps in flight that took effect.
    """

    def __init__(self, flight: Flight, disks: Disks, budget: Budget) -> None:
        self._flight, self._disks, self._budget = flight, disks, budget
        self._made: dict[tuple[Any, ...], Columns] = {}  # answers of this moment
        self._situations: dict[tuple[Any, ...], Situation] = {}  # of this moment

    def moment(self) -> None:
        """Forget results: something was answered, so other steps are in flight now."""
        self._made.clear()
        self._situations.clear()

    def shared(
        self, columns: Columns, done: frozenset[int], lba: int, step: Step, before: set[int]
    ) -> Columns:
        """Return the columns after a step that blocks share; before it, those of `before` that are
        of this block alone may take effect.
        """
        at = self._situation(lba, step, before)
        key = columns, at.name, done & at.later
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._disks.merged(
                Column(column.done, disk)
                for ways in self._ways(columns, done, lba, at.local)
                for column in ways
                if not self._flight.too_late(done | column.done, step, lba)
                for disk in self._disks.after(column.disk, at.event)
                if at.tag is None or self._disks.live(disk) == at.tag
            )
        return made

    def _situation(self, lba: int, step: Step, before: set[int]) -> Situation:
        """Return what decides on the effect of a step on a block at this moment."""
        durable = step.event.get("fua"), step.event.get("told")
        at = self._situations.get((lba, step.number, durable))
        if at is None:
            local = self._flight.local(lba, before)
            tag = self._flight.known.images.get(step.request, {}).get(lba)
            name: tuple[Any, ...] = step.number, durable
            if local or tag is not None or step.event["op"] in OF_BLOCKS:
                name = *name, lba  # otherwise it is the same for all blocks
            later = [self._flight.later(one, lba) for one in (step, *local)]
            at = Situation(name, on_block(step.event, lba), local, tag, later[0].union(*later))
            self._situations[lba, step.number, durable] = at
        return at

    def may_become(
        self, blocks: Blocks, image: dict[int, int], coming: dict[int, set[int]] | None
    ) -> bool:
        """Return whether the live disk may hold this image, now or after the steps that write
        `coming`.
        """
        return coming is None or all(
            tag in coming.get(lba, ())
            or any(self._disks.live(column.disk) == tag for column in blocks.get(lba, ()))
            for lba, tag in image.items()
        )

    def answered(
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
        after = {
            columns: self._disks.merged(
                Column(column.done, disk)
                for column in columns
                for disk in self._disks.after(column.disk, event)
            )
            for columns in set(blocks.values())
        }
        return blocks.update((lba, after[columns]) for lba, columns in blocks.items())

    def all_cut(self, blocks: Blocks, done: frozenset[int], steps: list[Step]) -> Blocks:
        """Return all blocks at a power cut.

        These steps may still take effect, if they change blocks.
        """
        steps = [step for step in steps if step.event["op"] in ("write", "unmap")]
        for lba, columns in blocks.items():
            own = [step for step in steps if lba in step.blocks and step.number not in done]
            if self._flight.rules.profile == "block":
                reached = [self._all_taken(column, lba, own) for column in columns]
            else:
                own = [step for step in own if step.local]
                reached = [one for some in self._ways(columns, done, lba, own) for one in some]
            after = self._disks.merged(Column(frozenset(), one.disk) for one in reached)
            blocks = blocks.set(lba, after)
        return blocks

    def _all_taken(self, column: Column, lba: int, steps: Iterable[Step]) -> Column:
        """Return the column after all of these writes and unmaps. None takes effect at a power cut
        that follows on another one.
        """
        for step in steps:
            if step.number not in column.done:
                for disk in self._disks.after(column.disk, on_block(step.event, lba)):
                    column = Column(column.done | {step.number}, disk)
        return column
