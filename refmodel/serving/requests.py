"""Performs the requests that clients have in flight, on the blocks of a disk.

Requests that arrived together are a group: its short reads and writes of whole blocks are performed
together, so they share one record of the log, one flush and one walk of the map (group commit;
DeWitt et al., "Implementation techniques for main memory database systems", 1984). All requests of
a group are in flight at the same time, so they may take effect in any order.

A request that is long, or that has parts of blocks, is performed in steps. Other requests may be
performed between two steps.

It has more than 300 lines because all requests of a group share its state.
"""

import errno
from collections.abc import Callable, Iterator
from itertools import groupby

from refmodel.core.errors import (
    DiskError,
    HostFull,
    HostRefused,
    NoSpace,
    OutOfRange,
    UnknownOutcome,
    Unsupported,
)
from refmodel.engine.shape import Shape
from refmodel.journal.record import RECORD_UNIT
from refmodel.log_structured.geometry import Geometry
from refmodel.serving.exports import DiskExport, Servable, losses_of
from refmodel.serving.nbd.protocol import EXTENT, HOLE, ZERO, Command, CommandFlag
from refmodel.serving.nbd.session import Request

SHORT = 1 << 17  # bytes: a longer request is performed alone, in steps
USUAL_STEP = 1 << 20  # bytes that one step reads or writes
LONGEST_STEP = 32 << 20  # the same, where a segment is longer
UNMAP_STEP = 64 << 20  # bytes that one step unmaps, or looks up for a block status
MOST_EXTENTS = 4096  # in one answer
ERRNO: dict[type[BaseException], int] = {
    NoSpace: errno.ENOSPC,
    OutOfRange: errno.EINVAL,
    Unsupported: errno.ENOTSUP,
    MemoryError: errno.ENOMEM,
}
READ, WRITE, FLUSH, TRIM = map(int, (Command.READ, Command.WRITE, Command.FLUSH, Command.TRIM))
FUA = int(CommandFlag.FUA)
FAILURES = (
    DiskError,
    OSError,
    MemoryError,
)  # they fail one request; after others the disk is unusable

Steps = Iterator[None]


