"""Each driver: its operations, power cuts, and that a judge finds a disk that ignores flushes."""

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.campaign.driver import drive
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.selftest import kernel
from conformance.targets import NoSuchTarget, resolve
from conformance.targets.base import Message, PowerCut
from conformance.targets.engines.kernel import DRIVERS
from conformance.targets.engines.kernel.disk import KernelDisk
from conformance.targets.engines.kernel.dm_thin import DmThin
from conformance.targets.engines.recorded_disk import BLOCK

BLOCKS = 8


def test_a_driver_that_is_not_there_is_no_target() -> None:
    with pytest.raises(NoSuchTarget, match="dm-thin"):
        resolve("kernel:zfs")


def filled(tag: int, count: int = BLOCKS) -> bytes:
    return bytes([tag]) * BLOCK * count


@pytest.fixture(params=DRIVERS)
def disk(request: pytest.FixtureRequest, needs_guest: None) -> Iterator[KernelDisk]:
    opened = DRIVERS[request.param]({})
    yield opened
    opened.close()


def ask(disk: KernelDisk, op: str, **more: Any) -> Message:
    return disk.request({"op": op, **more})


def read(disk: KernelDisk, **view: Any) -> bytes | None:
    return ask(disk, "read", lba=0, count=BLOCKS, **view).get("data")


def test_operations_and_power_cuts(disk: KernelDisk) -> None:
    assert ask(disk, "create", blocks=BLOCKS)["ok"]
    assert read(disk) == filled(0)
    ask(disk, "write", lba=0, data=filled(1))
    assert ask(disk, "snapshot", name="s")["ok"]
    assert ask(disk, "snapshot", name="s")["error"] == "snapshot-exists"
    ask(disk, "write", lba=2, data=filled(2, 3))
    ask(disk, "unmap", lba=4, count=4)
    now = filled(1, 2) + filled(2, 2) + filled(0, 4)
    assert read(disk) == now and read(disk, view="s") == filled(1)
    ask(disk, "flush")
    assert ask(disk, "crash")["ok"]
    assert read(disk) == now and read(disk, view="s") == filled(1)
    if "revert" in disk.hello["capabilities"]:
        assert ask(disk, "revert", name="s")["ok"]
        assert read(disk) == filled(1) and read(disk, view="s") == filled(1)
        ask(disk, "write", lba=0, data=filled(3))
        assert ask(disk, "crash")["ok"]
        assert read(disk, view="s") == filled(1)
    assert ask(disk, "delete", name="s")["ok"]
    assert ask(disk, "crash")["ok"]
    assert ask(disk, "read", lba=0, count=1, view="s")["error"] == "no-such-snapshot"
    assert ask(disk, "write", lba=BLOCKS - 1, data=filled(1, 2))["error"] == "out-of-range"


def test_a_snapshot_that_is_cut_short_is_there_whole_or_not_at_all(disk: KernelDisk) -> None:
    ask(disk, "create", blocks=BLOCKS)
    ask(disk, "write", lba=0, data=filled(1))
    ask(disk, "flush")
    with pytest.raises(PowerCut):
        ask(disk, "snapshot", name="s", cut={"after": 1, "seed": 1})
    assert ask(disk, "crash")["ok"]
    assert read(disk) == filled(1)
    assert read(disk, view="s") in (None, filled(1))


def test_what_was_not_flushed_may_be_gone_after_a_cut_and_closing_does_not_save_it(
    disk: KernelDisk,
) -> None:
    """So the guest has no cache of the disk that outlives a power cut."""
    ask(disk, "create", blocks=BLOCKS)
    ask(disk, "write", lba=0, data=filled(1))
    ask(disk, "flush")
    ask(disk, "write", lba=0, data=filled(2))
    disk._take()
    disk._lose(_Nothing())
    disk._open_again()
    assert read(disk) == filled(1)


