"""The descriptor: which layers there are, what each stands on, and where each view's chain ends.

Two copies are written in turn, the newer one counts: so a snapshot, a deletion, a revert and the end of a consolidation happen whole or not at all.
"""

import json
import struct
from dataclasses import dataclass, field

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost, NoSuchSnapshot
from refmodel.redolog.geometry import DESCRIPTOR_BYTES, SECTOR
from refmodel.redolog.store import METADATA, Store

MAGIC = b"REDOLOGC"
HEADER = struct.Struct("<8sIQI")  # magic, CRC-32C of what follows it, sequence, length of the JSON
COVERED = 12
BASE = 0  # the layer that everything stands on


@dataclass(frozen=True)
class Snapshot:
    top: int  # the layer that its chain ends in
    id: int  # no other snapshot has it, ever


@dataclass(frozen=True)
class Descriptor:
    """The chains of all views: a tree of layers. It is never changed, only replaced by another."""

    sequence: int = 0
    live: int = BASE  # the layer that the live view writes to
    snapshots: dict[str, Snapshot] = field(default_factory=dict)  # by name, the oldest first
    parents: dict[int, int] = field(default_factory=dict)  # layer -> the one that it stands on
    next_id: int = 1

    def snapshot(self, name: str) -> Snapshot:
        """Raises NoSuchSnapshot."""
        if name not in self.snapshots:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")
        return self.snapshots[name]

    def chain(self, view: str | None) -> list[int]:
        """The layers that a view reads through, the topmost first. Raises NoSuchSnapshot."""
        layers = [self.live if view is None else self.snapshot(view).top]
        while layers[-1] != BASE:
            layers.append(self.parents[layers[-1]])
        return layers

    @property
    def used(self) -> set[int]:
        """Layers that some view reads through."""
        found = {BASE}
        for top in self.tops:
            while top not in found:
                found.add(top)
                top = self.parents[top]
        return found

    @property
    def tops(self) -> set[int]:
        return {self.live, *(snapshot.top for snapshot in self.snapshots.values())}

    def lone(self) -> tuple[int, int] | None:
        """A layer that nobody needs but what stands on the other, one above it: (lower, upper), the lowest first."""
        tops, above = self.tops, {}
        for upper in sorted(self.used - {BASE}):
            above.setdefault(self.parents[upper], []).append(upper)
        lower = BASE
        pending = [BASE]
        while pending:
            lower = pending.pop()
            uppers = above.get(lower, [])
            if len(uppers) == 1 and lower not in tops:
                return lower, uppers[0]
            pending += reversed(uppers)
        return None


def write(store: Store, descriptor: Descriptor, cause: str) -> None:
    """Write it in the place of the one before the last; it counts once it has been flushed. Raises DataLost if it does not fit."""
    store.write(METADATA, _place(descriptor.sequence), encode(descriptor), cause)


def newest(store: Store) -> Descriptor:
    """Raises DataLost if no copy is whole."""
    found = [
        decode(store.read(METADATA, _place(copy), DESCRIPTOR_BYTES, "recovery")) for copy in (0, 1)
    ]
    whole = [descriptor for descriptor in found if descriptor is not None]
    if not whole:
        raise DataLost("no descriptor of the chain is whole")
    return max(whole, key=lambda descriptor: descriptor.sequence)


def encode(descriptor: Descriptor) -> bytes:
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
    return MAGIC + crc32c(raw[COVERED:]).to_bytes(4, "little") + covered


def decode(raw: bytes) -> Descriptor | None:
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


def _place(sequence: int) -> int:
    return 2 * PAGE + sequence % 2 * DESCRIPTOR_BYTES
