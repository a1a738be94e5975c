"""Cleaning in bounded steps, between operations; and at once, where an operation needs the space.

A cleaning moves what lives in some victims. Then it takes a checkpoint, which frees them. Each
write earns a step, and pays for it by a price that rises as room gets scarce:

- The room is how many chunks can still be written before a write has to wait for cleaning. The
  span is the room where a cleaning begins, and at least that for 80 such writes, or the usual one:
  a cleaning takes some writes, however long they are.
- On time, a write of n chunks moves 1.75 n u / (1 - u) chunks, where u is the live share of the
  victim, and at least 1.5 n. In the long run cleaning costs n u / (1 - u), so it gets ahead of the
  writers.
- When less room is left, the price is higher by the ratio of span to room. So writers are slowed
  early and alike, and no one of them pays for all.
- Of the checkpoint, a write does the share of what is left that it takes of the allowance: half of
  what the cleaning gains. When the maps are frozen, at least half of the allowance is left, so that
  no write makes many nodes durable. So the writers take no more than a cleaning gains.

With one stream space is so scarce that a cleaning which begins early would move chunks that are
about to die. There the disk cleans when it must, one victim and one checkpoint at a time. But a
disk with small nodes stands for a large one, and cleans in steps, too.
"""

from enum import Enum, auto

from refmodel.core.time_spent import CLEANER, spent_on
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.checkpointing import Checkpointer, Earned
from refmodel.log_structured.chunks.cleaner import Cleaner
from refmodel.log_structured.state import DiskState

WRITES = frozenset((RecordKind.WRITE, RecordKind.WRITES, RecordKind.PLACE))
GETS_AHEAD = 1.75  # times the price that cleaning has in the long run
CHEAPEST = 1.5  # chunks that move for each that is written, at least
DEAREST = 8  # times that, at most
USUAL_WRITES = 80  # for which there is room when a cleaning begins
LEAST_MERGES = 3  # writes among which the changes are divided that wait for a checkpoint
BATCH = 3  # dead segments that a checkpoint frees
LEAST_REMOVED = 16  # dropped chunks per block of a write, by a step before a victim is chosen
# For each of these, cleaning begins one free segment earlier, and a checkpoint frees one more. So
# checkpoints are rarer on a large disk, and what is free is no larger a part of it.
MANY = 1024


class Phase(Enum):
    """The kind of the next step of cleaning."""

    IDLE = auto()
    MOVE = auto()
    CHECKPOINT = auto()


IDLE, MOVE, _ = Phase  # global names: each write compares with them


