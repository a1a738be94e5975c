"""The layers of a disk as a tree, and the descriptor that names them.

Snapshots and reverts make the chains of the views a tree: several layers may stand on one.
"""

from dataclasses import replace

from refmodel.core.errors import NoSpace
from refmodel.redolog import descriptor as descriptors
from refmodel.redolog.descriptor import BASE, Descriptor
from refmodel.redolog.geometry import RedoLogGeometry
from refmodel.redolog.layer import Base, Delta, Layer
from refmodel.redolog.store import Store
from refmodel.redolog.table_cache import TableCache


class LayerTree:
    """The layers that are in use, by the region (slot) that each is in."""

    def __init__(self, geometry: RedoLogGeometry, store: Store) -> None:
        self._geometry = geometry
        self._store = store
        self.tables = TableCache(geometry.table_cache)
        self.layers: dict[int, Layer] = {BASE: Base(geometry, store)}
        self.descriptor = Descriptor()
        self._chains: dict[str | None, list[Layer]] = {}  # by view, the topmost layer first

    def load(self) -> None:
        """Load the newest descriptor, and the directories of its layers. Raises DataLost."""
        self.descriptor = descriptors.newest(self._store)
        for slot in self.descriptor.used - {BASE}:
            self.layers[slot] = self._delta(slot)
            self.layers[slot].load("recovery")

    def chain(self, view: str | None) -> list[Layer]:
        """Return the layers that a view reads through, the topmost first. Raises NoSuchSnapshot."""
        if view not in self._chains:
            self._chains[view] = [self.layers[slot] for slot in self.descriptor.chain(view)]
        return self._chains[view]

    @property
    def live(self) -> Layer:
        """The layer that the live view writes to."""
        return self.layers[self.descriptor.live]

    def has_room(self, reserve: int) -> bool:
        """Return whether more than `reserve` slots are free."""
        return len(self.layers) + reserve < self._geometry.layers

    def add_layer(self) -> int:
        """Make an empty layer in a free slot, and return the slot.

        The layer counts once a descriptor names it. There must be room.
        """
        slot = min(set(range(self._geometry.layers)) - set(self.layers))
        layer = self._delta(slot)
        layer.begin("foreground")
        self.layers[slot] = layer
        return slot

    def full(self) -> NoSpace:
        """Return the refusal of one more layer."""
        return NoSpace(
            f"the chain has {len(self.layers)} layers, of {self._geometry.layers} that it may have"
        )

    def install(self, new: Descriptor, cause: str) -> None:
        """Make a new descriptor count, after all earlier writes; forget layers that it lacks."""
        self._store.flush(cause)
        new = replace(new, sequence=self.descriptor.sequence + 1)
        new = replace(new, parents={layer: new.parents[layer] for layer in new.used - {BASE}})
        descriptors.write(self._store, new, cause)
        self._store.flush(cause)
        self.descriptor = new
        self.layers = {slot: layer for slot, layer in self.layers.items() if slot in new.used}
        self._chains.clear()

    def _delta(self, slot: int) -> Delta:
        return Delta(slot, self._geometry, self._store, self.tables)
