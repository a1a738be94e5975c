"""The settings of a disk's cache: a small file beside its devices.

The content of the cache is not stored: it is gone with the host.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from refmodel.core.errors import BadRequest, NotADisk
from refmodel.core.whole_file import write_whole
from refmodel.engine.shape import Shape
from refmodel.media.host import explained

NAME = "cache.json"
SMALLEST, LARGEST = 4096, 1 << 20  # bytes of a cache block
MOST = 1 << 40  # bytes of a cache


@dataclass(frozen=True)
class CacheSettings:
    """The size of a cache."""

    bytes: int
    block_bytes: int  # size of a cache block: a power of 2, and whole blocks of the disk

    @property
    def slots(self) -> int:
        """Number of cache blocks that fit."""
        return self.bytes // self.block_bytes

    @classmethod
    def of(cls, shape: Shape, bytes: int, block_bytes: int = SMALLEST) -> "CacheSettings":
        """Return the settings of a cache for a disk. Raises BadRequest for an impossible size."""
        if (
            not SMALLEST <= block_bytes <= LARGEST
            or block_bytes & (block_bytes - 1)
            or block_bytes % shape.block_bytes
        ):
            raise BadRequest(
                f"a cache block has {SMALLEST} to {LARGEST} bytes, a power of 2, "
                f"and is whole blocks of {shape.block_bytes}"
            )
        if bytes < block_bytes:
            raise BadRequest(f"a cache has at least one block, of {block_bytes} bytes")
        if bytes > MOST:
            raise BadRequest(f"a cache has at most {MOST} bytes (1 TiB)")
        return cls(bytes, block_bytes)

    @classmethod
    def asked(cls, shape: Shape, bytes: int, block_bytes: int | None) -> "CacheSettings | None":
        """Return the settings that a user asked for; None for no cache (0 bytes).

        Raises BadRequest for an impossible size, or a block size without a cache.
        """
        if bytes:
            return cls.of(shape, bytes, block_bytes or SMALLEST)
        if block_bytes is not None:
            raise BadRequest(
                "there are blocks of a cache only where there is a cache: --cache-bytes"
            )
        return None

    @classmethod
    def load(cls, folder: Path) -> "CacheSettings | None":
        """Return the settings of the disk in a folder; None if it has no cache.

        Raises NotADisk if the file is damaged, HostRefused, OSError.
        """
        try:
            settings = cls(**json.loads((folder / NAME).read_text()))
            if not SMALLEST <= settings.block_bytes <= settings.bytes <= MOST:
                raise ValueError(f"{settings.bytes} bytes, in blocks of {settings.block_bytes}")
            return settings
        except FileNotFoundError:
            return None
        except OSError as error:
            raise explained(error, NAME) from error
        except (ValueError, TypeError) as error:
            raise NotADisk(
                f"{folder / NAME} does not say what the cache is: {error}; "
                "without this file the disk has no cache"
            ) from None

    def save(self, folder: Path) -> None:
        """Store the settings for the disk in a folder; a crash leaves the old or the new ones.

        Raises HostRefused, OSError; then the old ones are left.
        """
        try:
            write_whole(folder / NAME, json.dumps(asdict(self)) + "\n")
        except OSError as error:
            raise explained(error, NAME) from error
