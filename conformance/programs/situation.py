"""The disk as a program has made it so far, if every request was granted: what generation is led
by.

A situation is the tree of views, the state of the devices, how much is mapped, how much was written
since the last checkpoint, and the last two operations. Generation prefers what was seldom asked in
a situation like this one.
"""

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy

ABSENT, DEGRADED, BACK = "absent", "degraded", "back"  # of a failed device
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

    def copy(self) -> "Situation":
        """Return a situation that changes by itself."""
        return deepcopy(self)

    def features(self) -> list[Feature]:
        """Return what describes this situation, each in a few values."""
        if self._features is None:
            self._features = [
                ("tree", self.shape()),
                ("devices", tuple(sorted(self.failed.values()))),
                ("last", self._last),
                ("mapped", 4 * len(self._mapped) // self.blocks, len(self.views)),
                ("logged", self._logged.bit_length(), len(self.failed)),
            ]
        return self._features

    def shape(self, name: str | None = None, op: str = "") -> tuple[object, ...]:
        """Return the shape of the tree of views, after `delete` or `revert` of a snapshot if
        given.
        """
        views, origin = dict(self.views), self._origin
        changed, own = self._changed, self._own
        if op == "delete" and name is not None:
            above = views.pop(name)
            if name in own:
                own = own | {child for child, up in views.items() if up == name}
            views = {child: above if up == name else up for child, up in views.items()}
            if origin == name:
                origin, changed = above, changed or name in own
        elif op == "revert":
            origin, changed = name, False
        children: dict[str | None, list[str]] = {}
        for child, up in views.items():
            children.setdefault(up, []).append(child)

        def below(view: str | None) -> tuple[object, ...]:
            subtrees = sorted((below(child) for child in children.get(view, ())), key=repr)
            here = (1 + changed) if origin == view else 0
            return (here, view in own, *subtrees)

        return below(None)

    def note(self, op: str, name: str = "", lbas: Iterable[int] = (), written: int = 0) -> None:
        """The request was sent: the situation is another one."""
        self._features = None
        self._last = (self._last[1], op)
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
