"""Configurations of the search for an order: what may have happened, and which of them are one."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from conformance.contract.model import ZERO, State
from conformance.judging.orders.columns import Blocks, Columns
from conformance.judging.orders.worlds import World

MOST_COMPARED = 64  # configurations with the same steps taken, of which each two are compared

Merge = Callable[[Columns], Columns]


class Config(NamedTuple):
    """What may have happened: the steps that blocks share and that took effect while in flight, the
    world after them, and what may have happened to each block. The world holds no data then; it
    holds all if no blocks are judged apart."""

    done: frozenset[int]
    world: World
    blocks: Blocks


def agrees(state: State, image: dict[int, int]) -> bool:
    """Whether the live disk holds these tags."""
    return all(state.live.get(lba, ZERO) == tag for lba, tag in image.items())


def held(state: State, unseen: int) -> int:
    """How many different blocks all views hold, at most: tags `unseen` may all differ."""
    pairs = [pair for view in (state.live, *state.snaps.values()) for pair in view.items()]
    told = [pair for pair in pairs if pair[1] != unseen]
    return len(set(told)) + len(pairs) - len(told)


def merged(configs: Iterable[Config], merge: Merge) -> list[Config]:
    """One configuration of those that are alike.

    Of those that differ in what may have happened to blocks, `merge` makes one where that is
    exact: they differ in one block, or one has all that the other has."""
    different: dict[tuple[Any, ...], dict[Blocks, Config]] = {}
    for config in configs:
        now, saved = config.world
        key = (config.done, now.live, now.snaps, now.power, now.devices, saved and saved.snaps)
        different.setdefault(key, {}).setdefault(config.blocks, config)
    found: list[Config] = []
    for alike in different.values():
        known: list[Config] = []
        for config in alike.values():
            _add(known, config, merge)
        found += known
    return found


def _add(known: list[Config], config: Config, merge: Merge) -> None:
    """Put the configuration into a list of such that differ from it in their blocks only."""
    if len(known) < MOST_COMPARED:
        for at, other in enumerate(known):
            both = _joined(other.blocks, config.blocks, merge)
            if both is not None:
                del known[at]
                return _add(known, config._replace(blocks=both), merge)
    known.append(config)


def _joined(one: Blocks, other: Blocks, merge: Merge) -> Blocks | None:
    """The blocks with which one configuration admits what two with these blocks admit, if any."""
    changed: list[tuple[int, Columns]] = []
    first, second = True, True  # has all that the other has
    for lba, mine in one.items():
        others = other[lba]
        if mine != others:
            both = merge(mine | others)
            changed.append((lba, both))
            first = first and both == mine
            second = second and both == others
            if len(changed) > 1 and not (first or second):
                return None
    return one if first else other if second else one.update(changed)
