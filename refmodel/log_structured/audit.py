"""The audit: do the maps agree with each other? Exactly what is reachable is allocated and counted.

It walks everything and changes nothing. It is for tests, for scrub, and for changes of the engine.
"""

from collections import Counter
from collections.abc import Iterator
from operator import lt
from typing import Any

from refmodel.log_structured.chunks.deduplication import ALIAS, target_of
from refmodel.log_structured.maps.cow_btree import LAST, Tree
from refmodel.log_structured.state import DiskState


def audit(state: DiskState) -> list[str]:
    """Return what is wrong, one line each; [] if nothing is. Raises DataLost.

    Reclaim may be under way, and dropped chunks may still be in the maps.
    """
    parts = (_live, _chunks, _queues, _sharing, _segments, _victims, _stored, _pages, _shapes)
    return [wrong for part in parts for wrong in part(state)]


def _live(state: DiskState) -> Iterator[str]:
    """Yield where live remembers what its tree does not hold."""
    live = state.views.live_map
    held = dict(live.items())
    if wrong := [lba for lba, mba in live.remembered() if held.get(lba) != mba]:
        yield f"live remembers blocks {wrong} as they are not"


def _held(state: DiskState) -> set[int]:
    """Return the chunks that views hold."""
    views = state.views.by_id.values()
    return {mba for view in views for _, mba in view.map.items(view.cursor)}


def _chunks(state: DiskState) -> Iterator[str]:
    """Yield chunks that a view holds and that are not stored, and stored ones held by no view."""
    stored = {mba for mba, _ in state.chunks.middle.items()}
    referred = {target_of(pba) for _, (pba, _) in state.chunks.middle.items() if pba & ALIAS}
    banked, dropped = set(state.chunks.bank), set(state.chunks.dropped)
    if both := stored & banked:
        yield f"chunks {sorted(both)} are in the bank and in a segment"
    held = _held(state)
    if dangling := held - stored - banked:
        yield f"chunks {sorted(dangling)} are held by a view and stored nowhere"
    if leaked := (stored | banked) - held - referred - dropped:
        yield f"chunks {sorted(leaked)} are stored and held by no view"
    if lost := dropped & held:
        yield f"chunks {sorted(lost)} are dropped and held by a view"
    if missing := dropped - stored:
        yield f"chunks {sorted(missing)} are dropped and stored nowhere"
    if astray := set(state.chunks.moving) - stored:
        yield f"chunks {sorted(astray)} are moving and stored nowhere"


def _queues(state: DiskState) -> Iterator[str]:
    """Yield where the queues lack what is to be destaged, or have anything else."""
    chunks = state.chunks
    if not all(queue.counts_right for queue in chunks.queues):
        yield "the queues do not count what is to be destaged"
    queued = [mba for queue in chunks.queues for mba, _ in queue.items()]
    if len(queued) != len({*queued}):
        yield "chunks are queued twice"
    there = chunks.bank.keys() | chunks.moving.keys()
    if astray := {*queued} - there:
        yield f"chunks {sorted(astray)} are queued and not in memory"
    wait = chunks.moving.keys() if state.geometry.deduplication else there
    if lost := wait - {*queued}:
        yield f"chunks {sorted(lost)} are in memory and not queued"
    if state.geometry.deduplication and chunks.deduplication.known() != chunks.bank.keys():
        yield "the chunks of the bank are not those that are compared"


def _sharing(state: DiskState) -> Iterator[str]:
    """Yield references that count wrong, and entries of the index that lead to nothing stored."""
    middle, (index, references) = dict(state.chunks.middle.items()), state.chunks.deduplication.maps
    held = (_held(state) | set(state.chunks.dropped)) & middle.keys()
    counted = Counter(target_of(middle[mba][0]) if middle[mba][0] & ALIAS else mba for mba in held)
    for mba, (count, key) in references.items():
        if middle.get(mba, (ALIAS, 0))[0] & ALIAS:
            yield f"chunk {mba} has references and is not stored"
        if count != counted[mba]:
            yield f"{counted[mba]} chunks share chunk {mba}, {count} are counted"
        if index.get(key) is None:
            yield f"the index lacks the fingerprint of chunk {mba}"
    if astray := {mba for _, (*_, mba) in index.items()} - {mba for mba, _ in references.items()}:
        yield f"the index leads to chunks {sorted(astray)}, which have no references"
    if uncounted := {mba for mba, count in counted.items() if count > 1} - {
        mba for mba, _ in references.items()
    }:
        yield f"chunks {sorted(uncounted)} are shared and have no references"
    if dangling := counted.keys() - middle.keys():
        yield f"chunks {sorted(dangling)} are shared and stored nowhere"