class Cleaning:
    """Cleans one disk, in steps or at once."""

    def __init__(self, state: DiskState, cleaner: Cleaner, checkpoints: Checkpointer) -> None:
        self.phase = IDLE
        self.steps = 0  # since the disk was opened
        self.most_moved = 0  # units, by one step between operations
        self.forced = 0  # cleanings at once, for an operation that needed the space
        self._state = state
        self._cleaner = cleaner
        self._checkpoints = checkpoints
        geometry = state.geometry
        self.stepwise = geometry.separates_streams or bool(geometry.fanout)
        self._least_moved = 1 if geometry.fanout else 16 * geometry.chunk_units
        ahead = 4 if geometry.separates_streams else 2
        self._more = geometry.segments // MANY
        self._begin = state.chunks.streams.count + ahead + self._more  # free segments
        # Segments more than are needed, when cleaning at once ends: enough to go on in steps.
        self.spare = 2 if self.stepwise and geometry.separates_streams else 0
        # Units that the checkpoint may take: a segment that is not full, and writes before and
        # after it is frozen.
        self._for_checkpoint = 2 * state.segments.units
        self._span = 0  # the room where this cleaning began
        self._usual_span = (self._begin - 1) * state.segments.units
        self._gain = 0  # units that this cleaning gains
        self._allowance = 0  # units that may be written until the checkpoint is committed
        self._credit = 0.0  # units that writes have paid for, and that are still to be moved
        self._frees = 0  # the number of the checkpoint that frees what was cleaned
        self._filled = False  # whether the last segment that this checkpoint destages is full
        self._refused = False  # whether the host refused the checkpoint after a cleaning at once

    @property
    def room(self) -> int:
        """Units that can be written before a write has to wait for cleaning."""
        state = self._state
        coming = sum([record.count for record in state.in_flight]) * state.geometry.chunk_units
        spare = (state.segments.free_count() - 1) * state.segments.units
        return spare - state.space_usage.queued_units() - coming

    @property
    def batch(self) -> int:
        """Dead segments before a checkpoint frees them, if there is room.

        Few, since segments that are dead hold nothing, so those in use are fuller.
        """
        return (BATCH if self._state.geometry.separates_streams else 1) + self._more

    def step(self, record: Record) -> bool:
        """Do what a write earns. Raises NoSpace, DataLost.

        Returns whether this was a step of a checkpoint.
        """
        if record.kind not in WRITES or not self.stepwise:
            return False
        if self.phase is IDLE and self._state.segments.free_count() > self._begin:
            return False
        return self._step(record)

    @spent_on(CLEANER)
    def _step(self, record: Record) -> bool:
        segments = self._state.segments
        if self.phase is IDLE:
            self._span, self._credit, self.phase = self.room, 0.0, MOVE
        self.steps += 1
        paid = Earned(record.count * self._state.geometry.chunk_units, self.room)
        if self.phase is MOVE:
            if (
                len(segments.dead) >= self.batch
                or paid.left < self._for_checkpoint
                or not self._move(paid, record.count)
            ):
                self._end_moves()
            return False
        return self._checkpoint(paid, record)

    @spent_on(CLEANER)
    def run(self) -> bool:
        """Clean at once until some segments are dead, and free them. Raises NoSpace, DataLost.

        Returns False if there is nothing to gain. The gain may be only that dead slots have come
        together, so that the next call gains a segment.
        """
        state, segments = self._state, self._state.segments
        if self._refused:  # no more is cleaned without that checkpoint
            self._free_cleaned()
            return True
        segments.learn_all()
        state.chunks.remove_dropped()
        while len(segments.dead) <= state.geometry.cleaning_batch:
            if segments.dead and segments.free_count() <= state.chunks.streams.count:
                break
            if not self._cleaner.clean():
                break
        if not segments.dead:
            return False
        self._cleaner.top_up()
        self._free_cleaned()
        return True

    def _move(self, paid: Earned, blocks: int) -> bool:
        """Move what a write of `blocks` pays for. Returns False if there was nothing to move.

        Before a victim is chosen, dropped chunks are removed, in steps of their own unless few are
        left: they would count as live.
        """
        chunks, few = self._state.chunks, LEAST_REMOVED * blocks
        if self._removed_dropped(paid, few):
            return True
        live, units = self._cleaner.live, self._state.segments.units
        if not 0 < live < units:
            return False
        span = max(self._span, min(self._usual_span, USUAL_WRITES * paid.taken))
        dearer = min(DEAREST, max(1.0, span / paid.left))
        price = max(CHEAPEST, GETS_AHEAD * live / (units - live))
        self._credit += paid.taken * price * dearer
        most = min(int(self._credit), paid.left - paid.taken)
        if most < self._least_moved:
            return True
        self._credit = 0.0
        self.most_moved = max(self.most_moved, most)
        usage, moved = self._state.space_usage, False
        goal = usage.queued_units() + most
        while (
            (left := goal - usage.queued_units()) >= self._least_moved
            and (self._cleaner.has_victim or len(chunks.dropped) <= few)
            and self._cleaner.move(left)
        ):
            moved = True
        chunks.destage_full()
        return moved

    def _removed_dropped(self, paid: Earned, few: int) -> bool:
        """Remove some of the dropped chunks, if a victim is to be chosen and more than a few are
        left. Returns whether it did."""
        dropped = len(self._state.chunks.dropped)
        if dropped <= few or self._cleaner.has_victim:
            return False
        self._state.chunks.remove_dropped(max(few, paid.of(dropped)))
        return True

    def _end_moves(self) -> None:
        """Free what is dead by the next checkpoint that is frozen, if there is anything."""
        gained = len(self._state.segments.dead) or self._cleaner.emptied_count
        if not gained:
            self.phase = IDLE
            return
        self.phase, self._filled = Phase.CHECKPOINT, False
        self._gain = gained * (self._state.segments.units - self._cleaner.live)
        self._allowance = self._gain // 2
        self._frees = self._state.checkpoint_number + 1 + self._checkpoints.is_frozen

    def _checkpoint(self, paid: Earned, record: Record) -> bool:
        """Take a step of the checkpoint. It is frozen when few short-lived chunks wait.

        Steps before that move what fills the last segment, so that no write does both.
        """
        state, checkpoints = self._state, self._checkpoints
        left, least = paid.left, 0
        if not checkpoints.is_frozen:  # two steps more, and it fills a segment
            left -= state.segments.units + 2 * paid.taken
            least = LEAST_MERGES * paid.taken
        paid = Earned(paid.taken, max(least, min(left, self._allowance)))
        self._allowance -= paid.taken
        if checkpoints.may_freeze(record.stored_bytes):
            if not state.space_usage.mixes_little and left >= state.segments.units:
                return True
            if not self._filled:
                if state.chunks.moving and not state.segments.dead:
                    state.chunks.destage_some_moving()
                elif left >= state.segments.units:
                    if self._removed_dropped(paid, LEAST_REMOVED * record.count):
                        return True
                    most = max(self._least_moved, state.geometry.chunk_units) * record.count
                    self._filled = not self._cleaner.top_up_some(most, paid.taken + 1)
                else:  # one more unit is left, so that this write does not fill the segment
                    self._cleaner.top_up(paid.taken + 1)
                    self._filled = True
                return True
            self._cleaner.top_up()
            checkpoints.freeze()
            self._allowance = max(self._allowance, self._gain // 4)
            return True
        self._filled = False  # writes go on: by the freeze it is another segment
        checkpoints.step(record.stored_bytes, paid, blocks=record.count)
        if state.checkpoint_number >= self._frees:
            self.phase = IDLE
        return True

    def _free_cleaned(self) -> None:
        """Write the checkpoint that frees what was cleaned at once."""
        self._refused = True
        self._checkpoints.run(whole=False)
        self._refused, self.phase = False, IDLE
