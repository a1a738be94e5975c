"""CRC-32C (Castagnoli), the checksum of everything that is stored."""

from google_crc32c import extend, value

__all__ = ["crc32c", "extend"]

crc32c = value
