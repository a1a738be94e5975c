"""One client's session, without its socket: bytes of the client in, requests out, and back.

A session holds a bounded amount of memory, whatever the client does: while the requests that are
not answered and the answers that are not sent exceed `MOST_HELD`, it takes no further request.
"""

import errno

from refmodel.core.time_spent import Times
from refmodel.serving.nbd.negotiation import Negotiation
from refmodel.serving.nbd.protocol import (
    ALLOCATION_ID,
    CHUNK,
    CHUNK_ERROR,
    CHUNK_MAGIC,
    CONTEXT_ID,
    DATA_CHUNK,
    DONE,
    LONGEST_REQUEST,
    OFFSET_BYTES,
    REQUEST,
    REQUEST_MAGIC,
    SIMPLE_REPLY,
    SIMPLE_REPLY_MAGIC,
    WIRE_ERRORS,
    ChunkType,
    Command,
    CommandFlag,
    Export,
    ExportFlag,
    Exports,
)

MOST_HELD = 4 << 20  # bytes; the last request that is taken may exceed it by LONGEST_REQUEST
REQUEST_COST = 1024  # bytes that a request is taken to hold, besides its data

# Plain integers: in the loop over requests, an enumeration's attribute is looked up slowly.
READ, WRITE, DISC, FLUSH = map(int, (Command.READ, Command.WRITE, Command.DISC, Command.FLUSH))
BLOCK_STATUS = int(Command.BLOCK_STATUS)
ALLOWED_FLAGS: dict[int, int] = {
    int(command): int(flags)
    for command, flags in {
        Command.READ: CommandFlag.FUA | CommandFlag.DF,
        Command.WRITE: CommandFlag.FUA,
        Command.FLUSH: CommandFlag.FUA,
        Command.TRIM: CommandFlag.FUA,
        Command.CACHE: CommandFlag.FUA,
        Command.WRITE_ZEROES: CommandFlag.FUA | CommandFlag.NO_HOLE | CommandFlag.FAST_ZERO,
        Command.BLOCK_STATUS: CommandFlag.FUA | CommandFlag.REQ_ONE,
    }.items()
}
CHANGES = tuple(map(int, (Command.WRITE, Command.TRIM, Command.WRITE_ZEROES)))
ERROR, EXTENTS, DATA, NO_DATA = map(
    int, (ChunkType.ERROR, ChunkType.BLOCK_STATUS, ChunkType.OFFSET_DATA, ChunkType.NONE)
)


class Request:
    """A request of a client: what it asks for, and then its answer.

    `offset` and `length` are in bytes. The answer is an `error` (an errno; 0: none) with a
    `message`, or the `result`: what was read, or the encoded extents of a block status.
    `arrived` is what the thread had spent on each part when the request was received.
    """

    __slots__ = (
        "session", "kind", "flags", "cookie", "offset", "length", "data", "error", "message",
        "result", "arrived",
    )  # fmt: skip

    def __init__(
        self,
        session: "Session",
        kind: int,
        flags: int,
        cookie: int,
        offset: int,
        length: int,
        data: bytes,
    ) -> None:
        self.session = session
        self.kind, self.flags, self.cookie = kind, flags, cookie
        self.offset, self.length, self.data = offset, length, data
        self.error, self.message, self.result = 0, "", b""
        self.arrived: Times = ()

    def fail(self, error: int, message: str) -> None:
        """Set the answer: an error."""
        self.error, self.message = error, message