class Performer:
    """Performs requests on one disk."""

    def __init__(self, disk: Servable) -> None:
        self._disk = disk
        self._losses = losses_of(disk)
        self._size = disk.geometry.block_bytes
        self._unmaps = "unmap" in disk.geometry.capabilities
        self._at_once = disk.geometry.crash_profile == "ack"  # an answered write is durable
        self._step = longest_request(disk.geometry)
        self._short = min(SHORT, self._step)

    def perform(self, group: list[Request]) -> list[tuple[Request, Steps]]:
        """Perform a group. Return the requests that need more steps, each with its steps.

        All others have their answers.
        """
        size, short = self._size, self._short
        writes: list[Request] = []
        reads: dict[int, list[Request]] = {}  # id of the view -> its reads
        flushes: list[Request] = []
        rest: list[tuple[Request, Steps]] = []
        for request in group:
            if request.error:
                continue
            kind, length = request.kind, request.length
            whole = length and length <= short and not (request.offset | length) % size
            if kind == READ and whole:
                export = request.session.export
                assert isinstance(export, DiskExport)
                reads.setdefault(export.identity, []).append(request)
            elif kind == WRITE and whole:
                writes.append(request)
            elif kind == FLUSH:
                flushes.append(request)
            elif length:
                rest.append((request, self._in_steps(request)))
        if writes:
            self._write_all(writes)
        if not self._at_once:
            flushes += [one for one in writes if one.flags & FUA and not one.error]
        if flushes:
            self._flush(flushes)
        for wanted in reads.values():
            if len(wanted) == 1 or not self._read_together(wanted):
                for request in wanted:
                    self._guarded(request, self._read, request)
        return rest

    def _write_all(self, writes: list[Request]) -> None:
        """Write short requests: as many together as one record may hold."""
        together: list[Request] = []
        total = 0
        for request in writes:
            if total + request.length > self._step:
                self._write_together(together)
                together, total = [], 0
            together.append(request)
            total += request.length
        self._write_together(together)

    def _write_together(self, writes: list[Request]) -> None:
        """Write in one operation. If it is refused, each is tried alone and gets its own error."""
        size = self._size
        if len(writes) > 1:
            try:
                self._disk.write_many([(one.offset // size, one.data) for one in writes])
                return
            except FAILURES:
                pass
        for request in writes:
            self._guarded(request, self._disk.write, request.offset // size, request.data)

    def _read_together(self, reads: list[Request]) -> bool:
        """Read parts of one view in one operation. Return False if that was refused."""
        size = self._size
        try:
            extents = [(one.offset // size, one.length // size) for one in reads]
            found = self._disk.read_many(extents, _view(reads[0]))
        except FAILURES:
            return False
        for request, data in zip(reads, found, strict=True):
            request.result = data
        return True

    def _read(self, request: Request) -> None:
        lba, count = request.offset // self._size, request.length // self._size
        request.result = self._disk.read(lba, count, _view(request))

    def _flush(self, requests: list[Request]) -> None:
        try:
            self._disk.flush()
        except FAILURES as error:
            for request in requests:
                _fail(request, error)
            return
        for request in requests:
            self._guarded(request, self._tell_of_loss, request)

    def _tell_of_loss(self, request: Request) -> None:
        """Raises UnknownOutcome once for each loss that the client was not told of yet.

        A client of a snapshot has written nothing that could be lost.
        """
        losses, export = self._losses, request.session.export
        assert isinstance(export, DiskExport)
        if export.name or export.told == losses.count:
            return
        request.session.export = export._replace(told=losses.count)
        losses.told = losses.count
        raise UnknownOutcome(f"what was answered since the last flush may be lost: {losses.why}")

    # Requests in steps. The answer is complete when the steps have ended.

    def _in_steps(self, request: Request) -> Steps:
        """Perform a request; an error becomes its answer."""
        steps: dict[int, Callable[[Request], Steps]] = {
            READ: self._read_long,
            WRITE: self._write_long,
            TRIM: self._trim,
            Command.CACHE: self._cache,
            Command.WRITE_ZEROES: self._zero,
            Command.BLOCK_STATUS: self._block_status,
        }
        try:
            yield from steps[request.kind](request)
            if request.flags & FUA and not self._at_once:
                self._disk.flush()
                self._tell_of_loss(request)
        except FAILURES as error:
            _fail(request, error)

    def _read_long(self, request: Request) -> Steps:
        parts = []
        for offset, length in self._pieces(request):
            parts.append(self._read_bytes(offset, length, _view(request)))
            yield
        request.result = b"".join(parts)

    def _cache(self, request: Request) -> Steps:
        """Read, so that a cache has the data."""
        for offset, length in self._pieces(request):
            self._read_bytes(offset, length, _view(request))
            yield

    def _write_long(self, request: Request) -> Steps:
        for offset, length in self._pieces(request):
            at = offset - request.offset
            self._write_bytes(offset, request.data[at : at + length])
            yield

    def _trim(self, request: Request) -> Steps:
        """Unmap the whole blocks; what is left of other blocks stays as it is."""
        size = self._size
        first, end = -(-request.offset // size), (request.offset + request.length) // size
        yield from self._unmap(first, end)

    def _zero(self, request: Request) -> Steps:
        """Unmap the whole blocks, and write zeroes to the other parts of blocks.

        Zeroes are written everywhere if there shall be no hole, or the engine cannot unmap.
        """
        size, start, end = self._size, request.offset, request.offset + request.length
        writes = request.flags & CommandFlag.NO_HOLE or not self._unmaps
        if writes and request.flags & CommandFlag.FAST_ZERO:
            request.fail(errno.ENOTSUP, "zeroes would be written one by one")
            return
        if writes:
            for offset, length in self._pieces(request):
                self._write_bytes(offset, bytes(length))
                yield
            return
        first, last = -(-start // size), end // size
        if first > last:  # within one block
            self._write_bytes(start, bytes(end - start))
            return
        if start < first * size:
            self._write_bytes(start, bytes(first * size - start))
        yield from self._unmap(first, last)
        if last * size < end:
            self._write_bytes(last * size, bytes(end - last * size))

    def _block_status(self, request: Request) -> Steps:
        """Yield for each step which blocks are mapped and which are holes, at most UNMAP_STEP
        bytes.
        """
        size = self._size
        first = request.offset // size
        most = max(1, UNMAP_STEP // size)
        stop = min(-(-(request.offset + request.length) // size), first + most)
        mapped = self._disk.mapped(first, stop - first, _view(request))
        runs: list[tuple[int, int]] = []  # LBA behind the run, status
        at = first
        for _, group in groupby(enumerate(mapped), lambda pair: pair[1] - pair[0]):
            lbas = [lba for _, lba in group]
            if lbas[0] > at:
                runs.append((lbas[0], HOLE | ZERO))
            at = lbas[-1] + 1
            runs.append((at, 0))
        if at < stop:
            runs.append((stop, HOLE | ZERO))
        end, extents = request.offset, []
        most = 1 if request.flags & CommandFlag.REQ_ONE else MOST_EXTENTS
        for behind, status in runs[:most]:
            until = min(behind * size, request.offset + request.length)
            extents.append(EXTENT.pack(until - end, status))
            end = until
        request.result = b"".join(extents)
        yield

    def _unmap(self, first: int, end: int) -> Steps:
        most = max(1, UNMAP_STEP // self._size)
        for lba in range(first, end, most):
            self._disk.unmap(lba, min(most, end - lba))
            yield

    def _pieces(self, request: Request) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of each step.

        All but the first begin where a block begins.
        """
        at, end = request.offset, request.offset + request.length
        while at < end:
            until = min(end, at // self._size * self._size + self._step)
            yield at, until - at
            at = until

    def _read_bytes(self, offset: int, length: int, view: str | None) -> bytes:
        size = self._size
        first, end = offset // size, -(-(offset + length) // size)
        data = self._disk.read(first, end - first, view)
        at = offset - first * size
        return data if len(data) == length else data[at : at + length]

    def _write_bytes(self, offset: int, data: bytes) -> None:
        """Write bytes; what a block has besides them stays as it is."""
        size = self._size
        before, behind = offset % size, -(offset + len(data)) % size
        first, last = offset // size, (offset + len(data)) // size
        if before:
            data = self._disk.read(first)[:before] + data
        if behind:
            data += self._disk.read(last)[size - behind :]
        self._disk.write(first, data)

    def _guarded(self, request: Request, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except FAILURES as error:
            _fail(request, error)


def longest_request(shape: Shape) -> int:
    """Return the bytes of the longest write that the disk can always take: whole blocks."""
    header = 2 * RECORD_UNIT
    if not isinstance(shape, Geometry):
        longest = min(USUAL_STEP, getattr(shape, "longest_write", USUAL_STEP))
    elif shape.log_bytes >= header + RECORD_UNIT + shape.segment_bytes:
        longest = min(max(USUAL_STEP, shape.segment_bytes), LONGEST_STEP)
    else:
        longest = shape.log_bytes - header
    return int(longest) // shape.block_bytes * shape.block_bytes


def _view(request: Request) -> str | None:
    """Return the name of the view that the client is connected to. Raises NoSuchSnapshot."""
    export = request.session.export
    assert isinstance(export, DiskExport)
    return export.view()


def _fail(request: Request, error: BaseException) -> None:
    code = f"{error.code}: " if isinstance(error, DiskError) else ""
    number = next((ERRNO[kind] for kind in ERRNO if isinstance(error, kind)), errno.EIO)
    if isinstance(error, HostRefused) and not isinstance(error, HostFull):
        number = errno.ENOMEM if error.errno == errno.ENOMEM else errno.EPERM
    request.fail(number, f"{code}{error}")
