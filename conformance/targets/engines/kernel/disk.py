"""A disk whose views are devices or files in a guest: the driver of a kernel is under test.

It declares `block`: a driver promises what a disk with a volatile write cache does. Snapshot
operations are durable when acknowledged. Blocks are of 512 bytes, the sector: nothing larger is
written whole when the power fails.

Several requests may be in flight, each on a line of its own to the agent. As LVM does it, one
request at a time changes which snapshots there are; `delete` and `revert`, which close a device,
wait until no device is in use.

Drivers share in units that are much larger than a block. So a few blocks stand in each unit (option
`spread`), and the rest of the unit is never used: a small disk spans many units."""

import errno
from abc import abstractmethod
from typing import Any

from conformance.contract.trace import Trace
from conformance.media import sparse
from conformance.media.recorded import Recorded
from conformance.media.sparse import BadContent
from conformance.targets.base import Message, PowerCut, TargetFailure, Unusable
from conformance.targets.engines.kernel import faults, places
from conformance.targets.engines.kernel.changes import Changes, Mark
from conformance.targets.engines.kernel.machine import guest, guests
from conformance.targets.engines.kernel.machine.line import GuestError, Line
from conformance.targets.engines.kernel.machine.mapper import Mapper
from conformance.targets.engines.kernel.power import Point, Power
from conformance.targets.engines.recorded_disk import BLOCK, RecordedDisk, Refusal
from conformance.targets.threads import Gate, Ranges

CONTROL = ("snapshot", "delete", "revert")
ALONE = ("delete", "revert")


