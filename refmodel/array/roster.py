"""The roster: the devices that a disk knows, as members, as spares, or as devices left behind."""

from collections.abc import Callable

from refmodel.array import label as labels
from refmodel.array.layout import ArrayGeometry
from refmodel.array.member import ACTIVE, ComponentState, Member
from refmodel.array.membership import DeviceId, Membership
from refmodel.array.quorum import Quorum
from refmodel.core.errors import BadRequest, DataLost
from refmodel.media.enclosure import Enclosure


class Roster:
    """Members, spares and devices that are away, and their record on the members.

    `failed` is called with a member whose device raised OSError.
    """

    def __init__(
        self,
        enclosure: Enclosure,
        geometry: ArrayGeometry,
        record: Membership,
        failed: Callable[[Member, OSError], None],
    ) -> None:
        self._enclosure = enclosure
        self._geometry = geometry
        self.disk = record.disk  # its UUID, in hexadecimal
        self.members = [Member.of(entry) for entry in record.members]
        self.spares: list[DeviceId] = [*record.spares]
        self.away: list[DeviceId] = [*record.away]
        witnessed = bool(geometry.witness_bytes)
        self.quorum = Quorum(enclosure, self.members, record, witnessed, failed)

    def save(self) -> None:
        """Put the roster on record. Raises DataLost if a majority cannot be reached."""
        used = [member.index for member in self.members] + [index for index, _ in self.spares]
        assert len(set(used)) == len(used), "a device is used twice"
        self.quorum.store(self.spares, self.away)

    def in_state(self, *states: ComponentState) -> list[Member]:
        """Return the members in any of the states, in their order."""
        return [member for member in self.members if member.state in states]

    def member(self, device: int) -> Member | None:
        """Return the member on a device; None if the device is no member.

        Raises BadRequest if the disk has no device of that number.
        """
        if not 0 <= device < self._geometry.devices:
            raise BadRequest(
                f"there is no device {device}: "
                f"this disk has devices 0 to {self._geometry.devices - 1}"
            )
        return next((member for member in self.members if member.index == device), None)

    def spare(self, device: int) -> DeviceId | None:
        """Return the spare with a number; None if that device is no spare."""
        return next((spare for spare in self.spares if spare[0] == device), None)

    def usable_spare(self) -> DeviceId | None:
        """Return the first spare that is present and is the device on record, if there is one.

        A spare may have been pulled or exchanged while it was not in use.
        """
        return next(filter(self._is_present, self.spares), None)

    @property
    def enough(self) -> bool:
        """True if enough members lack nothing for what is written now to be read after any
        return: a member that catches up is not one of them, since a restart forgets how far it is.
        """
        return sum(member.state is ACTIVE for member in self.members) >= self._geometry.k

    def gone(self) -> DataLost:
        """Return the error that names the members which lack something."""
        gone = [str(member.index) for member in self.members if member.state is not ACTIVE]
        return DataLost(
            f"devices {', '.join(gone)} are gone or not up to date; "
            f"the layout {self._geometry.layout} tolerates {self._geometry.m}"
        )

    def _is_present(self, spare: DeviceId) -> bool:
        index, id = spare
        if index not in self._enclosure.present():
            return False
        label = labels.read(self._enclosure.device(index))
        return label is not None and (label.disk, label.device) == (self.disk, id)