class Session:
    """The session of one client, from the greeting on."""

    export: Export  # set when the negotiation has ended

    def __init__(self, exports: Exports) -> None:
        self.output: list[bytes | memoryview] = []  # for the client, not yet taken by the caller
        self.unsent = 0  # bytes for the client; the caller subtracts what it has sent
        self.ended = False  # whether the client sends nothing any more that is to be read
        self.unanswered = 0  # requests
        self._owed = 0  # bytes that requests hold which are not answered
        self._input = bytearray()  # the beginning of a message, or what there is no room for
        self._needs = 0  # bytes of the message that begins there, if that is known
        self._stopped = False  # whether it stopped taking requests because it was full
        self._negotiation: Negotiation | None = Negotiation(exports, self._send)
        self._structured = self._allocation = self._read_only = False
        self._end = 0  # the end of the export, in bytes
        self._usual = READ  # the last command that needs no check if it has no flags and is short

    @property
    def negotiating(self) -> bool:
        """True if the client has not chosen an export yet."""
        return self._negotiation is not None

    @property
    def full(self) -> bool:
        """True if the session holds so much that it takes no further request for now."""
        return self._owed + self.unsent >= MOST_HELD

    @property
    def takes(self) -> bool:
        """True if the session takes more bytes of the client for now."""
        return not self._stopped and not self.ended

    @property
    def resumes(self) -> bool:
        """True if it stopped because it was full, and now has room: feed it b"" to go on."""
        return self._stopped and not self.full and not self.ended

    @property
    def over(self) -> bool:
        """True if everything is done and the connection can be closed."""
        return self.ended and not self.unanswered and not self.unsent

    def feed(self, data: memoryview | bytes = b"") -> list[Request]:
        """Take bytes of the client. Return the requests that are whole, checked.

        A request that is refused already has its `error`. All have to be answered.
        """
        if self.ended:
            return []
        if not self._input:
            with memoryview(data) as view:
                taken, found = self._take(view)
                if taken < len(view) and not self.ended:
                    self._input += view[taken:]
            return found
        self._input += data
        if len(self._input) < self._needs:
            return []
        with memoryview(self._input) as view:
            taken, found = self._take(view)
        del self._input[:taken]
        return found

    def end(self) -> None:
        """End the input: the client sends nothing any more, or nothing that can be understood."""
        self.ended = True

    def answer(self, request: Request) -> None:
        """Send the answer to a request."""
        self.unanswered -= 1
        self._owed -= REQUEST_COST + request.length
        error, kind, cookie = request.error, request.kind, request.cookie
        if kind == READ and not error and (result := request.result):
            size = len(result)
            if self._structured:
                head = DATA_CHUNK.pack(
                    CHUNK_MAGIC, DONE, DATA, cookie, OFFSET_BYTES + size, request.offset
                )
            else:
                head = SIMPLE_REPLY.pack(SIMPLE_REPLY_MAGIC, 0, cookie)
            self.output += (head, result)
            self.unsent += len(head) + size
        elif self._structured and (error or kind in (READ, BLOCK_STATUS)):
            self._answer_in_chunks(request)
        else:
            error = WIRE_ERRORS.get(error, 5) if error else 0
            self._send(SIMPLE_REPLY.pack(SIMPLE_REPLY_MAGIC, error, cookie))

    def _answer_in_chunks(self, request: Request) -> None:
        """Send a structured reply, of one chunk: an error, a block status, or that nothing was
        read."""
        result, cookie = request.result, request.cookie
        if request.error:
            text = request.message.encode()[:4096]
            head = CHUNK_ERROR.pack(WIRE_ERRORS.get(request.error, 5), len(text))
            kind, result = ERROR, text
        elif request.kind == BLOCK_STATUS:
            kind, head = EXTENTS, CONTEXT_ID.pack(ALLOCATION_ID)
        else:
            kind, head = NO_DATA, b""
        self._send(CHUNK.pack(CHUNK_MAGIC, DONE, kind, cookie, len(head) + len(result)) + head)
        if result:
            self._send(result)

    def _send(self, data: bytes) -> None:
        self.output.append(data)
        self.unsent += len(data)

    def _take(self, view: memoryview) -> tuple[int, list[Request]]:
        """Take whole messages. Return how many bytes they have, and the requests among them."""
        at, size = 0, len(view)
        found: list[Request] = []
        self._needs = 0
        while self._negotiation is not None and not self.full:
            with view[at:] as rest:
                taken = self._negotiation.take(rest)
            at += taken
            if self._negotiation.refused:
                self.end()
                return size, []
            if self._negotiation.export is not None:
                self.export = self._negotiation.export
                self._read_only = bool(self.export.flags & ExportFlag.READ_ONLY)
                self._end, self._usual = self.export.size, READ if self._read_only else WRITE
                self._structured = self._negotiation.structured
                self._allocation = self._negotiation.allocation
                self._negotiation = None
            elif not taken:
                self._stopped = False
                return at, []
        end, usual = self._end, self._usual
        while size - at >= REQUEST.size and self._owed + self.unsent < MOST_HELD:
            magic, flags, kind, cookie, offset, length = REQUEST.unpack_from(view, at)
            if (
                magic != REQUEST_MAGIC
                or kind == DISC
                or (kind == WRITE and length > LONGEST_REQUEST)
            ):
                self.end()
                return size, found
            body, data = at + REQUEST.size, b""
            if kind == WRITE:
                if size - body < length:
                    self._needs = REQUEST.size + length
                    break
                data = bytes(view[body : body + length])
                body += length
            at = body
            request = Request(self, kind, flags, cookie, offset, length, data)
            if flags or kind > usual or length > LONGEST_REQUEST or offset + length > end:
                self._check(request)
            self.unanswered += 1
            self._owed += REQUEST_COST + request.length
            found.append(request)
        self._stopped = at < size and self.full
        return at, found

    def _check(self, request: Request) -> None:
        """Refuse a request that makes no sense for the export."""
        kind, export = request.kind, self.export
        allowed = ALLOWED_FLAGS.get(kind)
        if allowed is None or (kind == BLOCK_STATUS and not self._allocation):
            request.fail(errno.EINVAL, "the server does not have this command")
        elif request.flags & ~allowed:
            request.fail(errno.EINVAL, "the command does not have these flags")
        elif kind in CHANGES and self._read_only:
            request.fail(errno.EPERM, "the export is read-only")
        elif request.offset + request.length > export.size:
            past = errno.ENOSPC if kind in CHANGES else errno.EINVAL
            request.fail(past, "the request reaches past the end of the export")
        elif kind == READ and request.length > LONGEST_REQUEST:
            request.fail(errno.EINVAL, "the request is too long")
        elif kind == BLOCK_STATUS and not request.length:
            request.fail(errno.EINVAL, "the request is empty")