class _Nothing(random.Random):
    """Chooses that nothing survives that was not flushed."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 1

    def choice(self, seq: Any) -> Any:
        return seq[0]


@pytest.mark.usefixtures("needs_guest")
def test_an_unmap_that_a_full_pool_makes_in_part_is_not_refused() -> None:
    disk = DmThin({"unit": 192, "room": 4, "spread": 1})
    try:
        ask(disk, "create", blocks=BLOCKS)
        ask(disk, "write", lba=0, data=filled(1, 4))
        assert ask(disk, "unmap", lba=4, count=2)["error"] == "no-space"
        with pytest.raises(PowerCut):
            ask(disk, "unmap", lba=2, count=4)
        assert ask(disk, "crash")["ok"]
        assert ask(disk, "write", lba=3, data=filled(2, 1))["ok"]
    finally:
        disk.close()


@pytest.mark.usefixtures("needs_guest")
def test_a_write_that_a_full_pool_makes_in_part_ends_as_by_a_power_cut() -> None:
    program: list[Message] = [
        {"op": "create", "blocks": BLOCKS},
        {"op": "write", "lba": 0, "tags": list(range(1, 9))},
        {"op": "read", "lba": 0, "count": BLOCKS},
    ]
    disk = DmThin({"room": 4, "spread": 1})
    try:
        trace = drive(disk, program, 0, {})
    finally:
        disk.close()
    assert [event["op"] for event in trace.events] == ["create", "write", "crash", "read"]
    assert trace.events[1]["result"] is None
    (verdict,) = judge([trace], {"model": named("model")})
    assert verdict.verdict == "pass"


@pytest.mark.usefixtures("needs_guest")
@pytest.mark.parametrize("change", ["write", "unmap", "flush", "snapshot", "delete", "revert"])
def test_a_pool_that_was_opened_read_only_is_made_writable_by_a_change(change: str) -> None:
    disk = DmThin({"recovery": "read-only", "spread": 2})
    try:
        ask(disk, "create", blocks=BLOCKS)
        ask(disk, "write", lba=0, data=filled(1))
        ask(disk, "snapshot", name="s")
        ask(disk, "crash")
        assert " ro " in disk._mapper.status("pool")
        assert read(disk) == read(disk, view="s") == filled(1)
        assert " ro " in disk._mapper.status("pool")
        more: dict[str, dict[str, Any]] = {
            "write": {"lba": 1, "data": filled(2, 1)},
            "unmap": {"lba": 1, "count": 3},
            "flush": {},
            "snapshot": {"name": "t"},
            "delete": {"name": "s"},
            "revert": {"name": "s"},
        }
        assert ask(disk, change, **more[change])["ok"]
        assert " rw " in disk._mapper.status("pool")
    finally:
        disk.close()


@pytest.mark.usefixtures("needs_guest")
@pytest.mark.parametrize("full", ["error", "queue"])
def test_a_full_pool_refuses_at_once_or_when_it_has_waited(full: str) -> None:
    disk = DmThin({"full": full, "room": 2, "spread": 1})
    try:
        ask(disk, "create", blocks=BLOCKS)
        ask(disk, "write", lba=0, data=filled(1, 2))
        begun = time.monotonic()
        assert ask(disk, "write", lba=2, data=filled(1, 1))["error"] == "no-space"
        if full == "queue":
            assert time.monotonic() - begun > 0.5
        assert ask(disk, "flush")["ok"] and ask(disk, "crash")["ok"]
        assert read(disk) == filled(1, 2) + filled(0, BLOCKS - 2)
    finally:
        disk.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_judge_finds_a_disk_that_ignores_flushes(driver: str, needs_guest: None) -> None:
    assert kernel.hunt(driver, "drop-flushes", seed=1).came.startswith("found")


@pytest.mark.parametrize("driver", ["dm-thin", "dm-snapshot"])
def test_the_judge_finds_nothing_wrong_in_a_few_traces(driver: str, needs_guest: None) -> None:
    row = kernel.honest(driver, minutes=0.2, seed=1, most=3)
    assert row.good and row.crashes > 0, str(row)


@pytest.mark.parametrize("cleaner", ["asked", "running"])
def test_the_cleaner_of_nilfs2_frees_segments_and_keeps_snapshots(
    cleaner: str, needs_guest: None
) -> None:
    disk = DRIVERS["nilfs2"]({"cleaner": cleaner, "spread": 1})
    try:
        ask(disk, "create", blocks=BLOCKS)
        ask(disk, "write", lba=0, data=filled(255))
        ask(disk, "snapshot", name="s")
        for number in range(100):
            assert ask(disk, "write", lba=0, data=filled(number))["ok"]
            ask(disk, "flush")
        if cleaner == "asked":
            before = free_segments(disk)
            assert ask(disk, "clean")["ok"] and ask(disk, "checkpoint")["ok"]
            assert free_segments(disk) > before
        deadline = time.monotonic() + 20
        while cleaner == "running" and 2 * free_segments(disk) <= SEGMENTS:
            assert time.monotonic() < deadline, "the cleaner frees nothing"
            time.sleep(0.01)
        for _ in range(2):
            assert read(disk) == filled(99) and read(disk, view="s") == filled(255)
            assert ask(disk, "crash")["ok"]
    finally:
        disk.close()


SEGMENTS = 255  # of 64 KiB, of the disk


def free_segments(disk: KernelDisk) -> int:
    return int(disk._guest.ask("get", "/sys/fs/nilfs2/vda/segments/clean_segments"))
