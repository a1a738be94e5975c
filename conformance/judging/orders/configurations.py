"""Configurations of the search for an order: what may have happened, and which of them are one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from conformance.contract import model
from conformance.contract.model import ZERO, Image, State
from conformance.judging.orders.columns import Blocks, Columns

MOST_COMPARED = 64  # configurations with the same steps taken, of which each two are compared

Merge = Callable[[Columns], Columns]


class Config(NamedTuple):
    """What may have happened: the steps in flight that took effect, and the state after them.

    Where blocks are judged apart, `done` and `state` are of the steps that blocks share, the state
    holds no data, and `blocks` says what may have happened to each block."""

    done: frozenset[int]
    state: State
    blocks: Blocks


def agrees(state: State, image: dict[int, int]) -> bool:
    """Whether the live disk may hold these tags."""
    return all(
        tag in model.possible(state.live.get(lba, ZERO), state.bound) for lba, tag in image.items()
    )


def held(state: State, unseen: int) -> int:
    """How many different blocks all views hold, at most: tags `unseen` may all differ."""
    pairs = [pair for view in (state.live, *state.snaps.values()) for pair in view.items()]
    told = [pair for pair in pairs if pair[1] != unseen]
    return len(set(told)) + len(pairs) - len(told)


def merged(configs: Iterable[Config], merge: Merge) -> list[Config]:
    """One configuration of those that are alike, with everything that a power cut may leave.

    Of those that differ in what may have happened to blocks, `merge` makes one where that is
    exact: they differ in one block, or one has all that the other has."""
    merged: dict[tuple[Any, ...], list[Config]] = {}
    for config in configs:
        state = config.state
        key = (config.done, state.live, state.snaps, state.bound, state.power, state.devices)
        known = merged.setdefault(key, [])
        if not known:
            known.append(config)
        elif config.blocks:
            _add(known, config, merge)
        elif state.rules.profile == "prefix":
            left = _union(known[0].state.survivors, state.survivors)
            known[0] = known[0]._replace(state=known[0].state._replace(survivors=left))
    return [config for known in merged.values() for config in known]


def _add(known: list[Config], config: Config, merge: Merge) -> None:
    """Put the configuration into a list of such that differ from it in their blocks only."""
    if any(config.blocks == other.blocks for other in known):
        return
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


def _union(one: Image, other: Image) -> Image:
    """All images of both lists, the newest of `one` first."""
    if one is other:
        return one
    shared = {id(image) for image in _images(one)}
    known = {(image.live, image.snaps) for image in _images(one)}
    extra = []
    for image in _images(other):
        if id(image) in shared:
            break
        if (image.live, image.snaps) not in known:
            extra.append(image)
    if not extra:
        return one
    older = one.older
    for image in reversed(extra):
        older = image._replace(older=older)
    return one._replace(older=older)


def _images(image: Image | None) -> Iterator[Image]:
    while image is not None:
        yield image
        image = image.older
