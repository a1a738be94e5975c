"""Bugs of the read cache. Those that specs/mutants has too have the same names there."""

from refmodel.bugs.registry import bug, override
from refmodel.cache.disk import CachedDisk

SMALL = 1 << 14  # bytes of the cache: slots are evicted


@bug(
    25,
    "paimon-cpp 298; OpenZFS 10931",
    "a revert leaves in the cache what live was before",
    cache_bytes=SMALL,
)
def revert_keeps(disk: CachedDisk) -> None:
    """Plant it: nothing empties the cache."""
    override(disk.cache, "empty", lambda: None)


@bug(
    4,
    "f2fs 82e0a5aa5ddf: a discarded block comes back",
    "an unmap goes to the disk and not to the cache",
    cache_bytes=SMALL,
)
def unmap_keeps(disk: CachedDisk) -> None:
    """Plant it: no block of the cache is invalidated."""
    override(disk.cache.flash, "invalidate", lambda lba, count: None)


@bug(
    3,
    "nilfs2 143511046765: an address that means another block by now",
    "a slot is believed whatever its tag",
    cache_bytes=SMALL,
)
def tag_not_compared(disk: CachedDisk) -> None:
    """Plant it: a hit does not compare tags."""
    flash = disk.cache.flash

    def hit(lba: int) -> bool:
        slot, _, at = flash.locate(lba)
        return slot in flash.used and bool(flash.used[slot].held >> at & 1)

    override(flash, "hit", hit)
