"""The engine as a target of the conformance kit: answers one request at a time.

`Adapter.request` has bytes for data. refmodel.adapter.dialogue speaks JSON lines, with base64.
"""

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from refmodel import __version__
from refmodel.adapter.dialogue import Message, data, integer, text
from refmodel.adapter.operations import perform, problems
from refmodel.adapter.requested_faults import ON_REQUEST, RequestedFaults, tolerated
from refmodel.adapter.shape import created, holding, plan_disk, repairing
from refmodel.bugs import BUGS
from refmodel.cache.disk import CachedDisk
from refmodel.cache.read_cache import ReadCache
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import BadRequest, DataLost, DiskError, UnknownOutcome, Unsupported
from refmodel.engine.shape import Shape
from refmodel.inplace.geometry import CHOICES as IN_PLACE
from refmodel.log_structured.disk import put_back, take_out
from refmodel.log_structured.geometry import Geometry
from refmodel.media.faults import FaultySupply, parse
from refmodel.media.power_supply import PowerSupply
from refmodel.observe.counters import work
from refmodel.registry import DEFAULT, Disk, create, open_disk

MOST_BATCHED = 300  # blocks
PIECES = (1, 1, 2, 1, 3)  # blocks of the writes or reads of a batch, in turn
MOST_TOLD = 256  # blocks of a disk that reports inner events: an event looks at all pages in use
IN_FLIGHT = 8  # requests that the log-structured engine is given at a time; it could take more


