"""Where things are on the devices of an in-place array: labels and membership as on any array; a mirrored journal; the stripes.

docs/engines.md has the whole picture.
"""

from dataclasses import asdict, dataclass

from refmodel.array.layout import PAGE, OnArray, require_repairable
from refmodel.core.validation import require, require_block_bytes

CHOICES = {
    "in-place-raid5": ("raid5-4+1", "raid5-2+1"),
    "in-place-raid6": ("raid6-4+2",),
}  # engine -> its layouts, the default first


@dataclass(frozen=True)
class InPlaceGeometry(OnArray):
    """What `create` decides once and for all. Sizes in the unit that the name ends with."""

    engine: str
    blocks: int
    block_bytes: int
    layout: str
    strip_blocks: int  # of a stripe on one device
    log_bytes: int  # of the journal
    spares: int
    repair_timer: float
    repair_share: int

    capabilities = ("flush", "crash", "restart", "device", "clean")
    crash_profile = "ack"
    sector_bytes = 512

    @property
    def piece_bytes(self) -> int:
        return self.strip_blocks * self.block_bytes

    @property
    def segment_bytes(self) -> int:
        """Of a stripe, without parity: what an array calls a segment."""
        return self.k * self.piece_bytes

    @property
    def stripes(self) -> int:
        return -(-self.blocks * self.block_bytes // self.segment_bytes)

    @property
    def longest_write(self) -> int:
        """Bytes that fit into the journal with their parity, however they lie."""
        return max(self.block_bytes, self.log_bytes // 4)

    @property
    def performance_bytes(self) -> int:
        end = self.log_base + self.log_bytes
        return end + -end % PAGE

    @property
    def device_bytes(self) -> int:
        return self.capacity_base + self.stripes * self.piece_bytes

    def as_dict(self) -> dict:
        return asdict(self)


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
    """Fill in what was not asked for. Raises BadRequest for what cannot work.

    By default the journal holds a full write of a small disk with its parity, or 64 MiB.
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
        engine,
        blocks,
        block_bytes,
        layout,
        strip_blocks,
        log_bytes,
        spares,
        repair_timer,
        repair_share,
    )
