"""Faults of the host: each row of the table in docs/host-faults.md.

It has more than 400 lines because it follows one table, row by row.
"""

import errno
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.array.layout import LAYOUTS
from refmodel.array.member import ComponentState
from refmodel.core.errors import DiskError, HostFull, HostRefused, UnknownOutcome
from refmodel.log_structured.scrub import scrub
from refmodel.registry import create as create_any
from refmodel.runtime.effects import Process
from support.disks import TINY, block
from support.host_faults import full, refusing

Make = Callable[..., LogStructuredDisk]
BLOCKS = 64


def all_active(disk: LogStructuredDisk, folder: Path) -> bool:
    pulled = [file for file in folder.iterdir() if file.name.endswith(".pulled")]
    return not pulled and all(member.state == "active" for member in disk.array.members)


def reads(disk: LogStructuredDisk, expected: dict[int, int]) -> None:
    for lba in range(BLOCKS):
        assert disk.read(lba) == (block(expected[lba]) if lba in expected else bytes(512))


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("reopened", [False, True])
def test_full(make: Make, folder: Path, layout: str, reason: int, reopened: bool) -> None:
    """Writes are refused with no-space, reads go on, and writes go on once there is room."""
    disk = make(BLOCKS, layout=layout)
    expected = {lba: lba + 1 for lba in range(0, BLOCKS, 2)}
    for lba, tag in expected.items():
        disk.write(lba, block(tag))
    refused = 0
    with full(reason, disk.geometry.performance_base + disk.geometry.pages_base):
        with pytest.raises(HostFull, match="the host refuses device-"):
            disk.checkpoint()
        for tag in range(1000, 2000):
            try:
                disk.write(tag % BLOCKS, block(tag))
                expected[tag % BLOCKS] = tag
            except HostFull:
                refused += 1
        reads(disk, expected)
        assert all_active(disk, folder)
        if reopened:
            disk.close()
            disk = open_disk(folder, sync=False)
            reads(disk, expected)
    assert 0 < refused < 1000 and all_active(disk, folder)
    for lba in range(BLOCKS):
        disk.write(lba, block(200 + lba))
    disk.checkpoint()
    reads(disk, {lba: 200 + lba for lba in range(BLOCKS)})
    assert not scrub(disk).lost
    disk.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_refused_operation_changed_nothing(folder: Path, layout: str, seed: int) -> None:
    """Room comes and goes at random device writes, on all devices or on some."""
    choose = random.Random(f"{layout} {seed}")
    create(folder, plan(BLOCKS, layout=layout, write_back=bool(seed % 2), **TINY), sync=False)
    disk = open_disk(folder, sync=False)
    content: list[int] = [0] * BLOCKS
    snapshots: dict[str, list[int]] = {}
    odds, some = 0.0, set[str]()

    def fails(name: str) -> bool:
        return name in some and choose.random() < odds

    refused = cut = 0
    with refusing("pwrite", errno.ENOSPC, fails), refusing("posix_fallocate", errno.ENOSPC, fails):
        for tag in range(1, 400):
            if tag % 20 == 0:
                odds = choose.choice((0, 0, 0.02, 0.3, 1))
                share = choose.choice((1, 0.5))
                some = {f"device-{number}" for number in range(9) if choose.random() < share}
            after, taken = list(content), {name: list(held) for name, held in snapshots.items()}
            lba = choose.randrange(BLOCKS)
            count = min(choose.choice((1, 1, 3, 20)), BLOCKS - lba)
            name = f"s{choose.randrange(3)}"
            work: Callable[[], object]
            match choose.randrange(8):
                case 0:
                    after[lba : lba + count] = [0] * count
                    work = lambda: disk.unmap(lba, count)  # noqa: E731, B023
                case 1 if name not in taken:
                    taken[name] = list(content)
                    work = lambda: disk.snapshot(name)  # noqa: E731, B023
                case 1:
                    del taken[name]
                    work = lambda: disk.delete(name)  # noqa: E731, B023
                case 2:
                    work = disk.checkpoint
                case _:
                    after[lba : lba + count] = [tag] * count
                    work = lambda: disk.write(lba, block(tag) * count)  # noqa: E731, B023
            try:
                work()
                content, snapshots = after, taken
            except (UnknownOutcome, OSError):
                cut += 1
                disk.abandon()
                odds = 0.0
                disk = open_disk(folder, sync=False)
                if same(disk, after, taken):
                    content, snapshots = after, taken
            except DiskError:
                refused += 1
            assert all_active(disk, folder)
            assert same(disk, content, snapshots), f"seed {seed}, operation {tag}"
        odds = 0.0
        try:
            disk.checkpoint()
        except OSError:
            disk.abandon()
            disk = open_disk(folder, sync=False)
        disk.settle()
        disk.checkpoint()
        assert same(disk, content, snapshots) and not scrub(disk).lost
        disk.close()
    assert refused > 5
    disk = open_disk(folder, sync=False)
    assert same(disk, content, snapshots)
    disk.close()


