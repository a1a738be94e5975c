"""A leg is what the disk stores things in: one address space over components on several devices.

The address space is cut into stripes. A stripe is k data pieces and m parity pieces, one on each component (refmodel.array.parity), so any k
components give it. The performance leg is a mirror: k = 1, written at any offset. The capacity leg is written in full stripes only.

Whoever reads says how to recognise good data (`accept`), since only the reader knows the checksum. A component is read only
where it lacks nothing: stale data is never believed, whatever its checksum says.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from refmodel.array import parity
from refmodel.array.component import ACTIVE, Component, ComponentState, Member
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost

Accept = Callable[[bytes], bool]


class Check(NamedTuple):
    """What is stored in a part of a stripe, and how to recognise it."""

    offset: int  # bytes of the leg's address space
    length: int
    accept: Accept


class Leg:
    """Offsets and lengths are bytes of the leg's address space; `cause` is what device I/O is counted under.

    `failed` is told of a member whose device raised OSError; it returns if the disk can go on without it.
    """

    def __init__(
        self,
        name: str,
        k: int,
        m: int,
        stripe_bytes: int,
        components: list[Component],
        failed: Callable[[Member, OSError], None],
    ) -> None:
        self.name = name
        self.k = k
        self.m = m
        self.stripe_bytes = stripe_bytes
        self.piece_bytes = stripe_bytes // k
        self.components = components
        self.repairs = 0  # pieces or parts of them that were found wrong and rewritten
        self.ios = 0  # reads and writes of devices
        self.emit: Callable[..., None] | None = (
            None  # told of reads, writes and copies while a component is not active
        )
        self._failed = failed

    def write(self, offset: int, data: bytes, cause: str) -> None:
        """Write to every component that can be reached: whole stripes, unless k = 1."""
        if self.k == 1:
            reached = [
                component
                for component in self.components
                if self._write(component, offset, data, cause)
            ]
            self._written(offset, len(data), reached)
            return
        for at in range(0, len(data), self.stripe_bytes):
            stripe = (offset + at) // self.stripe_bytes
            pieces = self._pieces(data[at : at + self.stripe_bytes])
            reached = [
                component
                for number, component in enumerate(self.components)
                if self._write(
                    component, self._place(stripe), pieces[self._piece(number, stripe)], cause
                )
            ]
            self._written(offset + at, self.stripe_bytes, reached)

    def read(self, offset: int, length: int, accept: Accept, cause: str) -> bytes:
        """The data that `accept` takes, from whichever components give it; what was found wrong is rewritten.

        Where k > 1 the range lies within one piece. Raises DataLost if nothing gives good data.
        """
        if (data := self._read_directly(offset, length, cause)) and accept(data):
            return data
        stripe, wanted, at = self._locate(offset)
        holders = self._holders(offset, length)
        found: dict[int, bytes] = {}
        for piece in sorted(holders, key=lambda piece: piece != wanted):
            if (data := self._read(holders[piece], at, length, cause)) is None:
                continue
            others = [other for other in found if other != wanted]
            found[piece] = data
            if piece == wanted and accept(data):
                self._emit("read", [holders[piece]], stripes=[stripe])
                return data
            for rest in combinations(others, self.k - 1) if piece != wanted else ():
                good = self._reconstruct({p: found[p] for p in (piece, *rest)}, wanted)
                if accept(good):
                    self._emit("read", [holders[p] for p in (piece, *rest)], stripes=[stripe])
                    for wrong in found if self.k == 1 else {wanted} & found.keys():
                        if found[wrong] != good:
                            self._repair(holders[wrong], at, good)
                    return good
        raise DataLost(
            f"nothing gives good data of {length} bytes at {offset} of the {self.name} leg"
        )

    def read_many(self, extents: list[tuple[int, int, int]], cause: str) -> list[bytes]:
        """The same for many extents: offset, length, and the CRC-32C of what is there. Neighbours are read in one I/O."""
        found: list[bytes] = []
        at, count, piece_bytes, read = 0, len(extents), self.piece_bytes, self._read_directly
        while at < count:
            start, length, crc = extents[at]
            end, stop = start + length, at + 1
            while stop < count and extents[stop][0] == end and end % piece_bytes:
                end += extents[stop][1]
                stop += 1
            data = read(start, end - start, cause)
            if stop - at == 1:
                found.append(
                    data if crc32c(data) == crc else self._read_extent(start, length, crc, cause)
                )
            else:
                for offset, length, crc in extents[at:stop]:
                    part = data[offset - start : offset - start + length]
                    found.append(
                        part
                        if crc32c(part) == crc
                        else self._read_extent(offset, length, crc, cause)
                    )
            at = stop
        return found

    def _read_extent(self, offset: int, length: int, crc: int, cause: str) -> bytes:
        return self.read(offset, length, lambda data: crc32c(data) == crc, cause)

    def copies(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        """Of a mirror: what every active component holds, good or not."""
        for component in self.active():
            if (data := self._read(component, offset, length, cause)) is not None:
                yield data

    def active(self) -> list[Component]:
        return [component for component in self.components if component.member.state is ACTIVE]

    def read_component(self, component: Component, offset: int, length: int, cause: str) -> bytes:
        """Of a mirror: what one component holds, good or not; zeroes if its device is gone."""
        return self._read(component, offset, length, cause) or bytes(length)

    def write_component(self, component: Component, offset: int, data: bytes, cause: str) -> None:
        """Of a mirror: make one component right."""
        self._write(component, offset, data, cause)

    def flush(self, cause: str) -> None:
        """Make durable what was written before."""
        for component in self.components:
            if component.member.reachable:
                try:
                    component.flush(cause)
                except OSError as error:
                    self._failed(component.member, error)

    def read_stripe(
        self, stripe: int, checks: list[Check], cause: str
    ) -> tuple[bytearray, list[Check], list[Component]]:
        """The data of a stripe, which checks it fails because nothing gives good data, and where it was read. Raises DataLost."""
        start = stripe * self.stripe_bytes
        holders = self._holders(start, self.stripe_bytes)
        at = self._place(stripe)
        have: dict[int, bytes] = {}
        for piece in sorted(holders):
            if (
                len(have) < self.k
                and (data := self._read(holders[piece], at, self.piece_bytes, cause)) is not None
            ):
                have[piece] = data
        if len(have) < self.k:
            raise DataLost(
                f"only {len(have)} of {self.k} pieces of stripe {stripe} of the {self.name} leg are left"
            )
        whole = bytearray().join(self._reconstruct(have, piece) for piece in range(self.k))
        lost = []
        for check in checks:
            part = slice(check.offset - start, check.offset - start + check.length)
            if not check.accept(bytes(whole[part])):
                try:
                    whole[part] = self.read(check.offset, check.length, check.accept, cause)
                except DataLost:
                    lost.append(check)
        return whole, lost, [holders[piece] for piece in have]

    def resync(self, to: Component, stripe: int, checks: list[Check], cause: str) -> list[Check]:
        """Give a component the piece of a stripe that it lacks. Returns the checks that it fails. Raises DataLost."""
        whole, lost, source = self.read_stripe(stripe, checks, cause)
        piece = self._pieces(bytes(whole))[self._piece(self.components.index(to), stripe)]
        if self._write(to, self._place(stripe), piece, cause):
            to.missed.discard(stripe)
            self._emit("resync", source, device=to.member.index, stripe=stripe)
        return lost

    def verify(self, stripe: int, checks: list[Check], cause: str) -> tuple[int, list[Check]]:
        """Read every piece of a stripe, and rewrite those that are wrong. Returns how many, and the checks that are lost.

        What lies between the checks is taken as it is; parity is made to agree with it. Where something is lost, nothing is rewritten.
        """
        before = self.repairs
        try:
            whole, lost, source = self.read_stripe(stripe, checks, cause)
        except DataLost:
            return 0, checks
        self._emit("read", source, stripes=[stripe])
        if not lost:
            pieces = self._pieces(bytes(whole))
            holders = self._holders(stripe * self.stripe_bytes, self.stripe_bytes)
            for piece, component in holders.items():
                if (
                    self._read(component, self._place(stripe), self.piece_bytes, cause)
                    != pieces[piece]
                ):
                    self._repair(component, self._place(stripe), pieces[piece])
        return self.repairs - before, lost

    def readable(self, component: Component, offset: int, length: int) -> bool:
        """Whether the component lacks nothing of the range."""
        if component.member.state is ACTIVE:
            return True
        stripes = range(offset // self.stripe_bytes, -(-(offset + length) // self.stripe_bytes))
        return component.member.state is ComponentState.RESYNCING and component.missed.isdisjoint(
            stripes
        )

    def _holders(self, offset: int, length: int) -> dict[int, Component]:
        """Piece -> the component that has it, where it may be read."""
        stripe = offset // self.stripe_bytes
        return {
            self._piece(number, stripe): component
            for number, component in enumerate(self.components)
            if self.readable(component, offset, length)
        }

    def _piece(self, component: int, stripe: int) -> int:
        """Which piece of the stripe the component holds: it rotates, so that parity is everywhere. A mirror has one piece."""
        return component if self.k == 1 else (component - stripe) % len(self.components)

    def _locate(self, offset: int) -> tuple[int, int, int]:
        """Stripe, piece, and byte offset on the component."""
        if self.k == 1:
            return offset // self.stripe_bytes, 0, offset
        stripe, within = divmod(offset, self.stripe_bytes)
        piece, inside = divmod(within, self.piece_bytes)
        return stripe, piece, stripe * self.piece_bytes + inside

    def _place(self, stripe: int) -> int:
        """Byte offset of a stripe's piece on its component."""
        return stripe * self.piece_bytes

    def _pieces(self, data: bytes) -> list[memoryview]:
        """The k + m pieces of a stripe's data."""
        if self.k == 1:
            return [memoryview(data)] * len(self.components)
        pieces = list(np.frombuffer(data, np.uint8).reshape(self.k, -1))
        return [piece.data for piece in pieces + parity.parity(pieces, self.m)]

    def _reconstruct(self, have: dict[int, bytes], wanted: int) -> bytes:
        if wanted in have or self.k == 1:
            return have[wanted] if wanted in have else next(iter(have.values()))
        arrays = {piece: np.frombuffer(data, np.uint8) for piece, data in have.items()}
        return parity.reconstruct(self.k, arrays, wanted).tobytes()

    def _written(self, offset: int, length: int, reached: list[Component]) -> None:
        """Whole stripes were written: who could be reached no longer lacks them."""
        stripes = range(-(-offset // self.stripe_bytes), (offset + length) // self.stripe_bytes)
        for component in self.components:
            if component.missed and component.member.reachable:
                component.missed.difference_update(stripes)
        if stripes and self.emit is not None:
            self._emit("write", reached, stripes=[*stripes])

    def _emit(self, event: str, used: list[Component], **facts: object) -> None:
        """Which components something was done with; while all are active it goes without saying."""
        if self.emit is not None and len(self.active()) < len(self.components):
            self.emit(
                event,
                leg=self.name,
                devices=sorted(component.member.index for component in used),
                **facts,
            )

    def _read_directly(self, offset: int, length: int, cause: str) -> bytes:
        """What the component holds that the data is on, good or not; nothing if it cannot be read from there."""
        if self.k == 1:
            stripe, component = offset // self.stripe_bytes, self.components[0]
        else:
            piece, inside = divmod(offset, self.piece_bytes)
            stripe, piece = divmod(piece, self.k)
            component = self.components[(piece + stripe) % len(self.components)]
            offset = stripe * self.piece_bytes + inside
        if component.member.state is not ACTIVE:
            return b""
        self.ios += 1
        try:
            data = component.read(offset, length, cause)
        except OSError as error:
            self._failed(component.member, error)
            return b""
        if self.emit is not None:
            self._emit("read", [component], stripes=[stripe])
        return data

    def _read(self, component: Component, offset: int, length: int, cause: str) -> bytes | None:
        """None if the device is gone."""
        if not component.member.reachable:
            return None
        self.ios += 1
        try:
            return component.read(offset, length, cause)
        except OSError as error:
            self._failed(component.member, error)
            return None

    def _write(self, component: Component, offset: int, data: bytes, cause: str) -> bool:
        """Says whether the device has it."""
        if not component.member.reachable:
            return False
        self.ios += 1
        try:
            component.write(offset, data, cause)
        except OSError as error:
            self._failed(component.member, error)
            return False
        return True

    def _repair(self, component: Component, offset: int, data: bytes) -> None:
        self._write(component, offset, data, "repair")
        self.repairs += 1


def write_where_different(leg: Leg, offset: int, data: bytes, cause: str) -> int:
    """Rewrite the active copies of a mirror that are not `data`. Returns how many were not."""
    different = sum(copy != data for copy in leg.copies(offset, len(data), cause))
    if different:
        leg.write(offset, data, cause)
    return different
