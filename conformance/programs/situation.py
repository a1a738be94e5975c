"""The disk as a program has made it so far, if every request was granted: what generation is led
by.

A situation is the tree of views, the state of the devices, how much is mapped, how much was written
since the last checkpoint, and the last two operations. Generation prefers what was seldom asked in
a situation like this one.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from copy import copy

ABSENT, DEGRADED, BACK = "absent", "degraded", "back"  # of a failed device
SHAPING = frozenset(["snapshot", "revert", "delete"])  # operations that change the tree of views
CHANGING = frozenset(["write", "unmap"])  # operations after which live is unlike its origin
Feature = tuple[object, ...]
Asked = Counter[tuple[Feature, str]]  # (feature of a situation, operation) -> how often asked


class Situation:
    """The disk of `blocks` blocks behind the requests of one program."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.failed: dict[int, str] = {}  # device -> ABSENT, DEGRADED, or BACK until it settles
        self.views: dict[str, str | None] = {}  # snapshot -> its parent; in the order of their age
        self._origin: str | None = None  # the snapshot that live began as
        self._changed = False  # whether live was written since
        self._own: set[str] = set()  # the snapshots that were written between their parent and them
        self._mapped: set[int] = set()  # LBAs that were written, in whatever view
        self._logged = 0  # blocks written since the last checkpoint
        self._last = ("", "create")
        self._features: list[Feature] | None = None
        self._shape: Feature | None = None

    def copy(self) -> "Situation":
        """Return a situation that changes by itself."""
        other = copy(self)
        other.failed, other.views = dict(self.failed), dict(self.views)
        other._own, other._mapped = set(self._own), set(self._mapped)
        return other

    def features(self) -> list[Feature]:
        """Return what describes this situation, each in a few values."""
        if self._features is None:
            self._features = [
                ("tree", self.shape()),
                ("devices", self.devices()),
                ("last", self._last),
                ("mapped", 4 * len(self._mapped) // self.blocks, len(self.views)),
                ("logged", self._logged.bit_length(), len(self.failed)),
            ]
        return self._features

    def devices(self) -> Feature:
        """Return the states of the devices that failed, in an order that hides which they are."""
        return tuple(sorted(self.failed.values()))

    def shape(self) -> Feature:
        """Return the shape of the tree of views."""
        if self._shape is None:
            self._shape = _tree(self.views, self._origin, self._changed, self._own)
        return self._shape

    def shape_after(self, op: str, name: str) -> Feature:
        """Return the shape of the tree of views after `delete` or `revert` of a snapshot."""
        if op == "revert":
            return _tree(self.views, name, False, self._own)
        origin, changed, own = self._origin, self._changed, self._own
        above = self.views[name]
        if name in own:
            own = own | {child for child, up in self.views.items() if up == name}
        views = {
            child: above if up == name else up for child, up in self.views.items() if child != name
        }
        if origin == name:
            origin, changed = above, changed or name in own
        return _tree(views, origin, changed, own)

    def note(self, op: str, name: str = "", lbas: Iterable[int] = (), written: int = 0) -> None:
        """The request was sent: the situation is another one."""
        self._features = None
        self._last = (self._last[1], op)
        if op in SHAPING or op in CHANGING and not self._changed:
            self._shape = None
        match op:
            case "write":
                self._mapped.update(lbas)
                self._logged += written
                self._changed = True
            case "unmap":
                self._mapped.difference_update(lbas)
                self._logged += 1
                self._changed = True
            case "snapshot":
                if self._changed:
                    self._own.add(name)
                self.views[name] = self._origin
                self._origin, self._changed = name, False
            case "revert":
                self._origin, self._changed = name, False
            case "delete":
                self._delete(name)
            case "checkpoint" | "restart" | "crash":
                self._logged = 0

    def _delete(self, name: str) -> None:
        above = self.views.pop(name)
        for child, up in self.views.items():
            if up == name:
                self.views[child] = above
                if name in self._own:
                    self._own.add(child)
        if self._origin == name:
            self._origin = above
            self._changed = self._changed or name in self._own
        self._own.discard(name)

    # Devices. The caller says what becomes of each.

    def fail(self, device: int, mode: str) -> None:
        """The device is gone: ABSENT or DEGRADED."""
        self._features = None
        self.failed[device] = mode

    def bring_back(self, device: int) -> None:
        """The device is back, and missed writes."""
        self._features = None
        self.failed[device] = BACK

    def settle(self) -> None:
        """What is back has caught up."""
        self._features = None
        self.failed = {device: mode for device, mode in self.failed.items() if mode != BACK}


def _tree(
    views: Mapping[str, str | None], origin: str | None, changed: bool, own: Container[str | None]
) -> Feature:
    """The shape of the tree of these views, given the parent of each. Live began as `origin`."""
    children: dict[str | None, list[str]] = {}
    for child, up in views.items():
        children.setdefault(up, []).append(child)

    def below(view: str | None) -> Feature:
        here = (1 + changed) if origin == view else 0
        if view not in children:
            return (here, view in own)
        subtrees = [below(child) for child in children[view]]
        return (here, view in own, *(sorted(subtrees, key=repr) if subtrees[1:] else subtrees))

    return below(None)
