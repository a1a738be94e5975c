"""The quorum: on which devices a membership record must be before it counts.

A record counts once more than half of the members have it. A disk opens only if more than half of
the members that the newest record names are present. Two such majorities share a member, so the
newest record is always found. A record that was put on a minority may be found later, or never. So
the sequence number is a term and the number of the change in that term. An opening of the disk
begins a term, unless all voters have the same record.

Of two members one is no majority: a witness, a small device that holds only the record, has a vote
too.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from refmodel.array import membership as records
from refmodel.array.layout import MEMBERSHIP_BASE, PAGE
from refmodel.array.member import Member
from refmodel.array.membership import DeviceId, Membership
from refmodel.core.errors import DataLost, HostRefused
from refmodel.media.device import Device
from refmodel.media.enclosure import Enclosure

TERM_SHIFT = 32  # bits of the sequence number that count the changes of one term


class Seat(NamedTuple):
    """A voter that is present."""

    device: Device
    base: int  # byte offset of its record
    member: Member | None  # None for the witness


class Quorum:
    """The members, and the newest record of them.

    `failed` is called with a member whose device raised OSError. It stores a newer record, or
    raises DataLost.
    """

    def __init__(
        self,
        enclosure: Enclosure,
        members: list[Member],
        record: Membership,
        witnessed: bool,
        failed: Callable[[Member, OSError], None],
    ) -> None:
        self._enclosure = enclosure
        self._members = members
        self._record = record
        self._witnessed = witnessed
        self._voters = len(members) + witnessed
        self._failed = failed
        self.counts = True  # whether a majority has the newest record

    @property
    def term(self) -> int:
        """The term of the newest record."""
        return self._record.sequence >> TERM_SHIFT

    @property
    def record(self) -> Membership:
        """The newest record; nobody may change it."""
        return self._record

    def lacking(self) -> int:
        """Return how many of the voters that are present lack the newest record."""
        page = records.encode(self._record)
        with suppress(OSError):
            return sum(not records.is_on(one.device, page, one.base) for one in self._seats())
        return 0  # a device is about to be found absent

    def require(self) -> None:
        """Raises DataLost unless more than half of the voters are present."""
        votes = sum(member.device is not None for member in self._members)
        witness = self._witness()
        votes += witness is not None and records.read(witness, base=0) is not None
        if 2 * votes <= self._voters:
            raise DataLost(
                f"only {votes} of {self._voters} members are there, "
                "so nobody knows which is current; bring devices back"
            )

    def begin_term(self, missing: Callable[[Member], None]) -> None:
        """Put the record that was found on a majority, under a new term, and otherwise as it was.

        Whoever opens the disk does so before anything else changes. A majority promises the term
        first, so no other opening uses it, also one that was cut short and was not found. `missing`
        is called with a member whose device raises OSError. Raises DataLost if no majority is left.
        If all voters are there and have the same record, then none was overlooked: it stays.
        """
        if self._unanimous():
            return
        found = [self._record, *filter(None, map(_read, self._seats()))]
        term = 1 + max(max(record.term, record.sequence >> TERM_SHIFT) for record in found)
        self._tell(lambda own: replace(own, term=term), missing)
        self._record = replace(self._record, term=term, sequence=term << TERM_SHIFT)
        self._tell(lambda _: self._record, missing)

    def store(self, spares: list[DeviceId], away: list[DeviceId]) -> None:
        """Write a new record of the members to all that can be reached.

        Until it counts nothing may be written. Raises DataLost if those are no majority.
        """
        self.counts = False
        entries = [member.entry() for member in self._members]
        self._record = Membership(
            self._record.disk, self._record.sequence + 1, entries, spares, away, self._record.term
        )
        votes, page = 0, records.encode(self._record)
        for member in self._members:
            if member.reachable and member.device is not None:
                try:
                    records.write(member.device, page)
                    votes += 1
                except OSError as error:
                    return self._failed(member, error)
        self._count(votes + self._tell_witness(page))

    def verify(self) -> tuple[int, int]:
        """Rewrite the record of each voter that is present where a copy is not the newest record.

        Returns how many voters were looked at, and how many were wrong. Raises DataLost if the disk
        cannot go on without a device.
        """
        page, seats, wrong = records.encode(self._record), self._seats(), 0
        for seat in seats:
            try:
                if not records.is_on(seat.device, page, seat.base):
                    wrong += 1
                    records.write(seat.device, page, seat.base)
            except HostRefused:
                continue
            except OSError as error:
                if seat.member is not None:
                    self._failed(seat.member, error)  # this stored a newer record
                    break
        return len(seats), wrong

    @property
    def witness_lost(self) -> bool:
        """True if the layout has a witness, and its file is gone."""
        return self._witnessed and not self._enclosure.has_witness()

    def renew_witness(self) -> bool:
        """Make a new witness, with the newest record, if the old one is lost. Returns whether.

        A new witness knows nothing of what the lost one was told or has promised. So more than half
        of the members must have the newest record: each record that counts is on one of them, and
        each term that a majority promised was before theirs. Otherwise nothing is made.
        """
        if not self.witness_lost or not self.counts:
            return False
        page = records.encode(self._record)
        members = [seat for seat in self._seats() if seat.member is not None]
        try:
            informed = sum(records.is_on(seat.device, page, seat.base) for seat in members)
            if 2 * informed <= len(self._members):
                return False
            records.write(self._enclosure.renew_witness(2 * PAGE), page, base=0)
        except (OSError, HostRefused):
            return False
        return True

    def uncounted(self) -> DataLost:
        """Return the error that says that the newest record does not count."""
        return DataLost(
            "the newest change of the members is not on a majority of them; "
            "bring devices back, and open the disk again"
        )

    def _unanimous(self) -> bool:
        """Return whether each voter is present and has both copies of the newest record."""
        page, seats = records.encode(self._record), self._seats()
        try:
            return len(seats) == self._voters and all(
                records.is_on(seat.device, page, seat.base) for seat in seats
            )
        except OSError:
            return False

    def _tell(
        self, change: Callable[[Membership], Membership], missing: Callable[[Member], None]
    ) -> None:
        """Change the record of each voter that is present.

        Raises DataLost if those are no majority.
        """
        votes = 0
        for seat in self._seats():
            try:
                own = _read(seat) or self._record
                records.write(seat.device, records.encode(change(own)), seat.base)
                votes += 1
            except OSError:
                if seat.member is not None:
                    missing(seat.member)
        self._count(votes)

    def _seats(self) -> list[Seat]:
        """Return the voters that are present."""
        seats = [
            Seat(member.device, MEMBERSHIP_BASE, member)
            for member in self._members
            if member.device is not None
        ]
        witness = self._witness()
        return seats if witness is None else [*seats, Seat(witness, 0, None)]

    def _count(self, votes: int) -> None:
        """Let the record count. Raises DataLost if the voters that have it are no majority."""
        if 2 * votes <= self._voters:
            raise DataLost(
                f"only {votes} of {self._voters} members could record the change; "
                "bring devices back"
            )
        self.counts = True

    def _tell_witness(self, page: bytes) -> bool:
        """Write the newest record to the witness.

        Returns whether the witness has it; one that does not answer has no vote.
        """
        try:
            witness = self._witness()
            if witness is not None:
                records.write(witness, page, base=0)
        except OSError:
            return False
        return witness is not None

    def _witness(self) -> Device | None:
        """Return the witness, if the layout has one and it is present."""
        return self._enclosure.witness() if self._witnessed else None


def newest(enclosure: Enclosure, disk: str, devices: Iterable[int]) -> Membership:
    """Return the newest record of a disk that is on the devices or the witness.

    Raises DataLost if none is whole.
    """
    places = [(enclosure.device(index), MEMBERSHIP_BASE) for index in devices]
    if (witness := enclosure.witness()) is not None:
        places.append((witness, 0))
    whole = [
        record
        for device, base in places
        if (record := records.read(device, base)) is not None and record.disk == disk
    ]
    if not whole:
        raise DataLost("no membership record is whole")
    return max(whole, key=lambda record: record.sequence)


def _read(seat: Seat) -> Membership | None:
    """Return the newest whole record of a voter."""
    return records.read(seat.device, seat.base)
