"""The state of the contract: what a disk holds, and what a power cut may leave of it.

A state is immutable. Two things differ from specs/VirtualDisk.tla in form, not in meaning:

- The survivors of a power cut are linked cells, the newest image first. A history costs one cell
  per operation, and a thousand states share it.
- A block that a crash leaves open (profile `block`) stays open: it holds a `Choice`, shared by
  every view that copies it, until a read decides it for all of them. Nothing is lost by deciding
  the least. Take a block that is read as 5: it may have held 5 of its own, or taken it from a base
  that is open too. It is 5 either way, and the first way leaves the base free, so what it allows
  includes what the second allows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from immutables import Map

Blocks = Map[int, Any]  # LBA -> a tag, or the Choice of one; blocks that are not in it are zero
Views = Map[str, Blocks]  # name of a snapshot -> what it holds
Bound = Map[Any, int]  # Choice -> the tag that a read found

ZERO = 0
EMPTY: Map[Any, Any] = Map()


class Choice:
    """A block that a crash left open: what `base` is, or one of `tags`. It is compared by
    identity.
    """

    __slots__ = ("base", "tags")

    def __init__(self, base: "int | Choice", tags: frozenset[int]):
        self.base, self.tags = base, tags

    def possible(self, bound: Bound) -> frozenset[int]:
        """Return the tags that the block may still turn out to hold."""
        if self in bound:
            return frozenset([bound[self]])
        return self.tags | possible(self.base, bound)


def possible(held: int | Choice, bound: Bound) -> frozenset[int]:
    """Return the tags that what a block holds may turn out to be."""
    return held.possible(bound) if isinstance(held, Choice) else frozenset([held])


def decided(held: int | Choice, tag: int, bound: Bound) -> Bound | None:
    """Return `bound` after `held` was read as `tag`; None if it cannot be `tag`."""
    tried = []
    while isinstance(held, Choice) and held not in bound:
        tried.append(held)
        if tag in held.tags:
            break
        held = held.base
    else:
        if tag != (bound[held] if isinstance(held, Choice) else held):
            return None
    return bound.update((choice, tag) for choice in tried)


class Image(NamedTuple):
    """One image that a power cut may leave, and `older`, the rest of them."""

    live: Blocks
    snaps: Views  # name -> Blocks
    since: Map[
        int, Any
    ]  # LBA -> the tags it may hold instead, as linked pairs (tag, older pair or None)
    older: "Image | None"


class Rules(NamedTuple):
    """The promises that the target makes in its `hello`."""

    profile: str
    capabilities: frozenset[str]
    tolerates: int


class Devices(NamedTuple):
    """The devices whose data is not good, or not yet again.

    In doubt a device counts as not good: an honest target must never be accused.
    """

    failed: frozenset[int] = frozenset()
    back: frozenset[int] = (
        frozenset()
    )  # failed ones that were returned or replaced, until the next settle
    asked: frozenset[int] = frozenset()  # failed ones that may have been returned or replaced
    lost: bool = False  # one was replaced while too many had failed: some data is gone for good


class State(NamedTuple):
    """A possible state of the disk: its views, what survives a power cut, and its devices."""

    rules: Rules
    size: int
    live: Blocks
    snaps: Views  # name -> Blocks
    survivors: Image
    power: bool
    bound: Bound  # Choice -> the tag that a read found
    devices: Devices


States = tuple[State, ...]


# What survives a power cut.


def exactly(live: Blocks, snaps: Views) -> Image:
    """Return the one image of these views: nothing else survives."""
    return Image(live, snaps, EMPTY, None)


def buffered(state: State, live: Blocks, changes: Iterable[tuple[int, int]]) -> State:
    """Return the state after a write or an unmap that sets the `changes`."""
    survivors = state.survivors
    match state.rules.profile:
        case "ack":
            survivors = exactly(live, state.snaps)
        case "prefix":
            survivors = Image(live, state.snaps, EMPTY, survivors)
        case "block":
            since = survivors.since
            survivors = survivors._replace(
                since=since.update((at_lba, (tag, since.get(at_lba))) for at_lba, tag in changes)
            )
    return state._replace(live=live, survivors=survivors)


def forced(state: State, live: Blocks, changes: Sequence[tuple[int, int]], answered: bool) -> State:
    """Return the state after a write of `changes` that is durable once it is answered (`fua`).

    Every image that a power cut may leave has the changes. Until the write is answered, what it
    would leave without being durable may be left, too."""
    plain = buffered(state, live, changes)
    if state.rules.profile == "ack" or state.rules.profile == "block" and not answered:
        return plain  # a block of an image that is open holds an old value or the new one
    images = [
        image._replace(live=image.live.update(changes), since=without(image.since, dict(changes)))
        for image in _images(state.survivors)
    ]
    older = None if answered else plain.survivors
    for image in reversed(images):
        older = image._replace(older=older)
    assert older is not None
    return state._replace(live=live, survivors=older)


def recorded(state: State, live: Blocks, snaps: Views) -> State:
    """Return the state after a snapshot operation."""
    older = state.survivors if state.rules.profile == "prefix" else None
    return state._replace(live=live, snaps=snaps, survivors=Image(live, snaps, EMPTY, older))


def cut(state: State, after: State) -> State:
    """Return the state when the power fails before the answer.

    What survives is what would have survived if the operation had happened, or if it had not.
    """
    left, survivors = after.survivors, state.survivors
    if after.live is not state.live or after.snaps is not state.snaps:
        includes = left.since or any(image.older is survivors for image in _images(left))
        survivors = left if includes else left._replace(older=survivors)
    return state._replace(survivors=survivors, power=False)


def _images(newest: Image) -> Iterator[Image]:
    image: Image | None = newest
    while image is not None:
        yield image
        image = image.older


def without(blocks: Map[int, Any], lbas: Iterable[int]) -> Map[int, Any]:
    """Return the map without these keys: the same map if it has none of them."""
    there = [lba for lba in lbas if lba in blocks]
    if not there:
        return blocks
    left = blocks.mutate()
    for lba in there:
        del left[lba]
    return left.finish()
