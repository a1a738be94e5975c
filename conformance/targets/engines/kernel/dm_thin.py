"""Snapshots of dm-thin, Linux's thin provisioning: a pool, and thin devices in it.

Metadata and data are two linear ranges of the one disk, so that one log orders all that is written.
Which name is which thin device is known here, as LVM would know it, and is durable: what a cut
leaves in doubt is asked of the pool.

- `unmap` discards a unit of which it covers all blocks, and writes zeroes to the others. If the
  unit is no power of two it writes zeroes only: Linux 6.1 then answers BLKDISCARD of a whole unit
  and leaves the unit as it was. A discard is a hint, so that breaks no promise.
- Once a pool whose metadata is full has turned read-only, changes are refused for want of space.
- With `recovery=read-only` what a power cut has left is opened read-only, and the pool is made
  writable when something is to change. A `revert` that the cut left in doubt is tidied up before.
- `revert` takes a snapshot of the snapshot, which is live from then on, and deletes what was live.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.contract.trace import Trace
from conformance.targets.base import Message, PowerCut, Unusable
from conformance.targets.engines.kernel.disk import KernelDisk
from conformance.targets.engines.kernel.machine.guest import DISK
from conformance.targets.engines.kernel.machine.line import GuestError
from conformance.targets.engines.kernel.machine.mapper import SECTOR
from conformance.targets.engines.recorded_disk import Refusal
from conformance.targets.threads import IN_FLIGHT

METADATA = 1 << 20  # bytes of the disk before the data
READ_ONLY = " ro "  # in the status of a pool
NO_SPACE_TIMEOUT = "/sys/module/dm_thin_pool/parameters/no_space_timeout"  # in seconds


@dataclass(frozen=True)
class Book:
    """The thin devices: the live one, and the snapshots."""

    live: int = 0
    names: dict[str, int] = field(default_factory=dict)


class DmThin(KernelDisk):
    """Options: `unit` (KiB), `zero`, `discard`, `room` (units of the pool; 0 is all of the disk),
    `full` ("error", or "queue": what there is no room for waits a second for it), `metadata` (KiB),
    `recovery` ("read-write" or "read-only"), `spread`, `fault`."""

    knobs: dict[str, list[Any]] = {
        "unit": [64, 64, 128, 192],
        "discard": ["passdown", "passdown", "no-passdown", "ignore"],
        "room": [0, 0, 0, 24],
        "full": ["error", "error", "queue"],
        "recovery": ["read-write", "read-write", "read-write", "read-only"],
        "spread": [4, 1, 2, 8],
    }
    fixed_options = {**KernelDisk.fixed_options, "zero": [True], "metadata": [METADATA >> 10]}
    findings = dict.fromkeys(
        ["wrong-refusal", "no-order", "unopenable"], "dm-thin-flush-of-a-full-pool.md"
    )
    shown_by = {"wild-discard": "spread=1,discard=passdown,unit=64,"}
    superblock = range(4096)
    in_flight = IN_FLIGHT
    data = range(METADATA, KernelDisk.size)

    def __init__(self, options: dict[str, Any]) -> None:
        self.unit = int(options.get("unit", 64)) << 10
        self._queues = options.get("full", "error") == "queue"
        self._features = [] if self._queues else ["error_if_no_space"]
        if not options.get("zero", True):
            self._features.append("skip_block_zeroing")
        self._room = int(options.get("room", 0))
        self._metadata = int(options.get("metadata", METADATA >> 10)) << 10
        if not 0 < self._metadata <= METADATA:
            raise Unusable(f"metadata is 1 to {METADATA >> 10} KiB")
        self._discard = options.get("discard", "passdown")
        self._discards = self._discard != "ignore" and self.unit & (self.unit - 1) == 0
        if self._discard != "passdown":
            self._features.append(
                {"no-passdown": "no_discard_passdown", "ignore": "ignore_discard"}[self._discard]
            )
        self._recovers_read_only = options.get("recovery", "read-write") == "read-only"
        self._is_read_only = False
        super().__init__("dm-thin", options)
        self._book, self._before = Book(), Book()  # now, and before the operation that a cut ended
        self._next = 1

    @classmethod
    def finding(cls, trace: Trace, kind: str) -> str | None:
        """Return the finding as every driver does, but only where a flush was refused, or the one
        of a restart, since other failures have the same words.
        """
        flushed = ("restart",) if kind == "unopenable" else ("flush", "restart")
        refused = any(
            event["op"] in flushed and (event["result"] or {}).get("error") == "no-space"
            for event in trace.events
        )
        return super().finding(trace, kind) if refused else None

    def _known(self) -> tuple[Book, Book]:
        return self._book, self._before

    def _doubt(self, op: str, known: tuple[Book, Book]) -> None:
        if op == "crash":
            self._book, self._before = known
        else:
            self._before = known[0]

    # The operations.

    def _unmap(self, message: Message) -> None:
        lba, count = message["lba"], message["count"]
        self._within(lba, count)
        first, last = lba // self._spread, -(-(lba + count) // self._spread)
        for unit in range(first, last):
            try:
                self._unmap_in(unit, lba, lba + count)
            except Refusal:
                if unit == first:
                    raise
                raise PowerCut from None  # some blocks are unmapped, which only a cut may leave

    def _unmap_in(self, unit: int, begin: int, end: int) -> None:
        """Unmap the blocks from `begin` to `end` that are in this unit."""
        first, last = unit * self._spread, min((unit + 1) * self._spread, self._blocks)
        if self._discards and begin <= first and last <= end:
            with self._writable():
                self._ask("discard", self._device(None), f"{unit * self.unit}:{self.unit}")
        else:
            begin = max(first, begin)
            self._changed("zero", begin, min(last, end) - begin)

    def _snapshot(self, message: Message) -> None:
        name = message["name"]
        if name in self._book.names:
            raise Refusal("snapshot-exists", name)
        self._mapper.suspend("live")
        try:
            new = self._fork(self._book.live)
        finally:
            self._mapper.resume("live")
        self._book = replace(self._book, names={**self._book.names, name: new})

    def _delete(self, message: Message) -> None:
        name = message["name"]
        number = self._number(name)
        if _view(number) in self._mapper:
            self._mapper.remove(_view(number))
        with self._writable():
            self._mapper.message("pool", "delete", number)
        self._book = replace(
            self._book, names={n: i for n, i in self._book.names.items() if n != name}
        )

    def _revert(self, message: Message) -> None:
        source = self._number(message["name"])
        new = self._fork(source)
        old = self._book.live
        self._mapper.remove("live")
        self._activate("live", new)
        self._book = replace(self._book, live=new)
        self._mapper.message("pool", "delete", old)

    def _fork(self, source: int) -> int:
        """Return a snapshot of the thin device: its number. Raises Refusal."""
        self._next += 1
        with self._writable():
            self._mapper.message("pool", "create_snap", self._next, source)
        return self._next

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """Turn an error of a read-only pool into Refusal in this `with` block."""
        if self._is_read_only:
            with self._changes.lock:
                if self._is_read_only:
                    self._mapper.turn("pool", *self._pool_table())
                    self._is_read_only = False
        try:
            yield
        except GuestError as error:
            if READ_ONLY in self._mapper.status("pool"):
                raise Refusal("no-space", str(error)) from None
            raise

    def _changed(self, verb: str, lba: int, count: int, data: bytes = b"") -> None:
        with self._writable():
            super()._changed(verb, lba, count, data)

    def _flush(self, message: Message) -> None:
        with self._writable():
            super()._flush(message)

    def _number(self, name: str) -> int:
        if name not in self._book.names:
            raise Refusal("no-such-snapshot", name)
        return self._book.names[name]

    def _device(self, view: str | None) -> str:
        if view is None:
            return self._mapper.path("live")
        with self._changes.lock:
            number = self._number(view)
            if _view(number) not in self._mapper:
                self._activate(_view(number), number)
            return self._mapper.path(_view(number))

    # Power.

    def _make(self) -> None:
        self._blank()
        self._book = self._before = Book()
        self._next = 0
        self._ask("put", NO_SPACE_TIMEOUT, "1")
        self._pool()
        self._mapper.message("pool", "create_thin", 0)
        self._activate("live", 0)
        self._is_up = True

    def _up(self) -> None:
        now, before = self._book, self._before
        tidies = now.live != before.live  # one of the two is deleted
        self._pool(self._recovers_read_only and not tidies)
        live = now.live if self._exists("live", now.live) else before.live
        self._activate("live", live)
        names = dict(now.names.items() & before.names.items())
        for name, number in now.names.items() ^ before.names.items():
            if self._exists(_view(number), number):
                names[name] = number
        for number in {now.live, before.live} - {live}:
            if self._exists(_view(number), number):
                self._mapper.remove(_view(number))
                self._mapper.message("pool", "delete", number)
        self._book = self._before = Book(live, names)
        if self._recovers_read_only and tidies:
            self._down()
            self._pool(read_only=True)
            self._activate("live", live)

    def _down(self) -> None:
        self._mapper.clear(but=("meta", "data"))

    def _pool(self, read_only: bool = False) -> None:
        if "meta" not in self._mapper:
            self._mapper.add("meta", self._metadata, "linear", DISK, 0)
            self._mapper.add("data", self._pool_length, "linear", DISK, METADATA // SECTOR)
        self._is_read_only = read_only
        self._mapper.add("pool", *self._pool_table(*["read_only"] * read_only))

    @property
    def _pool_length(self) -> int:
        room = self.size - METADATA
        return min(room - room % self.unit, self._room * self.unit or room)

    def _pool_table(self, *more: str) -> tuple[Any, ...]:
        """Return the length of the pool, its target, and the target's parameters: these features
        too.
        """
        features = [*self._features, *more]
        devices = self._mapper.path("meta"), self._mapper.path("data")
        low_water = 0
        return (
            self._pool_length,
            "thin-pool",
            *devices,
            self.unit // SECTOR,
            low_water,
            len(features),
            *features,
        )

    def _exists(self, device: str, number: int) -> bool:
        """Return whether the pool has such a thin device; if so, it is activated."""
        try:
            self._activate(device, number)
            return True
        except GuestError:
            return False

    def _activate(self, device: str, number: int) -> None:
        if device not in self._mapper:
            length = self._units * self.unit
            self._mapper.add(device, length, "thin", self._mapper.path("pool"), number)


def _view(number: int) -> str:
    return f"view{number}"
