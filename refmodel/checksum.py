"""CRC-32C (Castagnoli), the checksum of everything that is stored."""

from google_crc32c import extend, value

__all__ = ["crc32c", "crc32c_of_parts"]

crc32c = value


def crc32c_of_parts(*parts: bytes) -> int:
    """The CRC-32C of the parts as if they were one."""
    crc = 0
    for part in parts:
        crc = extend(crc, part)
    return crc
