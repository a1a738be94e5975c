"""What requests wait for, on a virtual clock: one tick per device I/O, so all times are counts."""

import random
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from refmodel import LogStructuredDisk
from refmodel.core.time_spent import PARTS, THREAD
from refmodel.observe import exporters
from refmodel.serving import live_top
from refmodel.serving.callbacks import READ as CAN_READ
from refmodel.serving.callbacks import Callbacks
from refmodel.serving.server import Server
from refmodel.serving.sockets import listen_at
from support.disks import block
from support.serving.loop import Loop
from support.serving.nbd_client import FLUSH, READ, WRITE, Client

BLOCKS, WRITES = 64, 600
Make = Callable[..., LogStructuredDisk]
Served = tuple[LogStructuredDisk, Client, Loop, Callbacks]


def counted(disk: LogStructuredDisk, what: str, *causes: str) -> int:
    """Device reads, writes or flushes of the causes, or of all."""
    return sum(
        count
        for meter in disk.meters.values()
        for cause, count in meter.of(what).items()
        if not causes or cause in causes
    )


def ios(disk: LogStructuredDisk, *causes: str) -> int:
    """The same, together."""
    return sum(counted(disk, what, *causes) for what in ("reads", "writes", "flushes"))


@pytest.fixture
def served(make: Make, folder: Path) -> Iterator[Served]:
    """A small mirrored disk, a client, and the clock."""
    disk = make(BLOCKS, segments=21)
    with listen_at(folder.with_name("socket")) as listening, closing(Callbacks()) as callbacks:
        server = Server(disk, callbacks, [listening], disk)
        THREAD.measure(lambda: ios(disk))
        loop = Loop(server, listening)
        yield disk, loop.client(turns=1), loop, callbacks
        THREAD.measure(None)
        server.close()


def test_the_parts_are_the_device_ios_of_their_causes_and_add_up_to_all(served: Served) -> None:
    disk, client, *_ = served
    before, choose = ios(disk), random.Random(1)
    for number in range(WRITES):
        lba = choose.randrange(BLOCKS)
        assert not client.one(WRITE, lba * 512, data=block(number + 1)).error
    found = disk.operations.requests["write"]
    assert found.count == WRITES and found.total == ios(disk) - before
    spent = found.spent
    assert spent["log"] == counted(disk, "writes", "foreground") >= 2 * WRITES  # two mirrors
    assert spent["flush"] == counted(disk, "flushes", "foreground") >= 2 * WRITES
    assert spent["cleaner"] >= ios(disk, "clean") > 0
    assert spent["destage"] <= ios(disk, "destage")
    checkpoints = ios(disk, "checkpoint")
    assert 0 < spent["checkpoint"] <= checkpoints <= spent["checkpoint"] + spent["cleaner"]
    assert all(spent[part] == 0 for part in ("turn", "answer", "repair"))
    for _, share in exporters.shares(found):
        assert sum(share.parts.values()) == pytest.approx(share.latency)
    slowest = found.at(100)
    assert slowest is not None and slowest.parts["cleaner"] > slowest.latency / 2


def test_a_group_waits_together_and_a_read_for_the_writes_of_its_group(served: Served) -> None:
    disk, client, *_ = served
    writes = [(WRITE, lba * 512, 0, block(lba + 1), 0) for lba in range(3)]
    client.ask(*writes, (READ, 9 * 512, 512, b"", 0), (FLUSH, 0, 0, b"", 0))
    for name, count in (("write", 3), ("read", 1), ("flush", 1)):
        found = disk.operations.requests[name]
        share = found.at(50)
        assert found.count == count and share is not None
        assert share.group == share.in_flight == 5
        # on two mirrors: the record that begins the log, flushed; the writes, flushed; a flush
        waited = {name: spent for name, spent in share.parts.items() if spent}
        assert waited == {"log": 2 + 2, "flush": 2 + 2 + 2}


def test_a_request_waits_for_a_command_that_runs_before_its_group(served: Served) -> None:
    disk, client, loop, callbacks = served
    client.one(WRITE, 0, data=block(1))
    disk.checkpoint()
    ours, theirs = socket.socketpair()
    with ours, theirs:

        def command(_: int) -> None:
            ours.recv(1)
            disk.read(0)

        callbacks.watch(ours, CAN_READ, command)
        loop.sent = lambda: theirs.send(b"x")  # behind the request, so it runs behind its arrival
        client.one(READ, 0, 512)
        callbacks.forget(ours)
    share = disk.operations.requests["read"].at(50)
    assert share is not None
    assert {name: spent for name, spent in share.parts.items() if spent} == {"turn": 1, "engine": 1}


def test_what_is_shown_is_what_was_counted(served: Served) -> None:
    disk, client, *_ = served
    client.one(WRITE, 0, data=block(1))
    earlier = exporters.as_json(disk, walk=False)
    for number in range(40):
        client.one(WRITE, 0, data=block(number + 2))
    later = exporters.as_json(disk, walk=False)
    (sample,) = later["serving.latency"]
    assert sample["count"] == 41 and sample["buckets"][-1][1] == 41
    assert sample["sum"] == pytest.approx(1e-9 * disk.operations.requests["write"].total)
    for about in sample["percentiles"].values():
        assert sum(about["parts"].values()) == pytest.approx(about["latency"])
    text = exporters.openmetrics(disk)
    parts = [line for line in text.splitlines() if "latency_part_seconds_total" in line]
    assert len(parts) == len(PARTS)
    assert sum(float(line.split()[-1]) for line in parts) == pytest.approx(sample["sum"])
    assert any(line.startswith("counted since 20") for line in exporters.table(disk))
    console = Console(width=200)
    with console.capture() as shown:
        console.print(live_top.show(earlier, later, 1.0))
    assert re.search(r"write p50 +0 µs = 0; 1.0 in flight, group of 1.0", shown.get())
