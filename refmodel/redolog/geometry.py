"""The geometry of a redo-log chain: its sizes, and the regions on its one device.

In this order: two labels, two descriptors, the layers, each in its own region. The region of a
delta has, in sectors of 512 bytes, the grain directory, then grain tables and grains in the order
in which they were first written. The base is flat: block after block. docs/engines.md has the whole
picture.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from refmodel.array.layout import PAGE
from refmodel.core.validation import require, require_block_bytes

SECTOR = 512  # bytes; locations count sectors
TABLE_ENTRIES = 4096  # entries of a grain table
ENTRY_BYTES = 4
SECTOR_ENTRIES = SECTOR // ENTRY_BYTES
TABLE_SECTORS = TABLE_ENTRIES // SECTOR_ENTRIES
DESCRIPTOR_BYTES = 1 << 16
ALL = -1  # value of the table cache: all grain tables are in memory
MOST_LAYERS = 256
MOST_DEVICE_BYTES = 8 << 40  # file systems allow more for a sparse file


class Flavour(NamedTuple):
    """The parameters in which the formats of redo logs differ."""

    grain_bytes: int
    table_cache: int  # sectors of grain tables in memory
    unmaps: bool


FLAVOURS = {
    "redo-vmfs": Flavour(512, 16, False),
    "redo-se": Flavour(4096, 16, True),
    "redo-vsan": Flavour(4096, ALL, True),
}


@dataclass(frozen=True)
class RedoLogGeometry:
    """The parameters of the disk, fixed by `create`. A name ends with its unit."""

    engine: str
    blocks: int
    block_bytes: int
    grain_bytes: int  # covered by a grain table entry; at most a block
    layers: int  # at most: the base, deltas, and one that revert needs
    table_cache: int  # sectors of grain tables in memory, or ALL

    m = 0  # no device may fail
    devices = 1
    crash_profile = "block"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities of the conformance dialogue that the format has."""
        unmap = ("unmap",) if FLAVOURS[self.engine].unmaps else ()
        return (*unmap, "flush", "snapshot", "delete", "revert", "crash", "restart", "clean")

    @property
    def sector_bytes(self) -> int:
        """Bytes that the device has to write as a whole or not at all.

        It is a block, since blocks are overwritten in place.
        """
        return self.block_bytes

    @property
    def block_grains(self) -> int:
        """Grains per block."""
        return self.block_bytes // self.grain_bytes

    @property
    def block_sectors(self) -> int:
        """Sectors per block."""
        return self.block_bytes // SECTOR

    @property
    def tables(self) -> int:
        """Grain tables that a delta may have."""
        return -(-self.blocks * self.block_grains // TABLE_ENTRIES)

    @property
    def directory_sectors(self) -> int:
        """Sectors of a grain directory."""
        return -(-self.tables * ENTRY_BYTES // SECTOR)

    @property
    def layer_sectors(self) -> int:
        """Sectors that a delta may fill."""
        return (
            self.directory_sectors + self.tables * TABLE_SECTORS + self.blocks * self.block_sectors
        )

    @property
    def layer_bytes(self) -> int:
        """Size of a layer's region."""
        return self.layer_sectors * SECTOR + -self.layer_sectors * SECTOR % PAGE

    @property
    def layers_base(self) -> int:
        """Byte offset of the first layer, the base."""
        return 2 * PAGE + 2 * DESCRIPTOR_BYTES

    @property
    def device_bytes(self) -> int:
        """Size of the device."""
        return self.layers_base + self.layers * self.layer_bytes

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, as the label stores them."""
        return asdict(self)


def plan(
    engine: str,
    blocks: int,
    *,
    block_bytes: int = 4096,
    layers: int | None = None,
    table_cache: int | None = None,
) -> RedoLogGeometry:
    """Return the geometry of a new disk, with defaults for what was not asked for.

    Raises BadRequest for a choice that is impossible.
    """
    flavour = FLAVOURS[engine]
    require(blocks >= 1, "a disk has at least 1 block")
    require_block_bytes(block_bytes)
    table_cache = flavour.table_cache if table_cache is None else table_cache
    require(table_cache >= ALL, "the cache of grain tables holds at least 0 sectors, or -1 for all")
    grain_bytes = min(flavour.grain_bytes, block_bytes)
    most = RedoLogGeometry(engine, blocks, block_bytes, grain_bytes, MOST_LAYERS, table_cache)
    require(most.layer_sectors < 1 << 31, "a layer has less than 1 TiB")
    if layers is None:
        layers = max(3, min(MOST_LAYERS, MOST_DEVICE_BYTES // most.layer_bytes))
    require(3 <= layers <= MOST_LAYERS, f"a chain has 3 to {MOST_LAYERS} layers")
    return RedoLogGeometry(engine, blocks, block_bytes, grain_bytes, layers, table_cache)
