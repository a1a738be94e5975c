"""A checkpoint in bounded steps, between operations, while writers go on.

First what waits in memory is put into the maps, some in each step, until little is left. Then the
checkpoint freezes: the maps and the position in the log, as they are at one moment. Its nodes are
never changed from then on; a change of the maps copies them. They are written, some in each step.
When all are on the media, the slot is written, and the log is truncated to the position. Mostly a
checkpoint is an increment (increments.py): then what has changed in the maps is frozen and written,
and no node.

Each operation earns a step. How much a step does follows from how much is left, and from how much
the log can still take. So the checkpoint ends before the log is full, and no operation pays for it
alone. Nodes are written at least as fast as writes at many places make them, else they would fill
the memory.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from refmodel.core.time_spent import CHECKPOINT, spent_on
from refmodel.journal.checkpoint import Checkpoint
from refmodel.log_structured.state import DiskState


class Earned(NamedTuple):
    """The share of the work that an operation pays: what it takes of a supply, and what is left."""

    taken: int
    left: int

    def of(self, work: int) -> int:
        """Return how much of the work that is left the operation has to do."""
        return work if self.left <= self.taken else -(-work * self.taken // self.left)


class Pace(NamedTuple):
    """The pace of checkpoints: how early one begins, and how small its steps are."""

    least: int  # changes merged by a step, or nodes written, at least: more by a large write
    little: int  # changes that may be left to the freeze
    begin: int  # sixteenths of the log that are in use when it begins
    freeze: int  # the same when its maps are frozen, at the latest
    end: int = 16  # the same when it counts


USUAL = Pace(least=16, little=32, begin=12, freeze=14)
SMALL = Pace(
    least=1, little=2, begin=1, freeze=6
)  # where nodes are small: as often as on a large disk

PAGE_OF_CHANGES = 4  # times the work of a node that changed


class Phase(Enum):
    """The kind of the next step of a checkpoint."""

    IDLE = auto()
    MERGE = auto()  # put what waits into the maps
    NODES = auto()  # write nodes of the frozen maps


IDLE, MERGE, NODES = Phase  # global names: each write compares with them


class Checkpointer:
    """Takes the checkpoints of one disk, in steps or at once.

    `on_commit` is called when a checkpoint counts.
    """

    def __init__(self, state: DiskState, on_commit: Callable[[], None]) -> None:
        self.phase = IDLE
        self.steps = 0  # since the disk was opened
        self.most_done = 0  # by one step between operations: changes merged, or nodes written
        self.forced = 0  # checkpoints that had to be finished at once
        self._state = state
        self.pace = SMALL if state.geometry.fanout else USUAL
        self._on_commit = on_commit
        self._frozen: Checkpoint | None = None
        self._created = 0  # nodes, by the last step

    def step(
        self, logged: int, space: Earned | None = None, *, blocks: int = 1, freezes: bool = True
    ) -> bool:
        """Do what an operation on `blocks` blocks earns, with a record of `logged` bytes of the
        log.

        `space` is what it takes of the room, if the checkpoint is to make room. Without `freezes`
        the freeze, which destages the bank, is left to a later operation while the log has time. An
        operation on no blocks leaves every step to others then, unless nodes fill the memory.
        Returns False if nothing could be done: the freeze may have to wait for requests in flight.
        Raises NoSpace, DataLost.
        """
        log, pages = self._state.log, self._state.pages
        if not blocks and not self._is_crowded() and self._in_time(logged):
            return False
        made, self._created = pages.created - self._created, pages.created
        if self.phase is IDLE:
            due = space is not None or 16 * log.used() >= self.pace.begin * log.size
            if not due and not self._is_crowded():
                return False
            self.phase = MERGE
        return self._step(logged, space, blocks, freezes, made)

    @spent_on(CHECKPOINT)
    def _step(
        self, logged: int, space: Earned | None, blocks: int, freezes: bool, made: int
    ) -> bool:
        """Do the step that `step` describes. `made` is how many nodes were made since the last."""
        if self.phase is MERGE:
            left, least = self.waiting(), self.pace.least * max(1, blocks)
            done = self._share(left, self._logged(logged, self.pace.freeze), space, least)
            if done < left - self.pace.little:
                self.put_waiting(done)
            elif not freezes and self._in_time(logged):
                return False
            elif self._bank_may_be_destaged() or self._bank_fits_deduplicated():
                done = left
                self.freeze()
            else:
                return False
        else:
            left = self._state.unwritten
            if self._frozen is not None and self._frozen.is_increment:
                least = max(1, self.pace.least // PAGE_OF_CHANGES)
            else:  # twice what was made meanwhile: so the next has at most half as many
                least = max(self.pace.least, min(2 * made, self.pace.least * blocks))
            done = self._share(left, self._logged(logged, self.pace.end), space, least)
            self.write(done)
            if done >= left:
                self.commit()
        self.steps += 1
        self.most_done = max(self.most_done, min(done, left))
        return True

    def relieve(self) -> bool:
        """Do a step if nodes fill the memory, for work that no write pays for.

        Returns False if there was no need, or if nothing could be done. Raises NoSpace, DataLost.
        """
        return self._is_crowded() and self.step(0, blocks=0)

    def may_freeze(self, logged: int) -> bool:
        """Return whether the next step may freeze the maps, and could wait."""
        if self.phase is NODES or self.waiting() > 2 * self.pace.little:
            return False
        return self._in_time(logged) and self._bank_may_be_destaged()

    def _in_time(self, logged: int) -> bool:
        return self._logged(logged, self.pace.freeze).left > logged

    @property
    def is_frozen(self) -> bool:
        """True if the maps of a checkpoint are frozen and it is not committed."""
        return self._frozen is not None

    @spent_on(CHECKPOINT)
    def finish(self) -> None:
        """Finish the checkpoint whose maps are frozen, if there is one. Raises DataLost."""
        if self._frozen is not None:
            self.forced += 1
            self.write(self._state.unwritten)
            self.commit()

    @spent_on(CHECKPOINT)
    def run(self, *, whole: bool = True) -> None:
        """Take a checkpoint of this moment, at once. Raises NoSpace, DataLost."""
        self.finish()
        self.freeze(whole=whole)
        self.write(self._state.unwritten)
        self.commit()

    def waiting(self) -> int:
        """Return how many changes have to be put into the maps before they are frozen."""
        state = self._state
        return (
            state.views.waiting_count() + len(state.chunks.dropped) + state.segments.changed_count
        )

    def put_waiting(self, most: int) -> None:
        """Put at most `most` of these changes into the maps. Raises NoSpace, DataLost."""
        state = self._state
        before = state.views.waiting_count()
        if before:
            state.views.merge(most, whole=True)
        most -= before - state.views.waiting_count()
        if most > 0:
            dropped = len(state.chunks.dropped)
            state.chunks.remove_dropped(most)
            state.segments.store(max(0, most - dropped))

    # The actions.

    def freeze(self, *, whole: bool = False) -> None:
        """Freeze the maps, and the position in the log, as they are now; the action Freeze."""
        self._frozen = self._state.freeze(whole=whole)
        self.phase = NODES

    def write(self, most: int) -> None:
        """Write at most `most` nodes of the frozen maps, or pages of their changes."""
        assert self._frozen is not None
        self._state.write_frozen(self._frozen, most)

    def commit(self) -> None:
        """Let the frozen checkpoint count, and forget and free what only older ones needed.

        All its nodes are written.
        """
        frozen = self._frozen
        assert frozen is not None
        self._state.checkpoint_nodes(frozen)
        self._state.checkpoint_commit(frozen)
        self._frozen, self.phase = None, IDLE
        self._state.truncate(frozen)
        self._state.free()
        self._on_commit()

    def _bank_may_be_destaged(self) -> bool:
        """Return whether the bank may be destaged though a segment is not full.

        What is in flight needs as many segments again as if nothing of the bank were left to it.
        """
        state = self._state
        segments, units = state.segments, state.segments.units
        coming = sum([record.count for record in state.in_flight]) * state.geometry.chunk_units
        banked = -(-state.space_usage.units_to_destage // units)
        if not coming:
            return segments.free_count() >= banked
        return segments.free_count() >= banked - (-coming // units) + state.chunks.streams.count

    def _bank_fits_deduplicated(self) -> bool:
        """Compare the new chunks of the bank; return whether it may be destaged then."""
        self._state.chunks.deduplicate()
        return self._bank_may_be_destaged()

    def _is_crowded(self) -> bool:
        """Return whether the memory is full of nodes that only a checkpoint makes clean."""
        state = self._state
        return state.pages.crowded(state.views.waiting_count)

    def _logged(self, logged: int, until: int) -> Earned:
        """Return what a record takes of the log that is left until so far."""
        log = self._state.log
        return Earned(logged, until * log.size // 16 - log.used())

    @staticmethod
    def _share(left: int, logged: Earned, space: Earned | None, least: int) -> int:
        """Return how much of what is left to do now, at least `least`."""
        share = logged.of(left)
        if space is not None:
            share = max(share, space.of(left))
        return max(least, share)
