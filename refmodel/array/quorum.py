"""The quorum: on which devices a membership record must be before it counts.

A record counts once more than half of the members have it. A disk opens only if more than half of
the members that the newest record names are present. Two such majorities share a member, so the
newest record is always found. Of two members one is no majority: a witness, a small device that
holds only the record, has a vote too.
"""

from collections.abc import Callable, Iterable

from refmodel.array import membership as records
from refmodel.array.layout import MEMBERSHIP_BASE
from refmodel.array.member import Member
from refmodel.array.membership import DeviceId, Membership
from refmodel.core.errors import DataLost
from refmodel.media.device import Device
from refmodel.media.enclosure import Enclosure


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

    def store(self, spares: list[DeviceId], away: list[DeviceId]) -> None:
        """Write a new record of the members to all that can be reached.

        Raises DataLost if those are no majority.
        """
        entries = [member.entry() for member in self._members]
        self._record = Membership(
            self._record.disk, self._record.sequence + 1, entries, spares, away
        )
        votes, page = 0, records.encode(self._record)
        for member in self._members:
            if member.reachable and member.device is not None:
                try:
                    records.write(member.device, page)
                    votes += 1
                except OSError as error:
                    return self._failed(member, error)
        votes += self._tell_witness(page)
        if 2 * votes <= self._voters:
            raise DataLost(
                f"only {votes} of {self._voters} members can be told who is current; "
                "bring devices back"
            )

    def spread(self) -> None:
        """Write the newest record to every member that is present and lacks it."""
        page = records.encode(self._record)
        for member in self._members:
            try:
                if member.device is not None and not records.is_on(member.device, page):
                    records.write(member.device, page)
            except OSError as error:
                self._failed(member, error)
                page = records.encode(self._record)
        self._tell_witness(page)

    def _tell_witness(self, page: bytes) -> bool:
        """Write the newest record to the witness if it lacks it.

        Returns whether the witness has it; one that does not answer has no vote.
        """
        try:
            witness = self._witness()
            if witness is not None and not records.is_on(witness, page, base=0):
                records.write(witness, page, base=0)
        except OSError:
            return False
        return witness is not None

    def _witness(self) -> Device | None:
        """The witness, if the layout has one and it is present."""
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
