"""The geometry of an in-place array: its sizes, and the regions on its devices.

In the performance leg: two slots that say where the journal begins, then the journal. In the
capacity leg: the stripes, one after another. docs/engines.md has the whole picture.
"""

from dataclasses import dataclass

from refmodel.array.layout import PAGE, ArrayGeometry, require_repairable
from refmodel.core.validation import require, require_block_bytes
from refmodel.journal.record import RECORD_UNIT

EXTENT_HEADER = 16  # bytes of each piece of a write in the journal

CHOICES = {
    "in-place-raid5": ("raid5-4+1", "raid5-2+1"),
    "in-place-raid6": ("raid6-4+2",),
}  # the layouts of each engine, the default first


@dataclass(frozen=True, kw_only=True)
class InPlaceGeometry(ArrayGeometry):
    """The parameters of the disk, fixed by `create`. A name ends with its unit."""

    strip_blocks: int  # blocks of a stripe on one device
    log_bytes: int  # size of the journal

    capabilities = ("flush", "crash", "restart", "device", "clean")
    crash_profile = "ack"

    @property
    def piece_bytes(self) -> int:
        """Size of a stripe's piece on one device."""
        return self.strip_blocks * self.block_bytes

    @property
    def segment_bytes(self) -> int:
        """Data bytes of a stripe, parity not counted."""
        return self.k * self.piece_bytes

    @property
    def stripes(self) -> int:
        """Number of stripes that hold the disk."""
        return -(-self.blocks * self.block_bytes // self.segment_bytes)

    @property
    def longest_write(self) -> int:
        """Bytes that fit into the journal with their parity, wherever they are on the disk.

        Where they lie across pieces, the parity of each stripe is journaled whole.
        """
        parity = self.m * self.piece_bytes + self.members * EXTENT_HEADER
        left = self.log_bytes - 3 * RECORD_UNIT - 2 * parity  # minus two headers
        fitting = left * self.segment_bytes // (self.segment_bytes + parity)
        return max(self.block_bytes, fitting - fitting % self.block_bytes)

    @property
    def performance_bytes(self) -> int:
        """Size of the performance component on each device."""
        end = self.log_base + self.log_bytes
        return end + -end % PAGE

    @property
    def device_bytes(self) -> int:
        """Size of a device."""
        return self.capacity_base + self.stripes * self.piece_bytes


def plan(
    engine: str,
    blocks: int,
    *,
    block_bytes: int = 4096,
    layout: str | None = None,
    strip_blocks: int = 16,
    log_bytes: int | None = None,
    spares: int = 0,
    repair_timer: float = 3600.0,
    repair_share: int = 30,
) -> InPlaceGeometry:
    """Return the geometry of a new disk, with defaults for what was not asked for.

    By default the journal holds one write of a whole small disk with its parity; it has at most
    64 MiB. Raises BadRequest for a choice that is impossible.
    """
    layout = layout or CHOICES[engine][0]
    require(blocks >= 1, "a disk has at least 1 block")
    require(
        layout in CHOICES[engine],
        f"the engine {engine} has the layouts {', '.join(CHOICES[engine])}, not {layout!r}",
    )
    require_block_bytes(block_bytes)
    require(1 <= strip_blocks <= 65536, "a strip has 1 to 65536 blocks")
    require_repairable(spares, repair_timer, repair_share)
    if log_bytes is None:
        log_bytes = min(4 * blocks * block_bytes + (1 << 17), 1 << 26)
    smallest = 4 * (block_bytes + 1024)
    require(
        log_bytes >= smallest and log_bytes % 512 == 0,
        f"the journal has at least {smallest} bytes, a multiple of 512",
    )
    return InPlaceGeometry(
        engine=engine,
        blocks=blocks,
        block_bytes=block_bytes,
        layout=layout,
        strip_blocks=strip_blocks,
        log_bytes=log_bytes,
        spares=spares,
        repair_timer=repair_timer,
        repair_share=repair_share,
    )