def same(disk: LogStructuredDisk, content: list[int], snapshots: dict[str, list[int]]) -> bool:
    if sorted(disk.snapshots()) != sorted(snapshots):
        return False
    views: list[tuple[str | None, list[int]]] = [(None, content), *snapshots.items()]
    return all(disk.read(0, BLOCKS, view) == b"".join(map(block, held)) for view, held in views)


@pytest.mark.parametrize("call", ["pwrite", "pread"])
def test_eio_is_the_device_s_fault(make: Make, folder: Path, call: str) -> None:
    disk = make(BLOCKS, layout="raid5-2+1")
    disk.write(0, b"".join(block(lba + 1) for lba in range(BLOCKS)))
    disk.checkpoint()
    with refusing(call, errno.EIO, lambda name: name == "device-1"):
        reads(disk, {lba: lba + 1 for lba in range(BLOCKS)})
        disk.write(3, block(77))
    expected = {lba: lba + 1 for lba in range(BLOCKS)} | {3: 77}
    reads(disk, expected)
    assert [member.index for member in disk.array.in_state(ComponentState.ABSENT)] == [1]
    disk.return_(1)
    disk.settle()
    assert all_active(disk, folder)
    reads(disk, expected)


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_not_allowed(make: Make, folder: Path, reason: int) -> None:
    disk = make(BLOCKS)
    disk.write(1, block(1))
    disk.close()
    right = os.open

    def only_reading(path: object, flags: int, *rest: object) -> int:
        if "device-" in str(path) and flags & os.O_RDWR:
            raise OSError(reason, os.strerror(reason))
        return right(path, flags, *rest)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", only_reading)
        disk = open_disk(folder, sync=False)
        reads(disk, {1: 1})
        with pytest.raises(HostRefused, match=os.strerror(reason)) as refused:
            disk.write(1, block(2))
        assert refused.value.code == "unsupported"
        reads(disk, {1: 1})
        assert all_active(disk, folder)
        disk.close()
    disk = open_disk(folder, sync=False)
    disk.write(1, block(3))
    reads(disk, {1: 3})
    disk.close()


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN])
def test_too_few_of_something_when_it_is_opened(make: Make, folder: Path, reason: int) -> None:
    """The disk does not open, and no device is taken for one that is gone."""
    disk = make(BLOCKS)
    disk.write(1, block(1))
    disk.close()
    with (
        refusing("open", reason, lambda name: name == "device-1"),
        pytest.raises(HostRefused, match="the host refuses device-1"),
    ):
        open_disk(folder, sync=False)
    disk = open_disk(folder, sync=False)
    assert all_active(disk, folder)
    reads(disk, {1: 1})
    disk.close()


