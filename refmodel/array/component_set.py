"""The components of a leg: I/O to each of them, which devices fail on, and what is emitted."""

from collections.abc import Callable, Iterator

from refmodel.array.component import Component
from refmodel.array.member import ACTIVE, Member
from refmodel.core.events import Events


class ComponentSet:
    """The components of one leg. Offsets are bytes of a component; on a mirror, of the leg.

    `cause` is what device I/O is counted under. `failed` is called with a member whose device
    raised OSError; it raises DataLost if the disk cannot go on without it, and so does then every
    method that does I/O. Events of reads, writes and copies are emitted while a component is not
    active.
    """

    def __init__(
        self,
        name: str,
        components: list[Component],
        failed: Callable[[Member, OSError], None],
        events: Events,
    ) -> None:
        self.name = name
        self.components = components
        self.repairs = 0  # pieces or parts of pieces that were found wrong and rewritten
        self.ios = 0  # reads and writes of devices
        self._failed = failed
        self._events = events

    def copies(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        """Yield what each active component of a mirror holds, good or not."""
        for component in self.active():
            if (data := self.read_component(component, offset, length, cause)) is not None:
                yield data

    def active(self) -> list[Component]:
        """Return the active components."""
        return [component for component in self.components if component.member.state is ACTIVE]

    def flush(self, cause: str) -> None:
        """Make durable what was written before. Raises DataLost as `write` does."""
        for component in self.components:
            if component.member.reachable:
                try:
                    component.flush(cause)
                except OSError as error:
                    self._failed(component.member, error)

    def read_component(
        self, component: Component, offset: int, length: int, cause: str
    ) -> bytes | None:
        """Return what a component holds, good or not; None if its device is gone."""
        if not component.member.reachable:
            return None
        self.ios += 1
        try:
            return component.read(offset, length, cause)
        except OSError as error:
            self._failed(component.member, error)
            return None

    def write_component(
        self, component: Component, offset: int, data: bytes | memoryview, cause: str
    ) -> bool:
        """Write to a component. Returns whether its device has the data. Every write comes here."""
        if not component.member.reachable:
            return False
        self.ios += 1
        try:
            component.write(offset, data, cause)
        except OSError as error:
            self._failed(component.member, error)
            return False
        return True

    def _repair(self, component: Component, offset: int, data: bytes | memoryview) -> None:
        self.write_component(component, offset, data, "repair")
        self.repairs += 1

    def _emit(self, event: str, used: list[Component], **facts: object) -> None:
        """Emit which components an action used, unless all components are active."""
        if self._events.record is not None and len(self.active()) < len(self.components):
            devices = sorted(component.member.index for component in used)
            self._events.emit(event, leg=self.name, devices=devices, **facts)
