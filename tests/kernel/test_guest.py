"""A guest: its agent answers, says what is wrong, and its end is a failure of the target."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from conformance.media import logwrites
from conformance.targets.base import TargetFailure
from conformance.targets.engines.kernel.machine import guest
from conformance.targets.engines.kernel.machine.guest import DISK
from conformance.targets.engines.kernel.machine.line import GuestError

pytestmark = pytest.mark.usefixtures("needs_guest")


@pytest.fixture
def booted() -> Iterator[guest.Guest]:
    borrowed = guest.Guest(guest.ROOM)
    yield borrowed
    borrowed.close()


def test_the_agent_moves_bytes_and_reports_errors_and_its_end(booted: guest.Guest) -> None:
    with booted.line() as line:
        line.mailbox[:1024] = b"a" * 512 + b"b" * 512
        line.ask("write", DISK, "512:512", "65536:512")
        with booted.line() as other:
            other.mailbox[:1024] = bytes(1024)
            other.ask("read", DISK, "65536:512", "512:512")
            assert other.mailbox[:1024] == b"b" * 512 + b"a" * 512
        assert line.mailbox[:1024] == b"a" * 512 + b"b" * 512
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

    assert booted._process is not None
    os.killpg(booted._process.pid, signal.SIGKILL)
    with pytest.raises(TargetFailure) as ended:
        booted.ask("flush", DISK)
    assert ended.value.kind == "exit"


def test_a_guest_ends_with_its_host_even_in_the_middle_of_a_request() -> None:
    """The host is killed while the guest writes, so that its disk ends before the agent reads."""
    program = (
        "import os, signal, threading\n"
        "from conformance.targets.engines.kernel.machine import guest\n"
        "booted = guest.Guest(guest.ROOM)\n"
        "print(booted._process.pid, flush=True)\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
        "while True:\n"
        "    booted.ask('write', guest.DISK, *[f'{at * 4096}:4096' for at in range(100)])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    group = int(done.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("processes of the guest are left")
