"""Group commit: requests that arrive while others are being done wait, and are done together by one of those that wait.

One log I/O a mirror, one flush and one walk serve a group, so the more is in flight the less each costs (as in DeWitt et al., "Implementation
techniques for main memory database systems", 1984). Nobody waits for a group to fill. But a group begins only when all of the last have been
answered: else the first of them to come again would be a group by himself, before the others could join him.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from refmodel.core.errors import DiskError
from refmodel.registry import Disk

View = Callable[[], str | None]  # says the name of what is read; it may refuse
LONG = 1 << 17  # bytes; a write of so many goes alone


class Asked:
    """A read of blocks of a view, or, if it has data, a write to live. `result` is what was read."""

    __slots__ = ("lba", "count", "data", "view", "result", "error", "done", "gate")

    def __init__(
        self, lba: int, count: int, data: bytes | None = None, view: View = lambda: None
    ) -> None:
        self.lba, self.count, self.data, self.view = lba, count, data, view
        self.result = b""
        self.error: BaseException | None = None
        self.done = False
        self.gate = threading.Lock()  # opened when it is done, or is to see to the next group
        self.gate.acquire()


class Groups:
    """`turn` is held while a group is performed."""

    def __init__(
        self, turn: AbstractContextManager[None], perform: Callable[[list[Asked]], None]
    ) -> None:
        self._turn = turn
        self._perform = perform
        self._lock = threading.Lock()
        self._waiting: list[Asked] = []
        self._led = False  # whether somebody sees to those that wait
        self._leaving = 0  # of the last group, those that have not been answered yet

    def ask(self, asked: Asked) -> bytes:
        """Have it done together with others. Raises what it is refused with."""
        with self._lock:
            self._waiting.append(asked)
            leads, self._led = not self._led, True
        if not leads:
            asked.gate.acquire()
        if not asked.done:
            self._lead()
        self._leave()
        if asked.error is not None:
            raise asked.error
        return asked.result

    def _lead(self) -> None:
        group: list[Asked] = []
        try:
            with self._turn:
                with self._lock:
                    group, self._waiting = self._waiting, []
                self._perform(group)
        except BaseException as error:
            for asked in group:
                asked.error = error
        finally:
            self._leaving = len(group)
            for asked in group:
                asked.done = True
                asked.gate.release()

    def _leave(self) -> None:
        """The last of a group to leave has one of those that wait see to the next."""
        with self._lock:
            self._leaving -= 1
            if self._leaving:
                return
            self._led = bool(self._waiting)
            if self._led:
                self._waiting[0].gate.release()


def perform(disk: Disk, group: list[Asked]) -> None:
    """Writes first, then reads. What is refused together is tried one by one, so that each is answered for itself."""
    writes = [asked for asked in group if asked.data is not None and len(asked.data) < LONG]
    if len(writes) > 1 and _together(
        lambda: disk.write_many([(asked.lba, asked.data) for asked in writes])
    ):
        group = [asked for asked in group if asked not in writes]
    for asked in group:
        if asked.data is not None:
            _alone(asked, lambda: disk.write(asked.lba, asked.data))
    for view in {asked.view for asked in group if asked.data is None}:
        reads = [asked for asked in group if asked.data is None and asked.view == view]
        if len(reads) == 1 or not _together(lambda: _read_together(disk, reads)):
            for asked in reads:
                _alone(asked, lambda: disk.read(asked.lba, asked.count, view()))


def _read_together(disk: Disk, reads: list[Asked]) -> None:
    found = disk.read_many([(asked.lba, asked.count) for asked in reads], reads[0].view())
    for asked, data in zip(reads, found):
        asked.result = data


def _together(work: Callable[[], None]) -> bool:
    """Whether it was not refused."""
    try:
        work()
    except (DiskError, OSError):
        return False
    return True


def _alone(asked: Asked, work: Callable[[], bytes | None]) -> None:
    try:
        asked.result = work() or b""
    except (DiskError, OSError) as error:  # it is the client's to hear
        asked.error = error
