"""A leg: one address space over components on several devices, with redundancy.

The address space is divided into stripes (refmodel.array.striping). The performance leg is a
mirror, and is written at any offset. The capacity leg is a mirror, RAID-5 or RAID-6; the
log-structured engine writes it in full stripes, an in-place engine piece by piece.

A reader says how to recognise good data (`accept`), since only the reader knows the checksum. A
component is read only where it lacks nothing: stale data is never accepted, even with a correct
checksum.
"""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

from refmodel.array.component import Component, ComponentSet
from refmodel.array.member import ACTIVE, ComponentState, Member
from refmodel.array.striping import Striping
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost
from refmodel.core.events import Events

Accept = Callable[[bytes], bool]


class Check(NamedTuple):
    """A part of a stripe that holds something, and how to recognise it."""

    offset: int  # bytes of the leg's address space
    length: int
    accept: Accept


class Leg(ComponentSet):
    """One leg. Offsets and lengths are bytes of its address space, unless they are a component's.

    `cause` is what device I/O is counted under.
    """

    def __init__(
        self,
        name: str,
        k: int,
        m: int,
        stripe_bytes: int,
        components: list[Component],
        failed: Callable[[Member, OSError], None],
        events: Events,
    ) -> None:
        super().__init__(name, components, failed, events)
        self.k = k
        self.m = m
        self.stripe_bytes = stripe_bytes
        self.piece_bytes = stripe_bytes // k
        self.striping = Striping(k, m, stripe_bytes, len(components))

    def write(self, offset: int, data: bytes, cause: str) -> list[Component]:
        """Write to every reachable component: whole stripes, unless the leg is a mirror.

        Returns the components that have all of it. Raises DataLost if the disk cannot go on without
        a device that failed.
        """
        if self.k == 1:
            reached = []
            for component in self.components:
                if self.write_component(component, offset, data, cause):
                    reached.append(component)
            self._written(offset, len(data), reached)
            return reached
        whole = [*self.components]
        for at in range(0, len(data), self.stripe_bytes):
            stripe = (offset + at) // self.stripe_bytes
            pieces = self.striping.pieces(data[at : at + self.stripe_bytes])
            start = self.striping.component_offset(stripe)
            reached = [
                component
                for number, component in enumerate(self.components)
                if self.write_component(
                    component, start, pieces[self.striping.piece(number, stripe)], cause
                )
            ]
            self._written(offset + at, self.stripe_bytes, reached)
            whole = [component for component in whole if component in reached]
        return whole

    def read(self, offset: int, length: int, accept: Accept, cause: str) -> bytes:
        """Return the data that `accept` takes, from any components that give it.

        What was found wrong is rewritten. Where k > 1 the range lies within one piece. Raises
        DataLost if nothing gives good data.
        """
        if (data := self._read_directly(offset, length, cause)) and accept(data):
            return data
        stripe, wanted, at = self.striping.locate(offset)
        holders = self._holders(offset, length)
        found: dict[int, bytes] = {}
        for piece in sorted(holders, key=lambda piece: piece != wanted):
            part = self.read_component(holders[piece], at, length, cause)
            if part is None:
                continue
            others = [other for other in found if other != wanted]
            found[piece] = part
            if piece == wanted and accept(part):
                self._emit("read", [holders[piece]], stripes=[stripe])
                return part
            for rest in combinations(others, self.k - 1) if piece != wanted else ():
                used = (piece, *rest)
                good = self.striping.reconstruct({p: found[p] for p in used}, wanted)
                if accept(good):
                    self._emit("read", [holders[p] for p in used], stripes=[stripe])
                    for wrong in found if self.k == 1 else {wanted} & found.keys():
                        if found[wrong] != good:
                            self._repair(holders[wrong], at, good)
                    return good
        raise DataLost(
            f"nothing gives good data of {length} bytes at {offset} of the {self.name} leg"
        )

    def read_many(self, extents: list[tuple[int, int, int]], cause: str) -> list[bytes]:
        """Return the data of many extents, each (offset, length, CRC-32C of what is there).

        Extents that follow each other are read in one I/O. Raises DataLost as `read` does.
        """
        found: list[bytes] = []
        at, count, piece_bytes, read = 0, len(extents), self.piece_bytes, self._read_directly
        while at < count:
            start, length, crc = extents[at]
            end, stop = start + length, at + 1
            while stop < count and extents[stop][0] == end and end % piece_bytes:
                end += extents[stop][1]
                stop += 1
            data = read(start, end - start, cause)
            if end == start + length and crc32c(data) == crc:
                found.append(data)
                at = stop
                continue
            for offset, length, crc in extents[at:stop]:
                part = data[offset - start : offset - start + length]
                if crc32c(part) != crc:
                    part = self._read_extent(offset, length, crc, cause)
                found.append(part)
            at = stop
        return found

    def readable(self, component: Component, offset: int, length: int) -> bool:
        """Return whether a component lacks nothing of a range of the leg."""
        if component.member.state is ACTIVE:
            return True
        stripes = range(offset // self.stripe_bytes, -(-(offset + length) // self.stripe_bytes))
        resyncing = component.member.state is ComponentState.RESYNCING
        return resyncing and component.missed.isdisjoint(stripes)

    # Whole stripes, for resync and scrub.

    def resync(self, to: Component, stripe: int, checks: list[Check], cause: str) -> list[Check]:
        """Give a component the piece of a stripe that it lacks.

        Returns the checks that the stripe fails: nothing gives their data. Raises DataLost if too
        few pieces are left.
        """
        whole, lost, source = self._read_stripe(stripe, checks, cause)
        number = self.striping.piece(self.components.index(to), stripe)
        piece = self.striping.pieces(bytes(whole))[number]
        if self.write_component(to, self.striping.component_offset(stripe), piece, cause):
            to.receive((stripe,))
            self._emit("resync", source, device=to.member.index, stripe=stripe)
        return lost

    def verify(self, stripe: int, checks: list[Check], cause: str) -> tuple[int, list[Check]]:
        """Read every piece of a stripe, and rewrite those that are wrong.

        Returns how many were rewritten, and the checks that nothing gives good data for. Bytes that
        no check covers are taken as they are, and parity is made to agree with them. If a check is
        lost, nothing is rewritten.
        """
        before = self.repairs
        try:
            whole, lost, source = self._read_stripe(stripe, checks, cause)
        except DataLost:
            return 0, checks
        self._emit("read", source, stripes=[stripe])
        if not lost:
            pieces = self.striping.pieces(bytes(whole))
            start = self.striping.component_offset(stripe)
            holders = self._holders(stripe * self.stripe_bytes, self.stripe_bytes)
            for piece, component in holders.items():
                held = self.read_component(component, start, self.piece_bytes, cause)
                if held is None or held != pieces[piece]:
                    self._repair(component, start, pieces[piece])
        return self.repairs - before, lost

    def _read_stripe(
        self, stripe: int, checks: list[Check], cause: str
    ) -> tuple[bytearray, list[Check], list[Component]]:
        """Return the data of a stripe, the checks that it fails, and where it was read.

        Raises DataLost if fewer than k pieces are left.
        """
        start = stripe * self.stripe_bytes
        holders = self._holders(start, self.stripe_bytes)
        at = self.striping.component_offset(stripe)
        have: dict[int, bytes] = {}
        for piece in sorted(holders):
            if len(have) < self.k:
                data = self.read_component(holders[piece], at, self.piece_bytes, cause)
                if data is not None:
                    have[piece] = data
        if len(have) < self.k:
            raise DataLost(
                f"only {len(have)} of {self.k} pieces of stripe {stripe} "
                f"of the {self.name} leg are left"
            )
        pieces = (self.striping.reconstruct(have, piece) for piece in range(self.k))
        whole = bytearray().join(pieces)
        lost = []
        for check in checks:
            part = slice(check.offset - start, check.offset - start + check.length)
            if not check.accept(bytes(whole[part])):
                try:
                    whole[part] = self.read(check.offset, check.length, check.accept, cause)
                except DataLost:
                    lost.append(check)
        return whole, lost, [holders[piece] for piece in have]

    # How it is done.

    def _holders(self, offset: int, length: int) -> dict[int, Component]:
        """Return the components that may be read, by the piece that they hold of the offset's
        stripe.
        """
        stripe = offset // self.stripe_bytes
        return {
            self.striping.piece(number, stripe): component
            for number, component in enumerate(self.components)
            if self.readable(component, offset, length)
        }

    def _read_extent(self, offset: int, length: int, crc: int, cause: str) -> bytes:
        return self.read(offset, length, lambda data: crc32c(data) == crc, cause)

    def _read_directly(self, offset: int, length: int, cause: str) -> bytes:
        """Return the bytes on the component with the data, good or not; b"" if unreadable.

        The fast path of all reads: it repeats Striping.locate and .component without their calls.
        """
        if self.k == 1:
            stripe, component = offset // self.stripe_bytes, self.components[0]
        else:
            piece = offset // self.piece_bytes  # counted from the first stripe on
            stripe = piece // self.k
            component = self.components[(piece % self.k + stripe) % len(self.components)]
            offset = stripe * self.piece_bytes + offset % self.piece_bytes
        if component.member.state is not ACTIVE:
            return b""
        data = self.read_component(component, offset, length, cause)
        if self._events.record is not None and data is not None:
            self._emit("read", [component], stripes=[stripe])
        return data or b""

    def _written(self, offset: int, length: int, reached: list[Component]) -> None:
        """Note that whole stripes were written: reachable components no longer lack them."""
        lacking = []
        for component in self.components:
            if component.missed.count:
                lacking.append(component)
        if not lacking and self._events.record is None:
            return
        stripes = range(-(-offset // self.stripe_bytes), (offset + length) // self.stripe_bytes)
        for component in lacking:
            if component.member.device is not None:
                component.receive(stripes)
        if self._events.record is not None and stripes:
            self._emit("write", reached, stripes=[*stripes])


def write_where_different(leg: Leg, offset: int, data: bytes, cause: str) -> int:
    """Rewrite the active copies of a mirror that are not `data`. Returns how many were not."""
    different = sum(copy != data for copy in leg.copies(offset, len(data), cause))
    if different:
        leg.write(offset, data, cause)
    return different
