"""A file of an engine with a log of its writes, from which crash states are made."""

import os
import random
import threading
from pathlib import Path

from conformance.media import logwrites


class Recorded:
    """The file `disk`, and its log in the format of dm-log-writes, which every writer keeps.

    With `room`, the file is `room` bytes long, most of them a hole. `atom` bytes, aligned, are
    written whole when the power fails.
    `log` is the log of the process that lives on; other processes have one each, see `read`."""

    def __init__(self, disk: Path, log: Path, room: int = 0, atom: int = logwrites.SECTOR):
        self._disk, self._log, self._room, self._atom = disk, log, room, atom
        self._counting = threading.Lock()
        log.touch()
        self.lay(b"" if room else disk.read_bytes())

    def lay(self, content: bytes) -> None:
        """Make this the durable content of the file, and forget the log. It must not be open."""
        with self._disk.open("r+b") as disk:
            disk.truncate(len(content))
            disk.write(content)
            disk.truncate(self._room or len(content))
        self._at = max(self._log.stat().st_size, logwrites.START)
        os.truncate(self._log, 0)
        os.truncate(self._log, self._at)  # the process goes on writing from here
        self._unread: list[logwrites.Write] = []
        self._counted = 0, self._at  # writes of the log, and where the next entry is
        self._media = logwrites.Media(content, self._atom)
        self._on = True

    def begin_log(self) -> None:
        """Empty the log for a process that begins a new one; entries not taken are forgotten."""
        self._log.write_bytes(b"")
        self._at = logwrites.START
        self._counted = 0, self._at

    def read(self, log: Path) -> None:
        """Read the log of another process that had the file open."""
        self._unread += self._new() + logwrites.read(log)[0]

    def take(self) -> None:
        """Take the entries that were written since the last call."""
        self._take(self._unread + self._new())

    def settle(self) -> None:
        """Make the present content of the file durable, whatever the log says.

        The log may have writes that were in flight together in another order."""
        self._new()
        self._unread, self._media = [], logwrites.Media(self._disk.read_bytes(), self._atom)

    def cut(self, after: int) -> bool:
        """Take the writes until the power fails at number `after`.

        Return False if there were fewer.
        """
        entries = self._unread + self._new()
        moves = [index for index, entry in enumerate(entries) if entry.moves]
        fails = self._on and len(moves) >= after
        self._take(entries[: moves[after - 1] + 1] if fails else entries)
        self._on = self._on and not fails
        return fails

    def written(self) -> int:
        """Return how many writes were logged since the last call of `take`. More may come now."""
        with self._counting:
            writes, at = self._counted
            more, at = logwrites.count(self._log, at, self.end())
            self._counted = writes + more, at
            return self._counted[0] + sum(entry.moves for entry in self._unread)

    def end(self) -> int:
        """Return where the log ends now, in bytes."""
        return max(self._log.stat().st_size, self._at)

    def cut_at(self, end: int) -> None:
        """Take the writes up to a power failure where the log ended there.

        Nobody may be writing.
        """
        self._take(self._unread + self._new(end))
        self._on = False

    def survives(self, choose: random.Random) -> bytes:
        """Cut the power if it is still on; return what the file holds afterwards."""
        return self._media.cut_power(choose)

    def _new(self, until: int | None = None) -> list[logwrites.Write]:
        if os.stat(self._log).st_size <= self._at:
            return []
        with self._counting:
            entries, self._at = logwrites.read(self._log, self._at, until)
            self._counted = 0, self._at
        return entries

    def _take(self, entries: list[logwrites.Write]) -> None:
        self._unread = []
        if self._on:
            self._media.take(entries)
