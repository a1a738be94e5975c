"""Configurations of the search for an order: what may have happened, and which of them are one."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from conformance.contract import model
from conformance.contract.model import ZERO, Image, State


class Config(NamedTuple):
    """What may have happened: the steps in flight that took effect, and the state after them."""

    done: frozenset[int]
    state: State


def agrees(state: State, image: dict[int, int]) -> bool:
    """Whether the live disk may hold these tags."""
    return all(
        tag in model.possible(state.live.get(lba, ZERO), state.bound) for lba, tag in image.items()
    )


def _key(config: Config) -> tuple[Any, ...]:
    """What two configurations must have alike to be one."""
    state = config.state
    left = state.survivors
    key = (config.done, state.live, state.snaps, state.bound, state.power, state.devices)
    if state.rules.profile == "block":
        since = frozenset((lba, frozenset(_linked(pair))) for lba, pair in left.since.items())
        return (*key, left.live, left.snaps, since)
    return key


def _linked(pair: Any) -> Iterator[int]:
    while pair is not None:
        yield pair[0]
        pair = pair[1]


def merged(configs: Iterable[Config]) -> list[Config]:
    """One configuration of those that are alike, with everything that a power cut may leave."""
    merged: dict[tuple[Any, ...], Config] = {}
    for config in configs:
        key = _key(config)
        known = merged.get(key)
        if known is None:
            merged[key] = config
        elif known.state.rules.profile == "prefix":
            merged[key] = known._replace(
                state=known.state._replace(
                    survivors=_union(known.state.survivors, config.state.survivors)
                )
            )
    return list(merged.values())


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
