"""The descriptor: which layers there are, the parent of each, and the top layer of each view.

There are two copies, which are written in turn, and the newer one counts. So a snapshot, a
deletion, a revert and the end of a consolidation each happen whole or not at all.
"""

import json
import struct
from dataclasses import dataclass, field

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c, stored_checksum
from refmodel.core.errors import DataLost, NoSuchSnapshot
from refmodel.redolog.geometry import DESCRIPTOR_BYTES, SECTOR
from refmodel.redolog.store import METADATA, Store

MAGIC = b"REDOLOGC"
HEADER = struct.Struct("<8sIQI")  # magic, CRC-32C of what follows it, sequence, length of the JSON
COVERED = 12
BASE = 0  # the layer at the bottom of every chain


@dataclass(frozen=True)
class Snapshot:
    """A snapshot in the descriptor."""

    top: int  # the topmost layer of its chain
    id: int  # no other snapshot ever has it


@dataclass(frozen=True)
class Descriptor:
    """The chains of all views: a tree of layers. A change makes a new descriptor."""

    sequence: int = 0
    live: int = BASE  # the layer that the live view writes to
    snapshots: dict[str, Snapshot] = field(default_factory=dict)  # by name, the oldest first
    parents: dict[int, int] = field(default_factory=dict)  # layer -> the layer below it
    next_id: int = 1

    def snapshot(self, name: str) -> Snapshot:
        """Return a snapshot by name. Raises NoSuchSnapshot."""
        if name not in self.snapshots:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")
        return self.snapshots[name]

    def chain(self, view: str | None) -> list[int]:
        """Return the layers that a view reads through, the topmost first. Raises NoSuchSnapshot."""
        layers = [self.live if view is None else self.snapshot(view).top]
        while layers[-1] != BASE:
            layers.append(self.parents[layers[-1]])
        return layers

    @property
    def used(self) -> set[int]:
        """The layers that some view reads through."""
        found = {BASE}
        for top in self.tops:
            while top not in found:
                found.add(top)
                top = self.parents[top]
        return found

    @property
    def tops(self) -> set[int]:
        """The topmost layers of all views."""
        return {self.live, *(snapshot.top for snapshot in self.snapshots.values())}

    def above(self) -> dict[int, list[int]]:
        """Return the layers directly above each layer, in ascending order."""
        above: dict[int, list[int]] = {}
        for upper in sorted(self.used - {BASE}):
            above.setdefault(self.parents[upper], []).append(upper)
        return above

    def mergeable(self) -> tuple[int, int] | None:
        """Return two layers (lower, upper) that can become one; the lowest such pair, or None.

        No view ends in the lower layer, and the upper one is the only layer directly above it.
        """
        tops, above = self.tops, self.above()
        pending = [BASE]
        while pending:
            lower = pending.pop()
            uppers = above.get(lower, [])
            if len(uppers) == 1 and lower not in tops:
                return lower, uppers[0]
            pending += reversed(uppers)
        return None


def write(store: Store, descriptor: Descriptor, cause: str) -> None:
    """Write a descriptor over the one before the last. It counts once it has been flushed.

    Raises DataLost if it does not fit.
    """
    store.write(METADATA, _offset(descriptor.sequence), encode(descriptor), cause)


def newest(store: Store) -> Descriptor:
    """Return the newest whole descriptor. Raises DataLost if no copy is whole."""
    found = [
        decode(store.read(METADATA, _offset(copy), DESCRIPTOR_BYTES, "recovery")) for copy in (0, 1)
    ]
    whole = [descriptor for descriptor in found if descriptor is not None]
    if not whole:
        raise DataLost("no descriptor of the chain is whole")
    return max(whole, key=lambda descriptor: descriptor.sequence)


def encode(descriptor: Descriptor) -> bytes:
    """Return the bytes that store a descriptor. Raises DataLost if it is too large."""
    facts = {
        "live": descriptor.live,
        "snapshots": [
            [name, snapshot.top, snapshot.id] for name, snapshot in descriptor.snapshots.items()
        ],
        "parents": sorted((layer, descriptor.parents[layer]) for layer in descriptor.used - {BASE}),
        "next_id": descriptor.next_id,
    }
    body = json.dumps(facts, separators=(",", ":")).encode()
    raw = HEADER.pack(MAGIC, 0, descriptor.sequence, len(body)) + body
    if len(raw) > DESCRIPTOR_BYTES:
        raise DataLost("the descriptor is full")
    covered = raw[COVERED:].ljust(len(raw) + -len(raw) % SECTOR - COVERED, b"\0")
    return MAGIC + stored_checksum(raw[COVERED:]) + covered


def decode(raw: bytes) -> Descriptor | None:
    """Return the descriptor that is stored in the bytes; None if it is damaged."""
    magic, crc, sequence, length = HEADER.unpack_from(raw)
    if (
        magic != MAGIC
        or HEADER.size + length > len(raw)
        or crc32c(raw[COVERED : HEADER.size + length]) != crc
    ):
        return None
    facts = json.loads(raw[HEADER.size : HEADER.size + length])
    snapshots = {name: Snapshot(top, id) for name, top, id in facts["snapshots"]}
    return Descriptor(sequence, facts["live"], snapshots, dict(facts["parents"]), facts["next_id"])


def _offset(sequence: int) -> int:
    """Return the byte offset on the device of the copy that a descriptor is written to."""
    return 2 * PAGE + sequence % 2 * DESCRIPTOR_BYTES