class Adapter:
    """One disk at a time, in a temporary folder, on devices whose power can be cut.

    A request may have the field `"cut": {"after": n, "seed": s}`: the power fails at the n-th
    device write, and PowerCut is raised. The next request must be `crash`. The seed chooses what
    the media kept, or the `crash` says it: `"kept": [...]`, as PowerSupply.restore takes it.
    """

    def __init__(
        self,
        *,
        engine: str = DEFAULT,
        folder: Path | None = None,
        plant: str = "",
        capacity_percent: int | None = None,
        cache_bytes: int = 0,
        cache_block_bytes: int | None = None,
        faults: str = "",
        fault_seed: int = 0,
        batch: bool = False,
        memory: int | None = None,
        **geometry: Any,
    ) -> None:
        """Make a folder in `folder`, or where temporary files are.

        engine: one of refmodel.registry. geometry: options of its `plan`, for every disk.
        plant: name of a bug of refmodel.bugs.
        capacity_percent: size of the log-structured engine's capacity leg, in percent of the disk's
            blocks, without the reserve.
        cache_bytes, cache_block_bytes: a read cache in front of the disk; 0: none.
        batch: divide large writes and reads into smaller ones that are in flight together.
        memory: bytes that the maps may take in memory; None: as many as the engine likes.
        faults, fault_seed: faults of refmodel.media.faults, joined by `+`, and where they strike;
            or "on-request": see refmodel.adapter.requested_faults.
        """
        self._engine = engine
        self._root = Path(tempfile.mkdtemp(prefix="refmodel-", dir=folder))
        self._geometry = {
            name: value for name, value in geometry.items() if value is not None
        }  # None: the default
        self._capacity_percent = capacity_percent
        self._batch = batch
        self._memory = memory
        self._bug = BUGS[plant] if plant else None
        self._cache = (cache_bytes, cache_block_bytes if cache_bytes else None)
        self._on_request = faults == ON_REQUEST
        self._faults = [] if self._on_request else parse(faults.replace("+", ","))
        self._fault_seed = fault_seed
        self._requested: RequestedFaults | None = (
            None  # the faults of the disk, if requests begin them
        )
        self.power = PowerSupply()
        self._disk: Disk | None = None
        self._work: Counter[str] = Counter()  # counters of the disk before it was last opened
        self._seed = 0
        self._seconds = 0  # time of the repair clock
        self._lost = ""  # why the disk cannot be opened
        shape = self._plan(16)
        # The specs know no data reduction, so a disk with it reports no inner events.
        self._reports_events = not getattr(shape, "reduces", False)
        self._tells = False  # whether the disk of now does
        self.hello: Message = {
            "ok": True,
            "name": self._name(plant),
            "version": __version__,
            "block_size": shape.block_bytes,
            "crash_profile": shape.crash_profile,
            "capabilities": [*shape.capabilities, "fua", "scrub"],
            "devices": shape.devices if "device" in shape.capabilities else 0,
            "tolerates": shape.m,
            **({"outages_end": True} if "device" in shape.capabilities else {}),
            **repairing(shape),
            **({"faults": tolerated(shape)} if self._on_request else {}),
            "protocol": 2,
            "in_flight": IN_FLIGHT if engine == DEFAULT else 1,
            "atomic": "request",
        }

    def request(self, message: Message) -> Message:
        """Answer a request. Raises PowerCut if its `cut` took effect."""
        cut = message.get("cut")
        if cut is not None:
            self._seed = cut["seed"]
        try:
            if message.get("op") == "crash":
                return self._with_events(self._crash(cut, message.get("kept")))
            if cut is not None:
                self.power.cut_at(cut["after"])
            return self._with_events(self._answer(message))
        except DiskError as refusal:
            return self._with_events({"ok": False, "error": refusal.code, "message": str(refusal)})
        finally:
            self.power.cut_at(None)

    def drain_events(self) -> list[Message]:
        """Return the inner events since the last call, and forget them."""
        if self._disk is None:
            return []
        events = self._disk.events or []
        if events:
            self._disk.events = []
        return events

    def event_count(self) -> int:
        """Return how many events `drain_events` would return now."""
        return 0 if self._disk is None else len(self._disk.events or ())

    def scrub(self) -> list[str]:
        """Scrub the open disk, and return a line per problem; none while it cannot be opened."""
        if self._lost or self._disk is None:
            return []
        faulty = self._requested is not None and bool(self._requested.unsound)
        return problems(self._disk, repairs=not faulty)

    def replace_power(self, power: PowerSupply) -> None:
        """Feed the devices from another supply, from the next `crash` on."""
        self.power = power

    def close(self) -> None:
        """Give up the disk, and remove the folder."""
        self._abandon()
        shutil.rmtree(self._root, ignore_errors=True)

    def _answer(self, message: Message) -> Message:
        if (op := message.get("op")) in ("hello", "bye"):
            return self.hello if op == "hello" else {"ok": True}
        if op == "create":
            return self._create(integer(message, "blocks"))
        if op == "stats":  # also of a disk that is lost
            now = Counter() if self._disk is None else Counter(work(self._disk))
            return {"ok": True, "counters": dict(self._work + now)}
        if self._disk is None:
            raise BadRequest("there is no disk: the first request must be create")
        if self._lost:
            return self._answer_closed(message)
        disk = self._disk
        if self._requested and (answer := self._requested.perform(disk, message)) is not None:
            return answer
        if (answer := perform(disk, message)) is not None:
            return answer
        match op:
            case "read":
                view = None if message.get("view") is None else text(message, "view")
                found = self._read(disk, integer(message, "lba"), integer(message, "count"), view)
                return {"ok": True, "data": found}
            case "write":
                self._write(disk, integer(message, "lba"), data(message), "cut" in message)
                if message.get("fua"):
                    self._force(disk)
            case "restart":
                disk.close()
                self.power.off_and_on()
                self._open()
            case "tick":
                self._seconds += _seconds(message)
                disk.tick()
            case "clean" | "checkpoint":
                disk.clean() if op == "clean" else disk.checkpoint()
                if isinstance(disk, CachedDisk):
                    _move_on(disk.cache, contents=op == "clean")
            case "scrub":
                return {"ok": True, "problems": self.scrub()}
            case _:
                raise Unsupported(f"there is no operation {op!r}")
        return {"ok": True}

    def _write(self, disk: Disk, lba: int, data: bytes, may_be_cut: bool) -> None:
        """Write blocks; with `batch` a few of them as writes that are in flight together.

        A power cut may come between such writes of an in-place engine, and the request is one.
        """
        parts = self._parts(lba, data)
        if parts and not (may_be_cut and self._engine in IN_PLACE):
            disk.write_many(parts)
        else:
            disk.write(lba, data)

    def _parts(self, lba: int, data: bytes) -> list[tuple[int, bytes]]:
        """Return the blocks of a write as writes of their own, of one or a few, out of order.

        Returns none if it is to be one write: the log has to have room for them together."""
        size = self.hello["block_size"]
        most = MOST_BATCHED * size
        if self._disk is not None and isinstance(self._disk.geometry, Geometry):
            most = min(most, self._disk.geometry.log_bytes // 2)
        if not self._batch or len(data) > most or len(data) % size:
            return []
        blocks = [
            (at, data[(at - lba) * size : (at - lba + count) * size])
            for at, count in in_pieces(lba, len(data) // size)
        ]
        return blocks[1::2] + blocks[::2]

    def _read(self, disk: Disk, lba: int, count: int, view: str | None) -> bytes:
        """Read blocks; with `batch` a few together, by reads that are in flight together."""
        if not self._batch or not 0 < count <= MOST_BATCHED:
            return disk.read(lba, count, view)
        return b"".join(disk.read_many(in_pieces(lba, count), view))

    def _force(self, disk: Disk) -> None:
        """Make the write just done durable. Raises UnknownOutcome: it is not refused any more."""
        if disk.geometry.crash_profile == "ack":
            return
        try:
            disk.flush()
        except DiskError as error:
            raise UnknownOutcome(f"written, and not durable: {error}") from None

    def _answer_closed(self, message: Message) -> Message:
        """Answer while too few devices are present to open the disk. Raises DataLost."""
        match message.get("op"):
            case "return":
                put_back(self._root / "disk", integer(message, "device"))
            case "fail" if "fault" not in message:
                take_out(self._root / "disk", integer(message, "device"))
            case "tick":
                self._seconds += _seconds(message)
            case "restart":
                pass
            case _:
                raise DataLost(self._lost)
        self._open()
        return {"ok": True}

    def _create(self, blocks: int) -> Message:
        shape = self._plan(blocks)
        self._tells = self._reports_events and blocks <= MOST_TOLD
        self._abandon()
        shutil.rmtree(self._root / "disk", ignore_errors=True)
        self.power = PowerSupply(shape.sector_bytes)
        if self._on_request:
            self.power = FaultySupply(shape.sector_bytes, [], 1, self._fault_seed)
            self._requested = RequestedFaults(self.power, shape)
        create(
            self._root / "disk", shape, sync=False, cache=CacheSettings.asked(shape, *self._cache)
        )
        disk = self._open()
        if disk is not None and self._faults:
            disk.close()
            self.power = FaultySupply(
                shape.sector_bytes, self._faults, getattr(shape, "members", 1), self._fault_seed
            )
            disk = self._open()
        if isinstance(shape, Geometry) and disk is not None and disk.events is not None:
            disk.events.insert(0, created(shape))
        return {"ok": True, **holding(shape, few_pages="pages" in self._geometry)}

    def _name(self, plant: str) -> str:
        engine = f" {self._engine}" if self._engine != DEFAULT else ""
        cache = " behind a read cache" if self._cache[0] else ""
        return f"refmodel{engine}{cache}" + (f" with planted bug {plant}" if plant else "")

    def _plan(self, blocks: int) -> Shape:
        return plan_disk(self._engine, blocks, self._capacity_percent, self._geometry)

    def _crash(self, cut: Message | None, kept: list[int] | None) -> Message:
        """Cut the power unless it is off already, and recover.

        `kept` or the seed says what the media kept.
        """
        if self._disk is None:
            raise BadRequest("there is no disk: the first request must be create")
        if self.power.on:
            self.power.cut()
            if cut is None:
                self._seed = self.power.writes
        self._disk.abandon()
        self.power.restore(self._seed, kept)
        if cut is not None:
            self.power.cut_at(cut["after"])
        self._open()
        return {"ok": True}

    def _open(self) -> Disk | None:
        """Open the disk. Return None if too few devices are present."""
        path, now = self._root / "disk", lambda: self._seconds
        self._lost = ""
        try:
            self._disk = open_disk(
                path,
                sync=False,
                power=self.power,
                now=now,
                memory=self._memory,
                prepare=self._prepare,
            )
            if self._bug is not None and self._bug.of_cache:
                self._bug.plant(self._disk)
        except DataLost as lost:
            self._lost = str(lost)
            return None
        return self._disk

    def _prepare(self, disk: Disk) -> None:
        """Let the disk report events, and plant a bug, before it recovers."""
        disk.events = [] if self._tells else None
        if self._disk is not None:
            self._work.update(work(self._disk))
            disk.events = self._disk.events
        self._disk = disk
        if self._bug is not None and not self._bug.of_cache:
            self._bug.plant(disk)

    def _with_events(self, response: Message) -> Message:
        events = self.drain_events()
        return {**response, "events": events} if events else response

    def _abandon(self) -> None:
        if self._disk is not None:
            self._disk.abandon()
            self._disk = None
        self._work.clear()


def _seconds(message: Message) -> int:
    """Return by how much the repair clock moves on. Raises BadRequest if that is backwards."""
    seconds = integer(message, "seconds")
    if seconds < 0:
        raise BadRequest(f"the repair clock goes on only, not by {seconds} seconds")
    return seconds


def in_pieces(lba: int, count: int) -> list[tuple[int, int]]:
    """Divide blocks into extents of one or a few, in order."""
    pieces: list[tuple[int, int]] = []
    at = lba
    while at < lba + count:
        pieces.append((at, min(PIECES[(at + len(pieces)) % len(PIECES)], lba + count - at)))
        at += pieces[-1][1]
    return pieces


def _move_on(cache: ReadCache, *, contents: bool) -> None:
    """Begin to move the virtual machine, with the contents of its cache or without, or end a move:
    the requests in between come while it moves.
    """
    if cache.moving:
        cache.arrive()
        return
    cache.move()
    if contents:
        cache.copy_slots()
