"""A breadth-first walk over all reachable nodes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar


class HasDone(Protocol):
    """A node of the graph that `levels` walks."""

    @property
    def done(self) -> frozenset[int]:
        """The steps in flight that took effect."""


T = TypeVar("T", bound=HasDone)


def levels(
    start: Iterable[T], merge: Callable[[list[T]], Iterable[T]], after: Callable[[T], Iterable[T]]
) -> Iterator[list[T]]:
    """Yield lists of nodes by the number of steps to them; nodes left in a list are walked on."""
    waiting: dict[int, list[T]] = {}
    for one in start:
        waiting.setdefault(len(one.done), []).append(one)
    while waiting:
        size = min(waiting)
        level = list(merge(waiting.pop(size)))
        yield level
        for one in level:
            for other in after(one):
                waiting.setdefault(size + 1, []).append(other)
