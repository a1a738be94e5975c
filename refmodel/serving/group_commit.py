"""Group commit: requests that arrive while a group is performed wait, and form the next group.

A group takes one log I/O per mirror, one flush and one walk of the map, so the more requests are
in flight, the less each costs (DeWitt et al., "Implementation techniques for main memory database
systems", 1984). A group never waits to grow. But it begins only when every request of the group
before it was answered. Otherwise the first client to ask again would form a group of one, before
the others could join it.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from refmodel.core.errors import DiskError
from refmodel.registry import Disk

ViewName = Callable[[], str | None]  # returns the name of the view to read; may raise DiskError
LONG = 1 << 17  # bytes: a write of this length or more is performed alone


class Pending:
    """A request that waits: a write to the live view if it has data, else a read of a view.

    `lba` (logical block address) and `count` are in blocks. When it is `done`, `result` has the
    bytes that were read, or `error` says why the request failed.
    """

    __slots__ = ("lba", "count", "data", "view", "result", "error", "done", "gate")

    def __init__(
        self, lba: int, count: int, data: bytes | None = None, view: ViewName = lambda: None
    ) -> None:
        self.lba, self.count, self.data, self.view = lba, count, data, view
        self.result = b""
        self.error: BaseException | None = None
        self.done = False
        self.gate = threading.Lock()  # released when it is done, or has to lead the next group
        self.gate.acquire()


class GroupCommit:
    """Performs requests of many threads in groups. It holds `turn` while it performs one."""

    def __init__(
        self, turn: AbstractContextManager[None], perform: Callable[[list[Pending]], None]
    ) -> None:
        self._turn = turn
        self._perform = perform
        self._lock = threading.Lock()
        self._waiting: list[Pending] = []
        self._has_leader = False  # whether a thread is going to perform those that wait
        self._unanswered = 0  # requests of the last group that have not returned yet

    @property
    def waiting(self) -> int:
        """How many requests wait for the next group."""
        return len(self._waiting)

    def submit(self, request: Pending) -> bytes:
        """Perform a request in a group. Returns what was read; raises the request's error."""
        with self._lock:
            self._waiting.append(request)
            leads, self._has_leader = not self._has_leader, True
        if not leads:
            request.gate.acquire()
        if not request.done:
            self._lead()
        self._return()
        if request.error is not None:
            raise request.error
        return request.result

    def _lead(self) -> None:
        """Perform all requests that wait, and release their threads."""
        group: list[Pending] = []
        try:
            with self._turn:
                with self._lock:
                    group, self._waiting = self._waiting, []
                self._perform(group)
        except BaseException as error:
            for request in group:
                request.error = error
        finally:
            self._unanswered = len(group)
            for request in group:
                request.done = True
                request.gate.release()

    def _return(self) -> None:
        """Count a request as answered. The last one of a group appoints the next leader."""
        with self._lock:
            self._unanswered -= 1
            if self._unanswered:
                return
            self._has_leader = bool(self._waiting)
            if self._has_leader:
                self._waiting[0].gate.release()


def perform(disk: Disk, group: list[Pending]) -> None:
    """Perform a group: writes first, then reads.

    If the engine refuses the writes (or the reads of a view) together, each is tried alone, so
    that each request gets its own error.
    """
    writes = [request for request in group if request.data is not None]
    short = [request for request in writes if len(request.data or b"") < LONG]
    if len(short) > 1 and _write_together(disk, short):
        writes = [request for request in writes if request not in short]
    for request in writes:
        _write_alone(disk, request)
    for view in {request.view for request in group if request.data is None}:
        reads = [request for request in group if request.data is None and request.view == view]
        if len(reads) == 1 or not _read_together(disk, reads):
            for request in reads:
                _read_alone(disk, request)


def _write_together(disk: Disk, writes: list[Pending]) -> bool:
    """Write all in one operation. Return False if it was refused."""
    try:
        disk.write_many([(request.lba, request.data or b"") for request in writes])
    except (DiskError, OSError):
        return False
    return True


def _read_together(disk: Disk, reads: list[Pending]) -> bool:
    """Read all in one operation. Return False if it was refused."""
    try:
        wanted = [(request.lba, request.count) for request in reads]
        found = disk.read_many(wanted, reads[0].view())
    except (DiskError, OSError):
        return False
    for request, data in zip(reads, found, strict=True):
        request.result = data
    return True


def _write_alone(disk: Disk, request: Pending) -> None:
    try:
        disk.write(request.lba, request.data or b"")
    except (DiskError, OSError) as error:
        request.error = error


def _read_alone(disk: Disk, request: Pending) -> None:
    try:
        request.result = disk.read(request.lba, request.count, request.view())
    except (DiskError, OSError) as error:
        request.error = error
