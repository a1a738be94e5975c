"""Configurations of the search for an order: what may have happened, and which of them are one."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import Any, NamedTuple

from conformance.contract.model import ZERO, State
from conformance.contract.trace import Event
from conformance.judging.orders.columns import Blocks, Columns
from conformance.judging.orders.worlds import World

UNSEEN = -2  # stands for every tag that no read returned
MOST_HASHED = 4096  # views that are kept with their hashes
MOST_COMPARED = 64  # configurations with the same steps taken, of which each two are compared

Both = Callable[[Columns, Columns], Columns]
Hashes = dict[int, tuple[Mapping[int, Any], int]]  # id of a view -> the view, and its hash


class Config(NamedTuple):
    """A configuration: one way in which the requests may have taken effect.

    `done` are the steps that blocks share and that took effect while in flight, `world` is the
    world after them, `blocks` what may have happened to each block. The world holds no data then;
    it holds all data if no blocks are judged apart.
    """

    done: frozenset[int]
    world: World
    blocks: Blocks


def agrees(state: State, image: dict[int, int]) -> bool:
    """Return whether the live disk holds these tags."""
    return all(state.live.get(lba, ZERO) == tag for lba, tag in image.items())


def held(
    state: State,
    written: Mapping[tuple[int, int], int],
    at: int = 0,
    sizes: Sequence[int] = (),
) -> int:
    """Return how many different blocks all views hold, at most.

    Two views that hold the same tag in the same block may hold two copies if it was `written` there
    twice, or if the tag stands for any that no read returned. Zeroes that were not written are no
    block. Block 0 of the state is block `at`. Where blocks stand for extents, these have `sizes`.
    """
    once: set[tuple[int, int]] = set()
    copies = 0
    for view in (state.live, *state.snaps.values()):
        for lba, tag in view.items():
            times = written.get((lba + at, tag), 0)
            if tag == UNSEEN or times > 1:
                copies += sizes[lba + at] if sizes else 1
            elif tag != ZERO or times:
                once.add((lba, tag))
    return copies + (sum(sizes[lba + at] for lba, _ in once) if sizes else len(once))


def times_written(events: Iterable[Event]) -> Counter[tuple[int, int]]:
    """Return how often each tag was written to each LBA: an engine may store all of them."""
    return Counter(
        pair
        for event in events
        if event["op"] == "write"
        for pair in enumerate(event["tags"], event["lba"])
    )


def merged(configs: Iterable[Config], both: Both, hashes: Hashes) -> list[Config]:
    """Return one configuration of those that are alike.

    Of those that differ in what may have happened to blocks, `both` makes one where that is
    exact: they differ in one block, or one has all that the other has. `hashes` are those of views
    that earlier calls have met; this call adds to them."""
    configs = list(configs)
    if len(configs) < 2:
        return configs  # most calls
    different: dict[tuple[Any, ...], dict[Blocks, Config]] = {}
    snaps: dict[int, frozenset[tuple[str, int]]] = {}  # by their id: most configurations share them
    for config in configs:
        now, saved = config.world
        if (these := id(now.snaps)) not in snaps:
            snaps[these] = frozenset(
                (name, _hash(view, hashes)) for name, view in now.snaps.items()
            )
        alike = _hash(now.live, hashes), snaps[these], config.done, now.power, now.devices
        key = (alike, now.live, now.snaps, saved and saved.snaps)
        different.setdefault(key, {}).setdefault(config.blocks, config)
    found: list[Config] = []
    for same in different.values():
        if len(same) == 1:
            found += same.values()
            continue
        known: list[Config] = []
        for config in same.values():
            _add(known, config, both)
        found += known
    return found


def _hash(view: Mapping[int, Any], hashes: Hashes) -> int:
    """Return a number that two contents of a view seldom have in common, and keep it in `hashes`.

    The hash of a Map does not tell apart maps in which the same values are in other places, so a
    dictionary would compare a configuration with many others.
    """
    known = hashes.get(id(view))
    if known is None:
        if len(hashes) == MOST_HASHED:
            hashes.clear()
        known = hashes[id(view)] = view, hash(frozenset(view.items()))
    return known[1]


def _add(known: list[Config], new: Config, both: Both) -> None:
    """Put the configuration into a list of such that differ from it in their blocks only."""
    if len(known) < MOST_COMPARED:
        for at, other in enumerate(known):
            joined = _joined(other.blocks, new.blocks, both)
            if joined is not None:
                del known[at]
                return _add(known, new._replace(blocks=joined), both)
    known.append(new)


def _joined(one: Blocks, other: Blocks, both: Both) -> Blocks | None:
    """Return the blocks with which one configuration admits what two with these admit, if any."""
    changed: list[tuple[int, Columns]] = []
    first, second = True, True  # has all that the other has
    for at in compress(range(len(one)), map(is_not, one, other)):  # most are the same objects
        mine, others = one[at], other[at]
        if mine != others:
            merged = both(mine, others)
            changed.append((at, merged))
            first = first and merged == mine
            second = second and merged == others
            if len(changed) > 1 and not (first or second):
                return None
    if first or second:
        return one if first else other
    joined = list(one)
    for at, merged in changed:
        joined[at] = merged
    return tuple(joined)
