"""A file that an engine works on, with a log of all that it writes there: from the two, what a power cut leaves."""

import os
import random
from pathlib import Path

from conformance.media import logwrites


class Recorded:
    """The file `disk`; with `room`, so many bytes long, most of them a hole. Whoever writes to it records that in a log of
    dm-log-writes.

    `log` is the log of the process that lives on; other processes have one each, see `read`."""

    def __init__(self, disk: Path, log: Path, room: int = 0):
        self._disk, self._log, self._room = disk, log, room
        log.touch()
        self.lay(b"" if room else disk.read_bytes())

    def lay(self, content: bytes) -> None:
        """Make this what the file holds for certain; nobody may have it open. What was logged so far is forgotten."""
        with self._disk.open("r+b") as disk:
            disk.truncate(len(content))
            disk.write(content)
            disk.truncate(self._room or len(content))
        self._at = max(self._log.stat().st_size, logwrites.START)
        os.truncate(self._log, 0)
        os.truncate(self._log, self._at)  # the process goes on writing from here
        self._unread: list[logwrites.Write] = []
        self._media = logwrites.Media(content)
        self._on = True

    def begin_log(self) -> None:
        """Whoever opens the log next begins it again; what was not taken is forgotten."""
        self._log.write_bytes(b"")
        self._at = logwrites.START

    def read(self, log: Path) -> None:
        """Another process had the file open meanwhile, and this is its log."""
        self._unread += self._new() + logwrites.read(log)[0]

    def take(self) -> None:
        """Take note of what was written since."""
        self._take(self._unread + self._new())

    def settle(self) -> None:
        """What the file holds now is certain, whatever the log says: writes in flight together may be there in another order."""
        self._new()
        self._unread, self._media = [], logwrites.Media(self._disk.read_bytes())

    def cut(self, after: int) -> bool:
        """As take, but the power fails while the `after`-th write is under way; False if there were fewer."""
        entries = self._unread + self._new()
        moves = [index for index, entry in enumerate(entries) if entry.moves]
        fails = self._on and len(moves) >= after
        self._take(entries[: moves[after - 1] + 1] if fails else entries)
        self._on = self._on and not fails
        return fails

    def survives(self, choose: random.Random) -> bytes:
        """The power fails, if it has not yet: what the next owner of the file finds there."""
        return self._media.cut_power(choose)

    def _new(self) -> list[logwrites.Write]:
        if os.stat(self._log).st_size <= self._at:
            return []
        entries, self._at = logwrites.read(self._log, self._at)
        return entries

    def _take(self, entries: list[logwrites.Write]) -> None:
        self._unread = []
        if self._on:
            self._media.take(entries)
