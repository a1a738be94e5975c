"""The numbers and layouts of the NBD protocol, named as in its specification (doc/proto.md of the
project NetworkBlockDevice/nbd)."""

import errno
from enum import IntEnum, IntFlag
from struct import Struct
from typing import Protocol

# Negotiation (fixed newstyle).

GREETING = Struct(">8sQH")  # NBDMAGIC, IHAVEOPT, handshake flags
CLIENT_FLAGS = Struct(">I")
OPTION = Struct(">QII")  # IHAVEOPT, option, length of its data
OPTION_REPLY = Struct(">QIII")  # magic, option, type, length of its data
EXPORT = Struct(">QH")  # size, transmission flags
NBDMAGIC = b"NBDMAGIC"
IHAVEOPT = 0x49484156454F5054
OPTION_REPLY_MAGIC = 0x0003E889045565A9
FIXED_NEWSTYLE, NO_ZEROES = 1, 2  # handshake flags, of both sides
OLD_ZEROES = 124  # bytes behind the answer to EXPORT_NAME, unless both sides said NO_ZEROES


class Option(IntEnum):
    """An option of the negotiation, before the client reads and writes."""

    EXPORT_NAME = 1
    ABORT = 2
    LIST = 3
    INFO = 6
    GO = 7
    STRUCTURED_REPLY = 8
    LIST_META_CONTEXT = 9
    SET_META_CONTEXT = 10


class OptionReply(IntEnum):
    """The type of an answer to an option."""

    ACK = 1
    SERVER = 2
    INFO = 3
    META_CONTEXT = 4
    ERR_UNSUP = 0x80000001
    ERR_INVALID = 0x80000003
    ERR_UNKNOWN = 0x80000006


class Info(IntEnum):
    """The subject of an answer of the type INFO."""

    EXPORT = 0
    NAME = 1
    DESCRIPTION = 2
    BLOCK_SIZE = 3


class ExportFlag(IntFlag):
    """The transmission flags of an export, which say what it can do."""

    HAS_FLAGS = 1
    READ_ONLY = 2
    SEND_FLUSH = 4
    SEND_FUA = 8
    SEND_TRIM = 32
    SEND_WRITE_ZEROES = 64
    SEND_DF = 128
    CAN_MULTI_CONN = 256
    SEND_CACHE = 1024
    SEND_FAST_ZERO = 2048


class Export(Protocol):
    """An export that a client can be connected to. Sizes are in bytes."""

    @property
    def name(self) -> str:
        """The name that clients ask for; "" is the default export."""

    @property
    def description(self) -> str:
        """One line for people."""

    @property
    def size(self) -> int:
        """The size of the export."""

    @property
    def flags(self) -> ExportFlag:
        """The transmission flags of the export."""

    @property
    def block_bytes(self) -> int:
        """The preferred size and alignment of requests; any other is served too."""


class Exports(Protocol):
    """The exports of a server."""

    def listed(self) -> list[tuple[str, str]]:
        """Return the name and description of each export."""

    def open(self, name: str) -> Export:
        """Return an export. Raises LookupError if there is none of that name."""


# Transmission.

REQUEST = Struct(">IHHQQI")  # magic, flags, command, cookie, offset, length
SIMPLE_REPLY = Struct(">IIQ")  # magic, error, cookie
CHUNK = Struct(">IHHQI")  # magic, flags, type, cookie, length of the payload
DATA_CHUNK = Struct(">IHHQIQ")  # the same, and the offset of the data that follows
OFFSET_BYTES = 8  # bytes of a data chunk's payload that are its offset
CHUNK_ERROR = Struct(">IH")  # error, length of the message
CONTEXT_ID = Struct(">I")
EXTENT = Struct(">II")  # length, status flags
REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, CHUNK_MAGIC = 0x25609513, 0x67446698, 0x668E33EF
DONE = 1  # flag of the last chunk of a reply
LONGEST_REQUEST = 32 << 20  # bytes that a client may read or write in one request


class Command(IntEnum):
    """The type of a request."""

    READ = 0
    WRITE = 1
    DISC = 2
    FLUSH = 3
    TRIM = 4
    CACHE = 5
    WRITE_ZEROES = 6
    BLOCK_STATUS = 7


class CommandFlag(IntFlag):
    """A flag of a request."""

    FUA = 1  # force unit access: durable when it is answered
    NO_HOLE = 2
    DF = 4  # do not fragment the answer
    REQ_ONE = 8  # one extent is enough
    FAST_ZERO = 16  # fail rather than write zeroes one by one


class ChunkType(IntEnum):
    """The type of a chunk of a structured reply."""

    NONE = 0
    OFFSET_DATA = 1
    BLOCK_STATUS = 5
    ERROR = 0x8001


HOLE, ZERO = 1, 2  # status flags of an extent, in base:allocation
ALLOCATION = "base:allocation"
ALLOCATION_ID = 1

# The errors that the protocol knows: Linux's numbers, whatever the server runs on.
WIRE_ERRORS = {
    errno.EPERM: 1,
    errno.EIO: 5,
    errno.ENOMEM: 12,
    errno.EINVAL: 22,
    errno.ENOSPC: 28,
    errno.EOVERFLOW: 75,
    errno.ENOTSUP: 95,
    errno.ESHUTDOWN: 108,
}