def _segments(state: DiskState) -> Iterator[str]:
    """Yield where the owners lack what the middle map says, or the usage table is wrong."""
    living = {pba: mba for mba, (pba, _) in state.chunks.middle.items() if not pba & ALIAS}
    owners = dict(state.segments.owners.items())
    if wrong := sorted(pba for pba, mba in living.items() if owners.get(pba) != mba):
        yield f"places {wrong} are not owned by the chunks that live there"
    counted = state.segments.addressing.by_segment(list(living))
    if counted != Counter(dict(state.segments.usage())):
        yield "the usage table does not count what lives in the segments"
    if state.segments.live != counted.total():
        yield f"{counted.total()} units live in segments, {state.segments.live} are counted"
    if overlap := set(state.segments.sealed) & set(state.segments.dead):
        yield f"segments {sorted(overlap)} are sealed and dead"
    known = (
        state.segments.free_count()
        + state.segments.reserved_count
        + state.segments.sealed_count
        + len(state.segments.dead)
    )
    if known != state.segments.count:
        yield (
            f"{state.segments.count - known} of {state.segments.count} segments"
            " are neither free nor in use"
        )


def _victims(state: DiskState) -> Iterator[str]:
    """Yield segments that will never be cleaned, though what lives in them does not fill them."""
    segments = state.segments
    yield from segments.victims.contradictions()
    for segment, use in segments.sealed.items():
        found = segments.victims.usage(segment)
        if found is not None and found != (use.live, use.filled):
            yield f"segment {segment} is to be cleaned as one that it is not"
        elif found is None and use.live < segments.units:
            living = state.chunks.living(segment).keys()
            if living - state.chunks.moving.keys() - {*state.chunks.dropped}:
                yield f"segment {segment} is not to be cleaned"


def _stored(state: DiskState) -> Iterator[str]:
    """Yield where the stored tables say something else than memory."""
    if wrong := state.segments.stored_otherwise():
        yield f"the usage of segments {wrong} is stored otherwise"
    if wrong := state.views.stored_otherwise():
        yield f"views {wrong} are stored otherwise"
    yield from state.pages.contradictions()


def _pages(state: DiskState) -> Iterator[str]:
    """Yield reachable pages that are not in use, unreachable marked pages that are, and a number
    of pages of which nobody knows.
    """
    reachable: set[int] = set()
    for tree in state.service_maps:
        reach(tree, tree.root, 0, LAST, reachable)
    for view in state.views.by_id.values():
        reach(view.map, view.map.root, view.cursor, LAST, reachable)
    if leaked := state.pages.in_use.keys() - reachable:
        yield f"pages {sorted(leaked)} are in use and not reachable"
    dangling = reachable - state.pages.in_use.keys()
    if dangling and state.pages.in_use.all_marked:
        yield f"pages {sorted(dangling)} are reachable and not in use"
    if free := [page for page in reachable if page in state.pages.unused]:
        yield f"pages {sorted(free)} are reachable and free"
    if state.pages.used_count != len(reachable):
        yield f"{len(reachable)} pages are in use, {state.pages.used_count} are counted"
    pages, most = state.pages, state.pages.unused.pages - 1  # without page 0
    if leaked := pages.of_changes - state.increments.pages_of_changes:
        yield f"pages {sorted(leaked)} have changes that no checkpoint refers to"
    known = pages.used_count + len(pages.pending) + len(pages.of_changes) + pages.free_count()
    if known != most and not pages.unused.unknown:
        yield f"{most - known} of {most} pages are neither free nor in use"


def reach(tree: Tree[Any], page: int, low: int, end: int, reachable: set[int]) -> None:
    """Collect the pages below a page that lead to keys from `low` on. Raises DataLost."""
    if not page or page in reachable:
        return
    reachable.add(page)
    node = tree.pages.get(page, tree.kind, "scrub")
    if node.level == 0:
        return
    for at, child in enumerate(node.values):
        child_end = node.keys[at + 1] if at + 1 < len(node.keys) else end
        if child_end > low:
            reach(tree, child, low, child_end, reachable)


def _shapes(state: DiskState) -> Iterator[str]:
    """Yield nodes whose keys are not in order, or not where the node above says, and levels that
    do not follow each other.
    """
    seen: set[int] = set()
    for tree in state.service_maps:
        yield from _shape(tree, tree.root, (0, LAST), 0, seen)
    for view in state.views.by_id.values():
        yield from _shape(view.map, view.map.root, (0, LAST), view.cursor, seen)


def _shape(
    tree: Tree[Any], page: int, bounds: tuple[int, int], cursor: int, seen: set[int]
) -> Iterator[str]:
    """Yield what is wrong with the keys of a page, and of those below that lead to keys from
    `cursor` on.
    """
    if not page or page in seen:
        return
    seen.add(page)
    node = tree.pages.get(page, tree.kind, "scrub")
    low, end = bounds
    keys = node.keys
    if not keys or not low <= keys[0] <= keys[-1] < end or not all(map(lt, keys, keys[1:])):
        yield f"the keys of page {page} are not in order, or not from {low} to {end}"
        return
    if len(keys) > tree.most_entries(node.level):
        yield f"page {page} has {len(keys)} entries"
    for at, child in enumerate(node.values if node.level else ()):
        child_end = keys[at + 1] if at + 1 < len(keys) else end
        if child_end <= cursor:
            continue
        if tree.pages.get(child, tree.kind, "scrub").level != node.level - 1:
            yield f"page {child} is not of the level below page {page}"
            return
        yield from _shape(tree, child, (keys[at], child_end), cursor, seen)