class KernelDisk(RecordedDisk):
    """Options: `spread` (blocks in a unit), `atom` (bytes, aligned, that the disk writes whole when
    the power fails: 512), `cache` (of the disk: "back", or "through", where what was written is
    durable), `fault` (one of faults.FAULTS, put between the driver and its disk), `linux` (a folder
    with another kernel, which is booted in QEMU; it takes one request at a time).

    Whoever inherits has `_make`, `_up`, `_down`, and `_device`, which names a view's device in the
    guest."""

    knobs: dict[str, list[Any]] = {}  # options that a trace chooses -> their values
    # Options that no trace chooses -> their values, or an example; [] if it may be any text.
    fixed_options: dict[str, list[Any]] = {
        "spread": [4],
        "atom": [BLOCK],
        "cache": ["back", "through"],
        "fault": list(faults.FAULTS),
        "linux": [],
    }
    unit = 64 << 10  # bytes that the driver shares as a whole
    size = guest.ROOM  # bytes of the guest's disk
    superblock = range(0)  # bytes of the guest's disk that say which state of the metadata is valid
    findings: dict[str, str] = {}  # class of a failure of honest runs -> page in docs/findings
    shown_by: dict[str, str] = {}  # fault -> options under which it shows better
    blind_to: frozenset[str] = frozenset()  # faults that change nothing that this driver promises
    data = range(0)  # bytes of the guest's disk where metadata never is
    in_flight = 1  # requests at once
    breaks_off = True  # a request done in part ends as if the power had failed

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self._spread = int(options.get("spread", 4))
        if self._spread < 1:
            raise Unusable(f"spread is at least 1 block, not {self._spread}")
        self._atom = int(options.get("atom", BLOCK))
        if self._atom <= 0 or self._atom % BLOCK:
            raise Unusable(f"atom is a multiple of {BLOCK} bytes")
        cache = options.get("cache", "back")
        if cache not in ("back", "through"):
            raise Unusable(f"cache is back or through, not {cache}")
        self._through = cache == "through"
        fault = options.get("fault", "none")
        if fault not in faults.FAULTS:
            raise Unusable(f"there is no fault {fault}: it is one of {', '.join(faults.FAULTS)}")
        self._new_fault = faults.FAULTS[fault]
        self._linux = str(options.get("linux", ""))
        self._guest = guests.borrow(self.size, self._linux)
        version, most = f"Linux {self._guest.version}", 1 if self._linux else self.in_flight
        super().__init__(name, version, "block", "block" if most > 1 else "", most)
        self._blank()
        self._mapper = Mapper(self._ask)
        self._is_up, self._sound = False, True  # the guest may be used again
        self._gate, self._ranges = Gate(), Ranges()
        self._changes = Changes(self._mark, self._known)  # while requests overlap
        self._broke_off = False  # a request in flight was made in part

    @classmethod
    def finding(cls, trace: Trace, kind: str) -> str | None:
        """Return the page in docs/findings that explains a failure of this kind.

        None if none does.
        """
        return cls.findings.get(kind)

    def request(self, message: Message) -> Message:
        known = self._known()
        self._changes.clear()
        try:
            answer = super().request(message)
        except PowerCut:
            self._doubt(message["op"], known)
            raise
        if message["op"] == "crash":
            answer["left"] = sparse.pack(self._recorded.left)
        return answer

    def _answer(self, message: Message) -> Message:
        try:
            return super()._answer(message)
        except GuestError as error:
            self._sound = False
            raise TargetFailure("protocol", str(error), self._guest.console()) from None
        except TargetFailure:
            self._sound = False
            raise

    def close(self) -> None:
        try:
            self._threads.close()
            self._threads.wait()
            if self._sound:
                self._shut()
                self._mapper.clear()
                guests.give_back(self._guest, self._linux)
                return
        except (GuestError, TargetFailure, TimeoutError):
            pass
        self._guest.close()

    # Several requests in flight.

    def _carry_out(self, message: Message) -> Message:
        op = message["op"]
        first = count = 0
        if op in ("write", "unmap"):  # the log does not say which of two at once came last
            first = message["lba"]
            count = message["count"] if op == "unmap" else len(message["data"]) // BLOCK
        gate = self._gate.alone() if op in ALONE else self._gate.together()
        try:
            with gate, self._ranges.held(first, count):
                if op not in CONTROL:
                    return self._answer(message)
                with self._changes.made(op):
                    return self._answer(message)
        except PowerCut:
            self._broke_off = True
            raise

    def _mark(self) -> Mark:
        written = self._written()
        return Mark(written.end(), written.written())

    def _power_failed(self, message: Message) -> bool:
        return self._broke_off or super()._power_failed(message)

    def _cut_in_flight(self) -> None:
        super()._cut_in_flight()
        self._broke_off = False

    def _cut_short(self, end: int, last: int | None) -> None:
        change = self._changes.first_cut(end, last)
        if change is None:
            return
        if change.begun(end, last):
            self._doubt("crash", change.after)
            self._doubt(change.op, change.known)
        else:
            self._doubt("crash", change.known)

    def _blank(self) -> None:
        """Make the disk all zeroes. Nobody has it open."""
        folder = self._guest.folder
        self._fault = self._new_fault(self)
        self._recorded = Power(
            folder / "disk", folder / "log", self.size, self._atom, self._fault, self._through
        )

    def _ask(self, *words: object, line: Line | None = None) -> str:
        """Have the agent do this, unless the fault has it do something else."""
        asked = self._fault.asked(tuple(map(str, words)))
        return (line or self._guest).ask(*asked) if asked else ""

    def _crash(self, message: Message) -> None:
        if "left" in message:
            try:
                self._recorded.leave(sparse.unpack(message["left"], self.size))
            except BadContent as error:
                raise TargetFailure("protocol", str(error)) from None
        super()._crash(message)

    # The operations on data.

    def _write(self, message: Message) -> None:
        self._changed(
            "write", message["lba"], len(message["data"]) // BLOCK, bytes(message["data"])
        )

    def _unmap(self, message: Message) -> None:
        self._changed("zero", message["lba"], message["count"])

    def _read(self, message: Message) -> Message:
        device = self._device(message.get("view"))
        data = b""
        try:
            for ranges in self._within(message["lba"], message["count"]):
                with self._guest.line() as line:
                    self._ask("read", device, *places.words(ranges), line=line)
                    data += line.mailbox[: places.total(ranges)]
        except GuestError as error:
            if error.number == errno.EIO:
                raise Refusal("data-lost", str(error)) from None
            raise
        return {"data": data}

    def _flush(self, message: Message) -> None:
        try:
            self._ask("flush", self._device(None))
        except GuestError as error:
            if error.number == errno.ENOSPC:
                raise Refusal("no-space", str(error)) from None
            raise

    def _changed(self, verb: str, lba: int, count: int, data: bytes = b"") -> None:
        """Have the agent change these blocks; `data` is for the verb `write`. Raises Refusal."""
        done = 0  # parts
        try:
            for ranges in self._within(lba, count):
                here, data = data[: places.total(ranges)], data[places.total(ranges) :]
                with self._guest.line() as line:
                    line.mailbox[: len(here)] = here
                    self._ask(verb, self._device(None), *places.words(ranges), line=line)
                done += 1
        except GuestError as error:
            if error.number == errno.ENOSPC and not done:
                raise Refusal("no-space", str(error)) from None
            if error.number in (errno.ENOSPC, errno.EDQUOT):
                raise PowerCut from None  # some blocks are written, which only a cut may leave
            raise

    def _within(self, lba: int, count: int) -> list[list[places.Range]]:
        """Return where these blocks are in a view's device, in parts that the agent takes at once.

        Raises Refusal if they are not in the disk."""
        if lba + count > self._blocks:
            raise Refusal("out-of-range", f"the disk has {self._blocks} blocks")
        return places.parts(lba, count, self._spread, self.unit)

    @property
    def _units(self) -> int:
        """Units that the disk spans."""
        return -(-self._blocks // self._spread)

    def _restart(self, message: Message) -> None:
        """Restart. A clean shutdown flushes first: a driver need not when a device is removed."""
        self._flush(message)
        super()._restart(message)

    # Power.

    def _files(self) -> list[Recorded]:
        return [self._recorded]

    def _written(self) -> Recorded:
        return self._recorded

    def _open_again(self) -> None:
        self._is_up = True
        try:
            self._up()
        except GuestError as error:
            raise Refusal("data-lost", str(error)) from None

    def _shut(self) -> None:
        if self._is_up:
            self._is_up = False
            self._guest.ask("close", "/")  # an open device keeps its cache
            self._down()

    def explored(self, request: Message) -> tuple[Message, Any, Any, list[Point]]:
        """Return the answer, what was known before and after it, and where it may be cut."""
        self._take()
        before = self._known()
        answer = self.request(request)
        return answer, before, self._known(), self._recorded.points()

    def cut_at(self, content: bytes, known: Any, op: str | None, before: Any) -> None:
        """Have the next crash leave this on the disk. `op` was cut short, unless it is None."""
        self._doubt("crash", known)
        if op is not None:
            self._doubt(op, before)
        self._recorded.leave(content)

    @abstractmethod
    def _known(self) -> Any:
        """Return what is stored about the disk outside of it, as which device is which snapshot."""

    @abstractmethod
    def _doubt(self, op: str, known: Any) -> None:
        """Note that the operation was cut short; `known` was known before it."""

    @abstractmethod
    def _up(self) -> None:
        """Have the driver open what is on the disk. Raises Refusal if it finds that it cannot."""

    @abstractmethod
    def _down(self) -> None:
        """Have the driver close it; nothing that is on the disk stays in the guest's memory."""

    @abstractmethod
    def _device(self, view: str | None) -> str:
        """Return the device of the live disk, or of a snapshot. Raises Refusal if there is none."""
