"""The state of the disk as a program has made it so far, if every request was granted. It guides
generation.

A situation is the tree of views, the state of the devices, how much is mapped, how much was written
since the last checkpoint, and the last two operations. Generation prefers what was seldom asked in
a situation like this one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from copy import copy

ABSENT, DEGRADED, BACK = "absent", "degraded", "back"  # of a failed device
Feature = tuple[object, ...]
View = str | int | None  # a snapshot, a branching point that was deleted, or the empty disk
Asked = Counter[tuple[Feature, str]]  # (feature of a situation, operation) -> how often asked


def failure(how: str, faults: Collection[str]) -> dict[str, str]:
    """Return the fields of `fail` that say how a device fails: gone, or there with a fault."""
    return {"mode": DEGRADED, "fault": how} if how in faults else {"mode": how}


class ViewTree:
    """The tree of views: live and the snapshots, each below the snapshot that it came from.

    A deleted snapshot from which several views came stays as a branching point without a name: they
    may share what was in it, whatever an engine does about that.
    """

    def __init__(self) -> None:
        self.views: dict[str, View] = {}  # snapshot -> what it came from; in the order of their age
        self._removed: dict[int, View] = {}  # branching point that was deleted -> the same
        self._points = 0  # that were deleted so far
        self._origin: View = None  # what live began as
        self._changed = False  # whether live was written since
        self._own: set[View] = set()  # what was written between where it came from and it
        self._shape: Feature | None = None

    def copy(self) -> "ViewTree":
        """Return a tree that changes by itself."""
        other = copy(self)
        other.views, other._removed = dict(self.views), dict(self._removed)
        other._own = set(self._own)
        return other

    def write(self) -> None:
        """Note that the live disk is written."""
        if not self._changed:
            self._changed, self._shape = True, None

    def snapshot(self, name: str) -> None:
        """Note a new snapshot, from which the live disk continues."""
        self._shape = None
        if self._changed:
            self._own.add(name)
        self.views[name] = self._origin
        self._origin, self._changed = name, False

    def revert(self, name: str) -> None:
        """Note that the live disk continues from an earlier snapshot."""
        self._shape = None
        before, self._origin, self._changed = self._origin, name, False
        self._join(before)

    def delete(self, name: str) -> None:
        """Remove the snapshot. If several views came from it, a nameless branching point takes its
        place."""
        self._shape = None
        above = self.views.pop(name)
        if len(self._below(name)) + (self._origin == name) < 2:
            self._hand_down(name, above)
            self._join(above)
            return
        self._points += 1
        self._removed[self._points] = above
        if name in self._own:
            self._own.add(self._points)
        self._move(name, self._points)

    def ancestors(self) -> list[str]:
        """Return the snapshots that live came from, the oldest first."""
        found: list[str] = []
        view = self._origin
        while view is not None:
            if isinstance(view, str):
                found.insert(0, view)
                view = self.views[view]
            else:
                view = self._removed[view]
        return found

    def shape(self) -> Feature:
        """Return the shape of the tree: what is below each view, where live is, what was written
        between two views, and which of them are deleted.
        """
        if self._shape is None:
            children: dict[View, list[View]] = {}
            for some in (self.views, self._removed):
                for child, above in some.items():
                    children.setdefault(above, []).append(child)
            self._shape = self._shape_below(None, children)
        return self._shape

    def _shape_below(self, view: View, children: Mapping[View, list[View]]) -> Feature:
        here = (1 + self._changed) if self._origin == view else 0
        if view not in children:
            return (here, view in self._own)
        subtrees = [self._shape_below(child, children) for child in children[view]]
        here -= 3 * (view in self._removed)
        return (
            here,
            view in self._own,
            *(sorted(subtrees, key=repr) if subtrees[1:] else subtrees),
        )

    def _below(self, view: View) -> list[View]:
        all = (self.views, self._removed)
        return [child for some in all for child, above in some.items() if above == view]

    def _join(self, point: View) -> None:
        """Forget a deleted branching point from which fewer than two views come."""
        if isinstance(point, int) and len(self._below(point)) + (self._origin == point) < 2:
            above = self._removed.pop(point)
            self._hand_down(point, above)
            self._join(above)

    def _hand_down(self, view: View, above: View) -> None:
        """Attach the children of a view that is removed to the view above it, with its changes."""
        if view in self._own:
            self._own.update(self._below(view))
            self._changed = self._changed or self._origin == view
        self._move(view, above)

    def _move(self, view: View, to: View) -> None:
        for some in (self.views, self._removed):
            for child, above in some.items():
                if above == view:
                    some[child] = to  # type: ignore[index]  # a key of the same dict
        if self._origin == view:
            self._origin = to
        self._own.discard(view)


class Situation:
    """The disk of `blocks` blocks behind the requests of one program."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.failed: dict[int, str] = {}  # device -> how; BACK until it settles
        self.deleted: tuple[str, ...] = ()  # snapshots, since it was flushed or closed
        self._tree = ViewTree()
        self._mapped: set[int] = set()  # LBAs that were written, in whatever view
        self._logged = 0  # blocks written since the last checkpoint
        self._last = ("", "create")
        self._features: list[Feature] | None = None

    def copy(self) -> "Situation":
        """Return a situation that changes by itself."""
        other = copy(self)
        other.failed, other._mapped = dict(self.failed), set(self._mapped)
        other._tree = self._tree.copy()
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

    @property
    def views(self) -> Mapping[str, View]:
        """Return the snapshots, oldest first, each with the view that it came from."""
        return self._tree.views

    def ancestors(self) -> list[str]:
        """Return the snapshots that live came from, the oldest first."""
        return self._tree.ancestors()

    def shape(self) -> Feature:
        """Return the shape of the tree of views."""
        return self._tree.shape()

    def shape_after(self, op: str, name: str) -> Feature:
        """Return the shape of the tree of views after `delete` or `revert` of a snapshot."""
        tree = self._tree.copy()
        if op == "delete":
            tree.delete(name)
        else:
            tree.revert(name)
        return tree.shape()

    def note(self, op: str, name: str = "", lbas: Iterable[int] = (), written: int = 0) -> None:
        """Change the situation by a request that is sent."""
        self._features = None
        self._last = (self._last[1], op)
        match op:
            case "write":
                self._mapped.update(lbas)
                self._logged += written
                self._tree.write()
            case "unmap":
                self._mapped.difference_update(lbas)
                self._logged += 1
                self._tree.write()
            case "snapshot":
                self._tree.snapshot(name)
                self.deleted = tuple(gone for gone in self.deleted if gone != name)
            case "revert":
                self._tree.revert(name)
            case "delete":
                self._tree.delete(name)
                self.deleted += (name,)
            case "flush":
                self.deleted = ()
            case "checkpoint" | "restart" | "crash":
                self._logged = 0
                if op == "restart":
                    self.deleted = ()

    # Devices. The caller says what becomes of each.

    def fail(self, device: int, how: str) -> None:
        """Note that the device is gone (ABSENT or DEGRADED), or there with the fault `how`."""
        self._features = None
        self.failed[device] = how

    def bring_back(self, device: int) -> None:
        """Note that the device is back, and missed writes."""
        self._features = None
        self.failed[device] = BACK

    def settle(self) -> None:
        """Note that the devices that are back have caught up."""
        self._features = None
        self.failed = {device: mode for device, mode in self.failed.items() if mode != BACK}
