"""Changes of the set of snapshots while other requests are in flight, and the one that a power cut
falls into.

Changes are made one after another. What was in flight at the cut is carried out to its end, and the
log of writes says afterwards what of it came before the cut."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple


class Mark(NamedTuple):
    """A place in the log of writes: its length in bytes, and how many writes it has."""

    end: int
    writes: int


@dataclass
class Change:
    """A request `op`: where it began and ended, and what was known of the snapshots then."""

    op: str
    begin: Mark
    known: Any
    end: Mark = Mark(0, 0)
    after: Any = None

    def whole(self, end: int, last: int | None) -> bool:
        """Return whether all that it wrote came before the cut: at write number `last`, or else
        where the log had `end` bytes.
        """
        return self.end.end <= end if last is None else self.end.writes < last

    def begun(self, end: int, last: int | None) -> bool:
        """Return whether some of it may have come before the cut."""
        return self.begin.end < end if last is None else self.begin.writes < last


class Changes:
    """The changes since `clear`. The holder of `lock` makes one, or opens a snapshot."""

    def __init__(self, mark: Callable[[], Mark], known: Callable[[], Any]) -> None:
        self._mark, self._known = mark, known
        self._made: list[Change] = []
        self.lock = threading.RLock()

    def clear(self) -> None:
        """Forget all changes: nothing is in flight, and the log is read."""
        self._made = []

    @contextmanager
    def made(self, op: str) -> Iterator[None]:
        """Make the change in this `with` block, and no other."""
        with self.lock:
            change = Change(op, self._mark(), self._known())
            self._made.append(change)
            try:
                yield
            finally:
                change.end, change.after = self._mark(), self._known()

    def first_cut(self, end: int, last: int | None) -> Change | None:
        """Return the first that is not whole: the only one that the cut can have fallen into."""
        return next((change for change in self._made if not change.whole(end, last)), None)