@pytest.mark.parametrize("reason", [errno.ENOMEM, errno.EAGAIN])
def test_memory_is_refused(make: Make, folder: Path, reason: int) -> None:
    disk = make(BLOCKS)
    disk.write(1, block(1))
    disk.checkpoint()
    with refusing("pread", reason), pytest.raises(HostRefused) as refused:
        disk.read(1)
    assert refused.value.errno == reason and all_active(disk, folder)
    reads(disk, {1: 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk.state, "apply", lambda record: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            disk.write(2, block(2))
    with pytest.raises(UnknownOutcome):
        disk.write(3, block(3))
    disk.abandon()
    disk = open_disk(folder, sync=False)
    reads(disk, {1: 1, 2: 2})  # it was in the log
    disk.close()


@pytest.mark.parametrize("method", ["apply", "submit", "log_append"])
def test_ctrl_c_cuts_an_operation_short(make: Make, folder: Path, method: str) -> None:
    """The disk is unusable then, and can be closed: nothing waits for the process that is gone."""
    disk = make(BLOCKS)
    disk.write(1, block(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk.state, method, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            disk.write(2, block(2))
    with pytest.raises(UnknownOutcome):
        disk.write(3, block(3))
    disk.close()
    disk = open_disk(folder, sync=False)
    assert disk.read(1) == block(1)
    assert disk.read(2) in (block(2), bytes(512))  # nobody can say whether it happened
    disk.close()


def test_ctrl_c_loses_the_process_that_makes_records_durable(make: Make) -> None:
    def interrupted() -> Process[None]:
        yield from ()
        raise KeyboardInterrupt

    disk = make(BLOCKS)
    disk.scheduler._running[0].process = interrupted()
    with pytest.raises(KeyboardInterrupt):
        disk.write(2, block(2))
    with pytest.raises(UnknownOutcome):
        disk.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "opened, length", [(True, 0), (True, 1000), (True, 4096), (False, 1000), (False, 4096)]
)
def test_a_file_is_truncated_underneath(
    make: Make, folder: Path, layout: str, opened: bool, length: int
) -> None:
    """Nothing is said; the missing part is found by checksums, and scrub stores it again."""
    disk = make(BLOCKS, layout=layout)
    disk.write(0, b"".join(block(lba + 1) for lba in range(BLOCKS)))
    disk.checkpoint()
    if not opened:
        disk.close()
    os.truncate(folder / "device-1", length)
    if not opened:
        disk = open_disk(folder, sync=False)
    expected = {lba: lba + 1 for lba in range(BLOCKS)}
    reads(disk, expected)
    assert all_active(disk, folder)
    disk.write(5, block(99))
    assert scrub(disk).repaired.total() and scrub(disk).clean
    disk.close()
    disk = open_disk(folder, sync=False)  # the label is there again
    assert all_active(disk, folder)
    reads(disk, expected | {5: 99})
    disk.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("length", [0, 100])
def test_a_file_is_truncated_within_its_label_while_the_disk_is_closed(
    make: Make, folder: Path, layout: str, length: int
) -> None:
    """Its device is absent. `return` does not bring it back, `replace` does."""
    disk = make(BLOCKS, layout=layout)
    expected = {lba: lba + 1 for lba in range(BLOCKS)}
    disk.write(0, b"".join(block(tag) for tag in expected.values()))
    disk.close()
    os.truncate(folder / "device-1", length)
    disk = open_disk(folder, sync=False)
    reads(disk, expected)
    assert [member.index for member in disk.array.in_state(ComponentState.ABSENT)] == [1]
    disk.write(5, block(99))
    with pytest.raises(DiskError):
        disk.return_(1)
    disk.replace(1)
    disk.settle()
    assert all_active(disk, folder) and scrub(disk).clean
    reads(disk, expected | {5: 99})
    disk.close()


def test_a_file_is_removed_underneath(make: Make, folder: Path) -> None:
    disk = make(BLOCKS, layout="raid5-2+1")
    disk.write(1, block(1))
    os.unlink(folder / "device-1")
    disk.write(2, block(2))
    reads(disk, {1: 1, 2: 2})
    disk.close()
    disk = open_disk(folder, sync=False)
    reads(disk, {1: 1, 2: 2})
    assert [member.index for member in disk.array.in_state(ComponentState.ABSENT)] == [1]
    disk.replace(1)
    disk.settle()
    assert all_active(disk, folder)
    reads(disk, {1: 1, 2: 2})
    disk.close()


def test_signals_at_any_system_call(make: Make) -> None:
    disk = make(BLOCKS)
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for tag in range(1, 600):
            disk.write(tag % BLOCKS, block(tag))
            assert disk.read(tag % BLOCKS) == block(tag)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) > 50 and not scrub(disk).lost


def test_the_clock_jumps(folder: Path) -> None:
    """Forward: the rebuild begins early. Back: the timer begins anew. Data stays as it is."""
    create(folder, plan(BLOCKS, spares=1, repair_timer=3600, **TINY), sync=False)
    now = 1e9
    disk = open_disk(folder, sync=False, now=lambda: now)
    disk.write(1, block(1))
    disk.fail(0)
    now -= 365 * 86400
    disk.tick()
    disk.write(2, block(2))
    now += 3599
    disk.tick()
    assert disk.array.spares
    now += 2
    disk.tick()
    assert not disk.array.spares  # an hour after the clock went back, and not a year
    disk.settle()
    reads(disk, {1: 1, 2: 2})
    disk.close()


def test_no_room_when_it_is_made(folder: Path) -> None:
    for call in ("posix_fallocate", "truncate", "pwrite"):
        with refusing(call, errno.ENOSPC, lambda name: name == "device-1"), pytest.raises(HostFull):
            create_any(folder, plan(BLOCKS, **TINY), sync=False)
        if call != "pwrite":
            assert not list(folder.iterdir())
    for file in folder.iterdir():
        file.unlink()
    create_any(folder, plan(BLOCKS, **TINY), sync=False, allocate=True)
    sizes = [(file.stat().st_size, file.stat().st_blocks * 512) for file in folder.iterdir()]
    assert all(held >= size for size, held in sizes if size > 1 << 16)


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 24 MiB."""
    where = tmp_path / "small"
    where.mkdir()
    if os.geteuid() or os.system(f"mount -t tmpfs -o size=24m none {where} 2>/dev/null"):
        pytest.skip("NOT RUN: only root may mount a file system")
    yield where
    os.system(f"umount {where}")


def test_a_full_file_system(small_file_system: Path) -> None:
    folder = small_file_system / "disk"
    create(folder, plan(8192), sync=False)
    disk = open_disk(folder, sync=False)
    written = 0
    with pytest.raises(HostFull, match="No space left"):
        while True:
            disk.write(written, block(written + 1, 4096))
            written += 1
    assert written > 500 and all_active(disk, folder)
    for lba in range(written):
        assert disk.read(lba) == block(lba + 1, 4096)
    with pytest.raises(HostFull):
        disk.write(0, bytes(4096))
    os.system(f"mount -o remount,size=200m {small_file_system}")
    for lba in range(written, written + 1000):
        disk.write(lba, block(lba + 1, 4096))
    for lba in range(written + 1000):
        assert disk.read(lba) == block(lba + 1, 4096)
    assert not scrub(disk).lost
    disk.close()
