"""Snapshots of dm-snapshot: copies on write of a device, each with an exception store of its own.

The origin and the stores are linear ranges of the one disk. Which snapshot has which store is known
here, as LVM would know it, and is durable.

- `snapshot` flushes the origin while it is suspended, and `delete` flushes it first: dm-snapshot
  does not, and whoever freezes a file system does.
- `unmap` writes zeroes: the target `snapshot-origin` takes no discards.
- A store that is full makes its snapshot invalid, for ever. So a change is refused for want of
  space if a store may lack room for the copies, as by a user who watches the stores. With
  `full=invalid` nobody watches.
- `revert` is a merge of the snapshot's store into the origin. It uses up the store, so that the
  snapshot gets a new, empty one afterwards. Until then the merge is known to be under way, and
  recovery goes on with it.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.targets.base import Message, TargetFailure, Unusable
from conformance.targets.engines.kernel.disk import KernelDisk
from conformance.targets.engines.kernel.machine.guest import DISK
from conformance.targets.engines.kernel.machine.mapper import SECTOR
from conformance.targets.engines.recorded_disk import Refusal
from conformance.targets.threads import IN_FLIGHT

ORIGIN = 1 << 20  # bytes of the disk before the first store, at least
OVERHEAD = 6  # chunks of a store besides the copies: its header, and the tables of exceptions
MERGE = 20.0  # seconds at most for a merge
PAUSE = 0.002  # seconds between two looks at it


@dataclass(frozen=True)
class Book:
    """The stores by snapshot, and the snapshot that is being merged into the origin."""

    names: dict[str, int] = field(default_factory=dict)
    merging: str | None = None


class DmSnapshot(KernelDisk):
    """Options: `chunk` (KiB), `overflow` (the mode PO: the store says that it overflowed), `room`
    (chunks of data that a store has; 0 is as many as the origin has), `full` ("refused" or
    "invalid"), `spread`, `fault`."""

    knobs: dict[str, list[Any]] = {
        "chunk": [4, 4, 8, 16],
        "overflow": [False, True],
        "room": [0, 0, 0, 4],
        "spread": [4, 1, 2, 8],
    }
    fixed_options = {**KernelDisk.fixed_options, "full": ["refused", "invalid"]}
    in_flight = IN_FLIGHT
    blind_to = frozenset(["wild-discard"])  # it sends none

    def __init__(self, options: dict[str, Any]) -> None:
        self.unit = int(options.get("chunk", 4)) << 10
        if self.unit not in (4096, 8192, 16384):
            raise Unusable("chunk is 4, 8 or 16 KiB")
        self._mode = "PO" if options.get("overflow") else "P"
        self._room = int(options.get("room", 0))
        self._watches = self._room > 0 and options.get("full", "refused") == "refused"
        self._watching = threading.Lock()
        super().__init__("dm-snapshot", options)
        self._book = Book()

    def _known(self) -> Book:
        return self._book

    def _doubt(self, op: str, known: Book) -> None:
        """Assume that a snapshot that was not answered is not there, and that a merge goes on.

        The cut is made afterwards, in the log of writes: the merge may have ended by now, and have
        given the snapshot another store."""
        if op in ("crash", "snapshot"):
            self._book = known
        elif op == "revert":
            other = [name for name, store in known.names.items() if self._book.names[name] != store]
            merging = self._book.merging or next(iter(other), None)
            self._book = replace(known, merging=merging)

    # The operations.

    def _snapshot(self, message: Message) -> None:
        name = message["name"]
        if name in self._book.names:
            raise Refusal("snapshot-exists", name)
        store = self._empty_store()
        self._mapper.suspend("live")
        try:
            self._ask("flush", self._mapper.path("origin"))
            self._attach(store)
        finally:
            self._mapper.resume("live")
        self._book = replace(self._book, names={**self._book.names, name: store})

    def _delete(self, message: Message) -> None:
        store = self._store(message["name"])
        self._flush(message)
        self._mapper.remove(_view(store))
        self._book = replace(
            self._book, names={n: i for n, i in self._book.names.items() if n != message["name"]}
        )

    def _revert(self, message: Message) -> None:
        name = message["name"]
        self._store(name)
        if self._watches:
            copies, _ = self._usage(name)
            self._require_room(copies, self._book.names.keys() - {name})
        self._flush(message)
        self._book = replace(self._book, merging=name)
        self._merge()

    def _merge(self) -> None:
        """Merge the snapshot, and give it a new store."""
        name = self._book.merging
        assert name is not None
        old = self._book.names[name]
        if _view(old) in self._mapper:
            self._mapper.remove(_view(old))
        self._add_store(old)
        self._turn_live("snapshot-merge", self._mapper.path(_cow(old)), "P", self.unit // SECTOR)
        self._await_merge()
        self._mapper.suspend("live")
        self._mapper.turn("live", self._length, "snapshot-origin", self._mapper.path("origin"))
        new = self._empty_store()
        self._mapper.suspend("live")
        try:
            self._attach(new)
        finally:
            self._mapper.resume("live")
        self._book = Book({**self._book.names, name: new})

    def _await_merge(self) -> None:
        """Wait for the merge: the status ALLOCATED/TOTAL METADATA allocates the metadata alone."""
        deadline = time.monotonic() + MERGE
        while time.monotonic() < deadline:
            status = self._mapper.status("live")
            if "/" not in status:
                raise Refusal("data-lost", f"the merge ends: {status}")
            allocated, _, rest = status.partition("/")
            if allocated == rest.split()[1]:
                return
            time.sleep(PAUSE)
        raise TargetFailure("hang", f"a merge does not end within {MERGE:g} seconds")

    def _turn_live(self, target: str, *parameters: object) -> None:
        self._mapper.suspend("live")
        self._mapper.turn("live", self._length, target, self._mapper.path("origin"), *parameters)

    def _changed(self, verb: str, lba: int, count: int, data: bytes = b"") -> None:
        with self._watched(lba, count) if self._watches else nullcontext():
            super()._changed(verb, lba, count, data)

    @contextmanager
    def _watched(self, lba: int, count: int) -> Iterator[None]:
        """Let these blocks change in this `with` block, and no others. Raises Refusal."""
        self._within(lba, count)
        units = -(-(lba + count) // self._spread) - lba // self._spread
        with self._watching:
            with self._changes.lock:
                self._require_room(units, self._book.names)
            yield

    def _require_room(self, copies: int, names: Iterable[str]) -> None:
        """Raises Refusal if the stores are watched and one may lack room for `copies` copies."""
        table = 1  # chunk, of exceptions: a full one is followed by another
        for name in names if self._watches else ():
            used, total = self._usage(name)
            if total - used < copies + table:
                raise Refusal("no-space", f"the store of {name} has {total - used} chunks")

    def _usage(self, name: str) -> tuple[int, int]:
        """Return the chunks of the snapshot's store that are in use, and all that it has."""
        used, _, rest = self._mapper.status(_view(self._book.names[name])).partition("/")
        chunk = self.unit // SECTOR
        return int(used) // chunk, int(rest.split()[0]) // chunk

    # Stores.

    def _store(self, name: str) -> int:
        if name not in self._book.names:
            raise Refusal("no-such-snapshot", name)
        return self._book.names[name]

    @property
    def _length(self) -> int:
        return self._units * self.unit

    @property
    def _store_length(self) -> int:
        return ((self._room or self._units) + OVERHEAD) * self.unit

    @property
    def _stores(self) -> range:
        return range((self.size - self.data.stop) // self._store_length)

    def _at(self, store: int) -> int:
        return self.data.stop + store * self._store_length

    def _empty_store(self) -> int:
        """Return a store that no snapshot has, its header zeroed.

        Raises Refusal if there is none.
        """
        free = [store for store in self._stores if store not in self._book.names.values()]
        if not free:
            raise Refusal("no-space", "all stores are in use")
        self._ask("zero", DISK, f"{self._at(free[0])}:{2 * self.unit}")
        self._ask("flush", DISK)
        return free[0]

    def _add_store(self, store: int) -> None:
        """Add the device of the store, which stays: it is linear, and keeps nothing in memory."""
        if _cow(store) not in self._mapper:
            start = self._at(store) // SECTOR
            self._mapper.add(_cow(store), self._store_length, "linear", DISK, start)

    def _attach(self, store: int) -> None:
        """Attach the snapshot of this store; the origin is copied to it before each change."""
        self._add_store(store)
        self._mapper.add(
            _view(store),
            self._length,
            "snapshot",
            self._mapper.path("origin"),
            self._mapper.path(_cow(store)),
            self._mode,
            self.unit // SECTOR,
        )

    def _device(self, view: str | None) -> str:
        return self._mapper.path("live" if view is None else _view(self._store(view)))

    # Power.

    def _make(self) -> None:
        self._mapper.clear()
        self.data = range(max(ORIGIN, self._length))
        first_table = self.data.stop + self.unit
        self.superblock = range(first_table, first_table + self.unit)
        self._blank()
        self._book = Book()
        self._is_up = True
        self._up()

    def _up(self) -> None:
        if "origin" not in self._mapper:
            self._mapper.add("origin", self._length, "linear", DISK, 0)
        self._mapper.add("live", self._length, "snapshot-origin", self._mapper.path("origin"))
        for name, store in self._book.names.items():
            if name != self._book.merging:
                self._attach(store)
        if self._book.merging is not None:
            self._merge()

    def _down(self) -> None:
        self._mapper.clear(but=("origin", *map(_cow, self._stores)))


def _cow(store: int) -> str:
    return f"cow{store}"


def _view(store: int) -> str:
    return f"view{store}"
