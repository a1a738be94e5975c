"""A small NBD client, written from the protocol's specification and not from the server's code.

It works on a function that exchanges bytes with a server: sends some, returns what came back.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from refmodel.serving.exports import DiskExports, Servable
from refmodel.serving.nbd.session import Request, Session
from refmodel.serving.requests import Performer

READ, WRITE, DISC, FLUSH, TRIM, CACHE, ZERO, STATUS = range(8)
FUA, NO_HOLE, DF, REQ_ONE, FAST = 1, 2, 4, 8, 16
EXPORT_NAME, ABORT, LIST, PEEK, STARTTLS, INFO, GO, STRUCTURED, LIST_META, SET_META = range(1, 11)
OPTION_MAGIC = struct.pack(">Q", 0x49484156454F5054)


class Reply(NamedTuple):
    """An answer to a request. `content` is data that was read, or extents (length, status)."""

    cookie: int
    error: int
    content: bytes | list[tuple[int, int]] = b""
    message: str = ""


def option(number: int, data: bytes = b"") -> bytes:
    """Encode an option."""
    return OPTION_MAGIC + struct.pack(">II", number, len(data)) + data


def counted(text: str) -> bytes:
    """Encode a string with its length."""
    return struct.pack(">I", len(text.encode())) + text.encode()


def go(name: str, number: int = GO) -> bytes:
    """Encode the option GO (or INFO) for an export."""
    return option(number, counted(name) + struct.pack(">HHH", 2, 1, 2))


def meta(name: str, *queries: str, number: int = SET_META) -> bytes:
    """Encode the choice of contexts."""
    data = counted(name) + struct.pack(">I", len(queries)) + b"".join(map(counted, queries))
    return option(number, data)


def request(
    kind: int,
    offset: int = 0,
    length: int = 0,
    data: bytes = b"",
    *,
    flags: int = 0,
    cookie: int = 0,
) -> bytes:
    """Encode a request."""
    length = len(data) or length
    return struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie, offset, length) + data


def option_replies(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Decode answers to options: option, type, data."""
    found = []
    while raw:
        magic, number, kind, length = struct.unpack_from(">QIII", raw)
        assert magic == 0x3E889045565A9
        found.append((number, kind, raw[20 : 20 + length]))
        raw = raw[20 + length :]
    return found


def replies(raw: bytes, lengths: dict[int, int]) -> list[Reply]:
    """Decode answers; `lengths` has how many bytes each cookie reads, in simple replies."""
    found = []
    while raw:
        (magic,) = struct.unpack_from(">I", raw)
        if magic == 0x67446698:
            error, cookie = struct.unpack_from(">IQ", raw, 4)
            size = 0 if error else lengths.get(cookie, 0)
            found.append(Reply(cookie, error, raw[16 : 16 + size]))
            assert len(raw) >= 16 + size
            raw = raw[16 + size :]
            continue
        assert magic == 0x668E33EF
        flags, kind, cookie, length = struct.unpack_from(">HHQI", raw, 4)
        body, raw = raw[20 : 20 + length], raw[20 + length :]
        assert flags == 1 and len(body) == length  # this server answers in one chunk
        if kind == 0x8001:
            error, size = struct.unpack_from(">IH", body)
            found.append(Reply(cookie, error, message=body[6 : 6 + size].decode()))
        elif kind == 1:
            found.append(Reply(cookie, 0, body[8:]))
        elif kind == 5:
            assert body[:4] == struct.pack(">I", 1)
            found.append(Reply(cookie, 0, list(struct.iter_unpack(">II", body[4:]))))
        else:
            assert kind == 0 and not body
            found.append(Reply(cookie, 0))
    return found


class Client:
    """A client that has chosen an export."""

    def __init__(
        self, exchange: Callable[[bytes], bytes], name: str = "", *, structured: bool = True
    ) -> None:
        self._exchange = exchange
        self._cookie = 0
        greeting = exchange(struct.pack(">I", 3))
        assert greeting[:16] == b"NBDMAGIC" + OPTION_MAGIC and greeting[16:18] == b"\0\3"
        if structured:
            ((_, kind, _),) = option_replies(exchange(option(STRUCTURED)))
            assert kind == 1
            assert len(option_replies(exchange(meta(name, "base:allocation")))) == 2
        answers = option_replies(exchange(go(name)))
        assert answers[-1][1] == 1, answers
        info = next(data for _, kind, data in answers if kind == 3 and data[:2] == b"\0\0")
        self.size, self.flags = struct.unpack(">QH", info[2:])

    def ask(self, *wanted: tuple[int, int, int, bytes, int]) -> list[Reply]:
        """Send requests together: kind, offset, length, data, flags. Return their answers."""
        sent, lengths = b"", {}
        first = self._cookie + 1
        for kind, offset, length, data, flags in wanted:
            self._cookie += 1
            sent += request(kind, offset, length, data, flags=flags, cookie=self._cookie)
            if kind == READ:
                lengths[self._cookie] = length
        found = sorted(replies(self._exchange(sent), lengths))
        assert [reply.cookie for reply in found] == [*range(first, self._cookie + 1)]
        return found

    def one(
        self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0
    ) -> Reply:
        """Send one request, and return its answer."""
        return self.ask((kind, offset, length, data, flags))[0]


class InProcess:
    """The server's session and its requests on a disk, without any socket."""

    def __init__(self, disk: Servable) -> None:
        self.session = Session(DiskExports(disk))
        self._performer = Performer(disk)

    def __call__(self, data: bytes) -> bytes:
        """Exchange bytes."""
        requests = self.session.feed(data)
        sent = self.taken()
        while requests:
            self.answer(requests)
            sent += self.taken()
            requests = self.session.feed() if self.session.resumes else []
        return sent

    def answer(self, requests: list[Request]) -> None:
        """Perform requests, and answer them."""
        for _, steps in self._performer.perform(requests):
            for _ in steps:
                pass
        for one in requests:
            self.session.answer(one)

    def taken(self) -> bytes:
        """Take what the server has sent."""
        sent = b"".join(self.session.output)
        self.session.output.clear()
        self.session.unsent -= len(sent)
        return sent
