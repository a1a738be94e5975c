"""Who has the membership record, and how many of them it takes.

A record counts once more than half of the members have it, and a disk opens only where more than half of those that the newest record names are
there: two such sets share a member. Of two mirrors one is no majority; there a witness, which holds nothing but the record, has a vote too.
"""

from collections.abc import Callable, Iterable

from refmodel.array import membership as records
from refmodel.array.component import Member
from refmodel.array.layout import MEMBERSHIP_BASE
from refmodel.array.membership import Entry, Membership
from refmodel.core.errors import DataLost
from refmodel.media.device import Device
from refmodel.media.enclosure import Enclosure


class Quorum:
    """The members, with the newest record. `failed` is told of a member whose device raised OSError, and keeps a newer record then."""

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
        """Raises DataLost unless more than half are there."""
        votes = sum(member.device is not None for member in self._members)
        witness = self._witness()
        votes += witness is not None and records.read(witness, base=0) is not None
        if 2 * votes <= self._voters:
            raise DataLost(
                f"only {votes} of {self._voters} members are there, so nobody knows which is current; bring devices back"
            )

    def keep(
        self, members: list[Entry], spares: list[tuple[int, str]], away: list[tuple[int, str]]
    ) -> None:
        """Put a new record on all that can be reached. Raises DataLost if those are no majority."""
        self._record = Membership(
            self._record.disk, self._record.sequence + 1, members, spares, away
        )
        votes, page = 0, records.encode(self._record)
        for member in self._members:
            if member.reachable:
                try:
                    records.write(member.device, page)
                    votes += 1
                except OSError as error:
                    return self._failed(member, error)
        votes += self._tell_witness(page)
        if 2 * votes <= self._voters:
            raise DataLost(
                f"only {votes} of {self._voters} members can be told who is current; bring devices back"
            )

    def spread(self) -> None:
        """Every member that is there is to have the newest record, whole."""
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
        """Let the witness have the newest record. Says whether it has; one that does not answer has no vote."""
        try:
            if (witness := self._witness()) is not None and not records.is_on(
                witness, page, base=0
            ):
                records.write(witness, page, base=0)
        except OSError:
            return False
        return witness is not None

    def _witness(self) -> Device | None:
        return self._enclosure.witness() if self._witnessed else None


def newest(enclosure: Enclosure, disk: str, devices: Iterable[int]) -> Membership:
    """The newest record of a disk that there is, on devices or the witness. Raises DataLost."""
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
