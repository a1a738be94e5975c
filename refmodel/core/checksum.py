"""CRC-32C (Castagnoli), the checksum of everything that is stored."""

from google_crc32c import extend, value

__all__ = ["crc32c", "extend", "stored_checksum"]

crc32c = value


def stored_checksum(data: bytes) -> bytes:
    """Return the CRC-32C of bytes as it is stored: 4 bytes, little-endian."""
    return int(crc32c(data)).to_bytes(4, "little")
