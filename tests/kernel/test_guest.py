"""A guest: its agent answers, says what is wrong, and its end is a failure of the target."""

import errno
import os
import signal

import pytest

from conformance.media import logwrites
from conformance.targets.base import TargetFailure
from conformance.targets.engines.kernel import guest
from conformance.targets.engines.kernel.guest import DISK, GuestError

pytestmark = pytest.mark.usefixtures("needs_guest")


@pytest.fixture
def booted():
    borrowed = guest.Guest(guest.ROOM)
    yield borrowed
    borrowed.close()


def test_the_agent_moves_bytes_and_reports_errors_and_its_end(booted):
    booted.mailbox[:1024] = b"a" * 512 + b"b" * 512
    booted.ask("write", DISK, "512:512", "65536:512")
    booted.mailbox[:1024] = bytes(1024)
    booted.ask("read", DISK, "65536:512", "512:512")
    assert booted.mailbox[:1024] == b"b" * 512 + b"a" * 512
    booted.ask("flush", DISK)
    log, _ = logwrites.read(booted.folder / "log")
    assert {(e.offset, e.data[:1]) for e in log if e.moves} == {(512, b"a"), (65536, b"b")}
    assert log[-1].flags & logwrites.FLUSH

    for words, number in (
        (("no-such-verb",), errno.ENOSYS),
        (("read", DISK), errno.EINVAL),
        (("read", "/dev/none", "0:512"), errno.ENOENT),
        (("read", DISK, f"{guest.ROOM}:512"), errno.EIO),
        (("dm-remove", "none"), errno.ENXIO),
    ):
        with pytest.raises(GuestError) as raised:
            booted.ask(*words)
        assert raised.value.number == number, words
    assert booted.processor_seconds() > 0

    os.killpg(booted._process.pid, signal.SIGKILL)
    with pytest.raises(TargetFailure) as ended:
        booted.ask("flush", DISK)
    assert ended.value.kind == "exit"
