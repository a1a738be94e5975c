"""A disk whose views are devices or files in a guest: the driver of a kernel is under test.

It declares `block`: a driver promises what a disk with a volatile write cache does. Snapshot
operations are durable when acknowledged. Blocks are of 512 bytes, the sector: nothing larger is
written whole when the power fails.

Drivers share in units that are much larger than a block. So a few blocks stand in each unit (option
`spread`), and the rest of the unit is never used: a small disk spans many units."""

import errno
from abc import abstractmethod
from typing import Any

from conformance.media import sparse
from conformance.media.recorded import Recorded
from conformance.media.sparse import BadContent
from conformance.targets.base import Message, PowerCut, TargetFailure, Unusable
from conformance.targets.engines.kernel import faults, guest
from conformance.targets.engines.kernel.guest import GuestError
from conformance.targets.engines.kernel.mapper import Mapper
from conformance.targets.engines.kernel.power import Point, Power
from conformance.targets.engines.recorded_disk import BLOCK, RecordedDisk, Refusal

Range = tuple[int, int]  # offset and length in bytes
RANGES = 128  # that the agent takes in one line


class KernelDisk(RecordedDisk):
    """Options: `spread` (blocks in a unit), `atom` (bytes, aligned, that the disk writes whole when
    the power fails: 512), `fault` (one of faults.FAULTS, put between the driver and its disk).

    Whoever inherits has `_make`, `_up`, `_down`, and `_device`, which names a view's device in the
    guest."""

    unit = 64 << 10  # bytes that the driver shares as a whole
    size = guest.ROOM  # bytes of the guest's disk
    superblock = range(0)  # bytes of the guest's disk that say which state of the metadata is valid
    findings: dict[str, str] = {}  # class of a failure of honest runs -> page in docs/findings
    shown_by: dict[str, str] = {}  # fault -> options under which it shows more often
    blind_to: frozenset[str] = frozenset()  # faults that change nothing that this driver promises
    data = range(0)  # bytes of the guest's disk where metadata never is

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        super().__init__(name, f"Linux {guest.version()}", "block")
        self._spread = int(options.get("spread", 4))
        self._atom = int(options.get("atom", BLOCK))
        if self._atom <= 0 or self._atom % BLOCK:
            raise Unusable(f"atom is a multiple of {BLOCK} bytes")
        fault = options.get("fault", "none")
        if fault not in faults.FAULTS:
            raise Unusable(f"there is no fault {fault}: it is one of {', '.join(faults.FAULTS)}")
        self._guest = guest.borrow(self.size)
        self._new_fault = faults.FAULTS[fault]
        self._blank()
        self._mapper = Mapper(self._ask)
        self._is_up = False
        self._sound = True  # the guest may be used again

    def request(self, message: Message) -> Message:
        known = self._known()
        try:
            answer = super().request(message)
            if message["op"] == "crash":
                answer["left"] = sparse.pack(self._recorded.left)
            return answer
        except PowerCut:
            self._doubt(message["op"], known)
            raise
        except GuestError as error:
            self._sound = False
            raise TargetFailure("protocol", str(error), self._guest.console()) from None
        except TargetFailure:
            self._sound = False
            raise

    def close(self) -> None:
        try:
            if self._sound:
                self._shut()
                self._mapper.clear()
                guest.give_back(self._guest)
                return
        except (GuestError, TargetFailure):
            pass
        self._guest.close()

    def _blank(self) -> None:
        """The disk is all zeroes, and nobody has it open."""
        folder = self._guest.folder
        self._fault = self._new_fault(self)
        self._recorded = Power(folder / "disk", folder / "log", self.size, self._atom, self._fault)

    def _ask(self, *words: object) -> str:
        """Have the agent do this, unless the fault has it do something else."""
        asked = self._fault.asked(tuple(map(str, words)))
        return self._guest.ask(*asked) if asked else ""

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
                self._ask("read", device, *_words(ranges))
                data += self._guest.mailbox[: _total(ranges)]
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
                here, data = data[: _total(ranges)], data[_total(ranges) :]
                self._guest.mailbox[: len(here)] = here
                self._ask(verb, self._device(None), *_words(ranges))
                done += 1
        except GuestError as error:
            if error.number == errno.ENOSPC and not done:
                raise Refusal("no-space", str(error)) from None
            if error.number in (errno.ENOSPC, errno.EDQUOT):
                raise PowerCut from None  # some blocks are written, which only a cut may leave
            raise

    def _within(self, lba: int, count: int) -> list[list[Range]]:
        """Where these blocks are in a view's device, in parts that the agent takes at once.

        Raises Refusal if they are not in the disk."""
        if lba + count > self._blocks:
            raise Refusal("out-of-range", f"the disk has {self._blocks} blocks")
        ranges: list[Range] = []
        while count:
            unit, within = divmod(lba, self._spread)
            here = min(count, self._spread - within)
            ranges.append((unit * self.unit + within * BLOCK, here * BLOCK))
            lba, count = lba + here, count - here
        return [ranges[at : at + RANGES] for at in range(0, len(ranges), RANGES)]

    @property
    def _units(self) -> int:
        """Units that the disk spans."""
        return -(-self._blocks // self._spread)

    def _restart(self, message: Message) -> None:
        """A clean shutdown flushes first: users do, drivers need not when a device is removed."""
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
        """The answer, what was known before and after the request, and where it may be cut."""
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
        """What is known of the disk outside of it, such as which device is which snapshot."""

    @abstractmethod
    def _doubt(self, op: str, known: Any) -> None:
        """The operation was cut short: `known` was known before it."""

    @abstractmethod
    def _up(self) -> None:
        """Have the driver open what is on the disk. Raises Refusal if it finds that it cannot."""

    @abstractmethod
    def _down(self) -> None:
        """Have the driver close it; nothing that is on the disk stays in the guest's memory."""

    @abstractmethod
    def _device(self, view: str | None) -> str:
        """The device of the live disk, or of a snapshot. Raises Refusal if there is none."""


def _words(ranges: list[Range]) -> list[str]:
    return [f"{offset}:{length}" for offset, length in ranges]


def _total(ranges: list[Range]) -> int:
    """Return the bytes of all ranges."""
    return sum(length for _, length in ranges)
