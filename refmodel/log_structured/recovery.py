"""Recovery: what a disk does when it is opened.

The actions `load`, `replay` and `recover` of specs/LogStructuredDisk.tla.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from refmodel.journal import checkpoint as checkpoints
from refmodel.journal.checkpoint import Checkpoint
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.chunks.deduplication import ALIAS
from refmodel.log_structured.maps.changes import Changes
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.state import DiskState

PUT_AT_ONCE = 4096  # changes of increments


def recover(state: DiskState, on_load: Callable[[], None]) -> None:
    """Load the newest checkpoint, then replay the log behind it, one record a step.

    `on_load` is called between the two. Raises DataLost.
    """
    checkpoint = load(state)
    on_load()
    replayed = 0
    for record in state.log.recover(
        checkpoint.log_tail, checkpoint.log_sequence, checkpoint.log_generation
    ):
        replay(state, record)
        replayed += 1
    state.emit("recover", checkpoint=checkpoint.number, replayed=replayed)
    reclaim_for_bank(state)


def reclaim_for_bank(state: DiskState) -> None:
    """Reclaim until the bank fits into the free segments, and one is left for the cleaner.

    It did before the crash. A crash takes reclaim back, so chunks that were dropped from the bank
    are in it again; but it does not take back the segments that large writes took. Raises DataLost.
    """
    usage, segments = state.space_usage, state.segments
    while usage.queued_units() > (segments.free_count() - 1) * segments.units:
        if not state.reclaimer.reclaim():
            return


def replay(state: DiskState, record: Record) -> None:
    """Make the operation of a record happen that recovery found in the log."""
    state.emit("replay", **record.facts)
    if record.kind is not RecordKind.OPEN:
        state.survey.finish_if_scarce()
        state.merge(record.count)
        state.apply(record)


def put_changes(state: DiskState, changes: dict[MapKind, Changes]) -> None:
    """Put the changes of increments into the maps of their whole checkpoint, which are loaded.

    Raises DataLost.
    """
    trees: dict[MapKind, Tree[Any]] = {tree.kind: tree for tree in state.service_maps}
    trees[MapKind.LOGICAL] = state.views.live_map
    moved = changes.get(MapKind.MIDDLE, {}).items()
    changes[MapKind.SEGMENT_OWNERS] = {
        entry[0]: mba for mba, entry in moved if entry and not entry[0] & ALIAS
    }
    for kind, changed in changes.items():
        put(state, trees[kind], changed)
    state.increments.record()


def put(state: DiskState, tree: Tree[Any], changes: Changes) -> None:
    """Put changes into a tree: new values, and None for what is there no more. Raises DataLost."""
    keys = sorted(changes)
    for at in range(0, len(keys), PUT_AT_ONCE):
        state.survey.finish_if_scarce()
        some = keys[at : at + PUT_AT_ONCE]
        new = [key for key in some if changes[key] is not None]
        tree.put_many(new, [changes[key] for key in new])
        gone = [key for key in some if changes[key] is None]
        stored = zip(gone, Tree.get_many(tree, gone), strict=True)
        tree.remove_many([key for key, value in stored if value is not None])


def load(state: DiskState) -> Checkpoint:
    """Make memory what the newest checkpoint says. Raises DataLost if none is whole."""
    slot, state.array.slots_repaired = checkpoints.recover_newest(state.performance)
    checkpoint = checkpoints.with_roots(slot, state.pages.checksums.refer)
    changes = state.increments.load(slot)
    state.checkpoint_number = checkpoint.number
    state.clock.now = checkpoint.clock
    state.clock.freeze()
    state.clock.commit()
    first_unused = checkpoint.first_unused_page
    state.pages.load(first_unused, Counter(dict(zip(MapKind, checkpoint.pages, strict=True))))
    state.chunks.middle.root = checkpoint.middle
    state.segments.owners.root, state.segments.table.root = checkpoint.owners, checkpoint.usage
    state.segments.load(
        checkpoint.first_unused_segment if first_unused else 0,
        checkpoint.sealed,
        checkpoint.live,
        changes.get(MapKind.SEGMENT_USAGE, {}),
    )
    deduplication = state.chunks.deduplication
    deduplication.index.root = checkpoint.fingerprints
    deduplication.references.root = checkpoint.references
    state.views.load(checkpoint.views, checkpoint.next_view)
    state.survey.open(state.trees_in_use(), first_unused, foreseen=state.events.record is not None)
    state.trees.tell("load", number=checkpoint.whole or checkpoint.number)
    state.note_whole()
    put_changes(state, changes)
    state.pages.opened()
    state.emit(
        "load",
        number=checkpoint.number,
        sequence=checkpoint.log_sequence,
        deleted=len(state.views.deleted),
        usage=state.segments.usage,
        pages=state.pages.stripes,
    )
    return checkpoint
