"""The negotiation of a connection: from the greeting to the export that the client chose.

A client that breaks the protocol, or sends a longer option than any needs, is disconnected.
"""

from collections.abc import Callable
from struct import Struct
from struct import error as StructError

from refmodel.serving.nbd.protocol import (
    ALLOCATION,
    ALLOCATION_ID,
    CLIENT_FLAGS,
    CONTEXT_ID,
    EXPORT,
    FIXED_NEWSTYLE,
    GREETING,
    IHAVEOPT,
    LONGEST_REQUEST,
    NBDMAGIC,
    NO_ZEROES,
    OLD_ZEROES,
    OPTION,
    OPTION_REPLY,
    OPTION_REPLY_MAGIC,
    Export,
    Exports,
    Info,
    Option,
    OptionReply,
)

LONGEST_OPTION = 1 << 16  # bytes of an option's data; a name has 4096 at most
LENGTH, COUNT = Struct(">I"), Struct(">H")
BLOCK_SIZES = Struct(">HIII")  # Info.BLOCK_SIZE; smallest, preferred, longest request


class Negotiation:
    """The negotiation of one connection. `send` takes the bytes for the client."""

    def __init__(self, exports: Exports, send: Callable[[bytes], None]) -> None:
        self.export: Export | None = None  # the client's choice: the negotiation is over
        self.refused = False  # whether the client is to be disconnected
        self.structured = False  # whether replies are structured
        self.allocation = False  # whether base:allocation may be asked for
        self._exports = exports
        self._send = send
        self._client_flags: int | None = None
        self._context_of: str | None = None  # the export that base:allocation was chosen for
        send(GREETING.pack(NBDMAGIC, IHAVEOPT, FIXED_NEWSTYLE | NO_ZEROES))

    def take(self, view: memoryview) -> int:
        """Take one message from the bytes of the client. Return its length; 0 if it is not whole.

        Nothing may be taken once there is an `export`, or the client is `refused`.
        """
        if self._client_flags is None:
            return self._take_flags(view)
        if len(view) < OPTION.size:
            return 0
        magic, option, length = OPTION.unpack_from(view)
        if magic != IHAVEOPT or length > LONGEST_OPTION:
            self.refused = True
            return 0
        if len(view) < OPTION.size + length:
            return 0
        data = bytes(view[OPTION.size : OPTION.size + length])
        try:
            self._answer(option, data)
        except (StructError, UnicodeDecodeError, _Malformed):
            self._refuse(option, OptionReply.ERR_INVALID, "the option is malformed")
        return OPTION.size + len(data)

    def _take_flags(self, view: memoryview) -> int:
        if len(view) < CLIENT_FLAGS.size:
            return 0
        (flags,) = CLIENT_FLAGS.unpack_from(view)
        self._client_flags = flags
        self.refused = bool(flags & ~(FIXED_NEWSTYLE | NO_ZEROES))
        return CLIENT_FLAGS.size

    def _answer(self, option: int, data: bytes) -> None:
        """Answer an option. Raises StructError, UnicodeDecodeError or _Malformed."""
        match option:
            case Option.EXPORT_NAME:
                self._export_name(data)
            case Option.ABORT:
                self._reply(option, OptionReply.ACK)
                self.refused = True
            case Option.LIST:
                _require(not data)
                for name, description in self._exports.listed():
                    text = _counted(name) + description.encode()
                    self._reply(option, OptionReply.SERVER, text)
                self._reply(option, OptionReply.ACK)
            case Option.INFO | Option.GO:
                self._info(option, data)
            case Option.STRUCTURED_REPLY:
                _require(not data)
                self.structured = True
                self._reply(option, OptionReply.ACK)
            case Option.LIST_META_CONTEXT | Option.SET_META_CONTEXT:
                self._meta_context(option, data)
            case _:
                self._refuse(option, OptionReply.ERR_UNSUP, "this server has no such option")

    def _export_name(self, data: bytes) -> None:
        """Choose an export in the old way, which cannot be refused but by disconnecting."""
        try:
            export = self._exports.open(data.decode())
        except (LookupError, UnicodeDecodeError):
            self.refused = True
            return
        plain = not (self._client_flags or 0) & NO_ZEROES
        self._send(EXPORT.pack(export.size, export.flags) + bytes(OLD_ZEROES * plain))
        self._choose(export)

    def _info(self, option: int, data: bytes) -> None:
        name, at = _name(data, 0)
        (count,) = COUNT.unpack_from(data, at)
        _require(len(data) == at + COUNT.size * (count + 1))
        wanted = {kind for (kind,) in COUNT.iter_unpack(data[at + COUNT.size :])}
        try:
            export = self._exports.open(name)
        except LookupError:
            self._refuse(option, OptionReply.ERR_UNKNOWN, "there is no such export")
            return
        infos = [COUNT.pack(Info.EXPORT) + EXPORT.pack(export.size, export.flags)]
        if Info.NAME in wanted:
            infos.append(COUNT.pack(Info.NAME) + export.name.encode())
        if Info.DESCRIPTION in wanted:
            infos.append(COUNT.pack(Info.DESCRIPTION) + export.description.encode())
        infos.append(BLOCK_SIZES.pack(Info.BLOCK_SIZE, 1, export.block_bytes, LONGEST_REQUEST))
        for info in infos:
            self._reply(option, OptionReply.INFO, info)
        self._reply(option, OptionReply.ACK)
        if option == Option.GO:
            self._choose(export)

    def _meta_context(self, option: int, data: bytes) -> None:
        """Answer a request for meta contexts; the server has one, base:allocation."""
        _require(self.structured)
        chooses = option == Option.SET_META_CONTEXT
        if chooses:
            self._context_of = None
        name, at = _name(data, 0)
        (count,) = LENGTH.unpack_from(data, at)
        at += LENGTH.size
        _require(count <= len(data))
        queries = []
        for _ in range(count):
            query, at = _name(data, at)
            queries.append(query)
        _require(at == len(data))
        try:
            self._exports.open(name)
        except LookupError:
            self._refuse(option, OptionReply.ERR_UNKNOWN, "there is no such export")
            return
        if ALLOCATION in queries or (not chooses and ("base:" in queries or not queries)):
            context = CONTEXT_ID.pack(ALLOCATION_ID) + ALLOCATION.encode()
            self._reply(option, OptionReply.META_CONTEXT, context)
            if chooses:
                self._context_of = name
        self._reply(option, OptionReply.ACK)

    def _choose(self, export: Export) -> None:
        self.export = export
        self.allocation = self._context_of == export.name

    def _refuse(self, option: int, kind: OptionReply, message: str) -> None:
        self._reply(option, kind, message.encode())

    def _reply(self, option: int, kind: OptionReply, data: bytes = b"") -> None:
        self._send(OPTION_REPLY.pack(OPTION_REPLY_MAGIC, option, kind, len(data)) + data)


class _Malformed(Exception):
    """The data of an option is not what its type says."""


def _require(condition: bool) -> None:
    if not condition:
        raise _Malformed


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return the counted string at a position, and the position behind it."""
    (length,) = LENGTH.unpack_from(data, at)
    at += LENGTH.size
    _require(at + length <= len(data))
    return data[at : at + length].decode(), at + length


def _counted(text: str) -> bytes:
    return LENGTH.pack(len(text.encode())) + text.encode()
