"""The negotiation of an NBD connection, message by message."""

import struct
from collections.abc import Callable

import pytest

from refmodel import LogStructuredDisk
from refmodel.serving.nbd.session import Session
from support.serving.nbd_client import (
    ABORT,
    EXPORT_NAME,
    INFO,
    LIST,
    LIST_META,
    OPTION_MAGIC,
    PEEK,
    READ,
    STARTTLS,
    STATUS,
    STRUCTURED,
    Client,
    InProcess,
    counted,
    go,
    meta,
    option,
    option_replies,
    replies,
    request,
)

Make = Callable[..., LogStructuredDisk]
ACK, SERVER, INFO_REPLY, CONTEXT = 1, 2, 3, 4
UNSUP, INVALID, UNKNOWN = 0x80000001, 0x80000003, 0x80000006
FLAGS = struct.pack(">I", 3)


@pytest.fixture
def server(make: Make) -> InProcess:
    disk = make(64)
    disk.snapshot("monday")
    server = InProcess(disk)
    server(FLAGS)
    return server


def types(raw: bytes) -> list[int]:
    return [kind for _, kind, _ in option_replies(raw)]


def test_exports_are_listed_and_described(server: InProcess) -> None:
    listed = option_replies(server(option(LIST)))
    assert [data for _, kind, data in listed if kind == SERVER] == [
        counted("") + b"the live disk",
        counted("monday") + b"a snapshot",
    ]
    assert listed[-1][1] == ACK
    for name, read_only in (("", 0), ("monday", 2)):
        found = option_replies(server(go(name, INFO)))
        infos = {data[:2]: data[2:] for _, kind, data in found if kind == INFO_REPLY}
        size, flags = struct.unpack(">QH", infos[b"\0\0"])
        assert size == 64 * 512 and flags & 3 == 1 | read_only and flags & 4 and flags & 8
        assert infos[b"\0\1"] == name.encode() and infos[b"\0\2"]
        assert struct.unpack(">III", infos[b"\0\3"]) == (1, 4096, 32 << 20)
    assert server.session.negotiating and types(server(go("tuesday"))) == [UNKNOWN]
    assert types(server(go("monday")))[-1] == ACK and not server.session.negotiating


def test_options_that_it_lacks_or_that_are_malformed_are_refused(server: InProcess) -> None:
    assert types(server(option(STARTTLS) + option(PEEK) + option(77, b"x"))) == [UNSUP] * 3
    malformed = [
        option(LIST, b"x"),
        option(STRUCTURED, b"x"),
        option(INFO, b""),
        option(INFO, counted("") + b"\0\1"),
        option(INFO, struct.pack(">I", 100) + b"short"),
        option(INFO, struct.pack(">I", 1) + b"\xff" + b"\0\0"),
        meta("", "base:allocation"),  # before structured replies
    ]
    assert types(server(b"".join(malformed))) == [INVALID] * len(malformed)
    assert types(server(option(STRUCTURED))) == [ACK]
    many = counted("") + struct.pack(">I", 0xFFFFFFFF)
    assert types(server(option(LIST_META, many))) == [INVALID]
    assert types(server(meta("nowhere", "base:allocation"))) == [UNKNOWN]


def test_contexts(server: InProcess) -> None:
    server(option(STRUCTURED))
    for queries, found in (
        ([], [CONTEXT, ACK]),
        (["base:"], [CONTEXT, ACK]),
        (["x:y"], [ACK]),
        (["x:y", "base:allocation"], [CONTEXT, ACK]),
    ):
        assert types(server(meta("", *queries, number=LIST_META))) == found
    assert types(server(meta("", "base:"))) == [ACK]
    assert types(server(meta("", "base:allocation"))) == [CONTEXT, ACK]
    server(go("monday"))  # another export than the one that the context was chosen for
    assert replies(server(request(STATUS, 0, 512)), {})[0].error == 22


def test_the_old_way_to_choose_an_export(make: Make) -> None:
    disk = make(64)
    for flags, zeroes in ((3, 0), (1, 124)):
        server = InProcess(disk)
        greeting = server(struct.pack(">I", flags))
        assert greeting[:16] == b"NBDMAGIC" + OPTION_MAGIC
        assert len(server(option(EXPORT_NAME))) == 10 + zeroes
        assert replies(server(request(READ, 0, 512)), {0: 512})[0].content == bytes(512)
    server = InProcess(disk)
    server(FLAGS + option(EXPORT_NAME, b"nowhere"))
    assert server.session.over


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">I", 8),  # an unknown flag
        FLAGS + b"x" * 16,
        FLAGS + OPTION_MAGIC + struct.pack(">II", LIST, 1 << 31),
        FLAGS + option(ABORT),
        FLAGS + go("") + request(READ)[:-1] + b"\1" + b"\0" * 28,  # no magic of a request
        FLAGS + go("") + request(2),
        FLAGS + go("") + struct.pack(">IHHQQI", 0x25609513, 0, 1, 0, 0, (32 << 20) + 1),
    ],
)
def test_it_disconnects(make: Make, sent: bytes) -> None:
    server = InProcess(make(64))
    server(sent)
    assert server.session.over and server(request(READ)) == b""


def test_bytes_may_arrive_one_by_one(make: Make) -> None:
    disk = make(64)
    whole, pieces = InProcess(disk), InProcess(disk)
    sent = FLAGS + option(STRUCTURED) + meta("", "base:allocation") + option(LIST) + go("")
    sent += request(1, 0, data=b"abc".ljust(512)) + request(READ, 0, 512) + request(STATUS, 0, 512)
    expected = whole(sent)
    assert b"".join(pieces(sent[at : at + 1]) for at in range(len(sent))) == expected
    assert b"abc" in expected


def test_a_client_that_reads_nothing_holds_little(make: Make) -> None:
    server = InProcess(make(64))
    Client(server)
    session: Session = server.session
    asked = 0
    for _ in range(10_000):
        if not session.takes:
            break
        requests = session.feed(b"".join(request(READ, 0, 64 * 512) for _ in range(8)))
        asked += 8
        server.answer(requests)
    assert not session.takes and 100 < asked < 400 and session.unsent < 8 << 20
    served = len(server.taken()) // (64 * 512)
    while session.resumes:
        server.answer(session.feed())
        served += len(server.taken()) // (64 * 512)
    assert served == asked and session.takes
