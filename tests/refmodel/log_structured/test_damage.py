"""Damage on the media is repaired from the other mirror, or refused; it is never returned."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.array.layout import MEMBERSHIP_BASE, PAGE
from refmodel.core.errors import DataLost, NotADisk
from refmodel.journal import checkpoint as checkpoints
from refmodel.log_structured.scrub import scrub
from support.disks import pba_of

BLOCKS = 12


def block(tag: int) -> bytes:
    return bytes([tag]) * 512


@pytest.fixture
def filled(make: Callable[..., LogStructuredDisk], folder: Path) -> Path:
    """A disk with chunks in segments, nodes in pages, a snapshot, and records in the log."""
    disk = make(BLOCKS, pages=256, segments=9, log_bytes=16384)
    disk.write(0, b"".join(block(tag) for tag in range(1, 9)))
    disk.snapshot("s1")
    disk.write(2, block(20))
    disk.checkpoint()
    disk.write(5, block(30))
    disk.unmap(7, 1)
    disk.close()
    return folder


def expected() -> tuple[bytes, bytes]:
    live = [1, 2, 20, 4, 5, 30, 7, 0, 0, 0, 0, 0]
    return b"".join(map(block, live)), b"".join(map(block, [*range(1, 9), 0, 0, 0, 0]))


def read_all(disk: LogStructuredDisk) -> tuple[bytes, bytes]:
    return disk.read(0, BLOCKS), disk.read(0, BLOCKS, "s1")


def used_bytes(path: Path, stride: int) -> list[int]:
    """Return every `stride`-th offset of a byte that is not zero."""
    data = path.read_bytes()
    return [at for at in range(len(data)) if data[at]][::stride]


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x40]))


def test_any_flipped_byte_on_one_device_is_repaired(filled: Path) -> None:
    places = used_bytes(filled / "device-0", 23)
    assert len(places) > 300
    for at in places:
        flip(filled / "device-0", at)
        disk = open_disk(filled, sync=False)
        assert read_all(disk) == expected(), at
        assert scrub(disk).clean
        disk.close()
    disk = open_disk(filled, sync=False)
    assert scrub(disk).repaired.total() == 0  # nothing was left for later
    disk.close()


def test_scrub_of_an_open_disk_leaves_nothing_that_only_one_device_has(
    filled: Path, tmp_path: Path
) -> None:
    """Whatever goes wrong on one device meanwhile, the other device is not needed after it: label,
    log, nodes that only the checkpoint before refers to, chunks.
    """
    twice = [(at, at + PAGE) for at in (20, MEMBERSHIP_BASE + 20)]  # all copies on the device
    places = [*twice, *((at,) for at in used_bytes(filled / "device-0", 83))]
    assert len(places) > 80
    for wrong in places:
        folder = tmp_path / "copy"
        shutil.copytree(filled, folder)
        disk = open_disk(folder, sync=False)
        disk.write(1, block(2))
        for at in wrong:
            flip(folder / "device-0", at)
        assert scrub(disk).clean and scrub(disk).repaired.total() == 0, wrong
        disk.abandon()
        (folder / "device-1").unlink()
        disk = open_disk(folder, sync=False)
        assert read_all(disk) == expected(), wrong
        disk.close()
        shutil.rmtree(folder)


@pytest.mark.parametrize("layout", ["mirror", "raid5-2+1", "raid6-4+2"])
def test_a_read_rewrites_the_copy_that_it_finds_wrong(
    make: Callable[..., LogStructuredDisk], folder: Path, layout: str
) -> None:
    disk = make(BLOCKS, layout=layout, segment_blocks=4)
    disk.write(0, b"".join(block(tag) for tag in range(1, 5)))
    disk.checkpoint()
    base = disk.geometry.capacity_base
    disk.close()
    places = [(file, file.read_bytes().find(block(1), base)) for file in folder.glob("device-*")]
    file, at = next((file, at) for file, at in sorted(places) if at >= 0)
    flip(file, at)
    disk = open_disk(folder, sync=False)
    assert disk.read(0) == block(1)
    disk.close()
    assert file.read_bytes()[at:].startswith(block(1))


@pytest.mark.parametrize("device", ["device-0", "device-1"])
def test_an_opening_rewrites_the_newest_checkpoint_where_it_is_damaged(
    filled: Path, device: str
) -> None:
    disk = open_disk(filled, sync=False)
    at = disk.geometry.performance_base + checkpoints.offset(disk.state.checkpoint_number)
    disk.close()
    whole = (filled / device).read_bytes()[at : at + PAGE]
    flip(filled / device, at)
    open_disk(filled, sync=False).abandon()
    assert (filled / device).read_bytes()[at : at + PAGE] == whole


def test_a_byte_flipped_on_both_devices_is_refused_or_harmless(filled: Path) -> None:
    refused = 0
    for at in used_bytes(filled / "device-0", 199):
        before = [(filled / name).read_bytes() for name in ("device-0", "device-1")]
        for name in ("device-0", "device-1"):
            flip(filled / name, at)
        try:
            disk = open_disk(filled, sync=False)
            try:
                refused += not _reads_right_or_refuses(disk)
            finally:
                disk.abandon()
        except (DataLost, NotADisk):
            refused += 1
        for name, content in zip(("device-0", "device-1"), before, strict=True):
            (filled / name).write_bytes(content)
    assert refused > 20


def _reads_right_or_refuses(disk: LogStructuredDisk) -> bool:
    """Return whether every block reads right. A block may be refused.

    A block may also be what it was before the newest record: no later record says that it exists.
    """
    before_lost_records = {7: block(8)}
    live, snapshot = expected()
    whole = True
    for lba in range(BLOCKS):
        for view, content in ((None, live), ("s1", snapshot)):
            try:
                found = disk.read(lba, 1, view)
            except DataLost:
                whole = False
                continue
            right = content[lba * 512 : (lba + 1) * 512]
            assert found == right or view is None and found == before_lost_records.get(lba), (
                lba,
                view,
            )
            whole = whole and found == right
    return whole


def test_scrub_finds_all_damage_and_says_what_is_lost(filled: Path) -> None:
    disk = open_disk(filled, sync=False)
    pba = pba_of(disk, 0)
    at = disk.geometry.capacity_base + disk.state.chunks.offset(pba)
    disk.close()
    flip(filled / "device-1", at)
    disk = open_disk(filled, sync=False)
    assert scrub(disk).repaired["chunk"] == 1
    assert scrub(disk).repaired["chunk"] == 0
    disk.close()
    for name in ("device-0", "device-1"):
        flip(filled / name, at)
    disk = open_disk(filled, sync=False)
    found = scrub(disk)
    assert len(found.lost) == 1 and not found.clean
    with pytest.raises(DataLost):
        disk.read(0)
    assert disk.read(1) == block(2)
    disk.abandon()


def test_a_device_cut_short_is_filled_from_the_other(filled: Path) -> None:
    with (filled / "device-0").open("r+b") as file:
        file.truncate(20000)
    disk = open_disk(filled, sync=False)
    assert read_all(disk) == expected()
    disk.abandon()


def test_a_node_of_an_unfinished_checkpoint_is_not_taken_for_the_right_one(
    make: Callable[..., LogStructuredDisk], folder: Path
) -> None:
    """A device lost all writes since a checkpoint began that a power cut ended.

    The next opening has put other nodes of the same birth into the same pages.
    """
    disk = make(BLOCKS, pages=256, segments=24, segment_blocks=1, log_bytes=16384, fanout=4)
    disk.write(0, b"".join(block(tag) for tag in range(1, 9)))
    disk.checkpoints.freeze(whole=True)
    disk.checkpoints.write(disk.state.pages.frozen_count)
    disk.abandon()
    unfinished = (folder / "device-0").read_bytes()
    disk = open_disk(folder, sync=False)
    disk.write(5, block(30) + block(31))
    disk.checkpoint()
    disk.write(2, block(20))
    disk.close()
    base, pages = disk.geometry.performance_base, disk.state.pages
    as_old = 0
    with (folder / "device-0").open("r+b") as file:
        for page in pages.in_use:
            at = base + pages.offset(page)
            old, new = unfinished[at : at + PAGE], read_page(file, at)
            if old[:4] == b"LFSN":
                as_old += old[24:26] == new[24:26] and old != new and born(old) >= born(new)
                file.seek(at)
                file.write(old)
    assert as_old
    disk = open_disk(folder, sync=False)
    tags = [1, 2, 20, 4, 5, 30, 31, 8, 0, 0, 0, 0]
    assert disk.read(0, BLOCKS) == b"".join(map(block, tags))
    assert scrub(disk).clean and scrub(disk).repaired.total() == 0
    disk.abandon()


def read_page(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(PAGE)


def born(page: bytes) -> int:
    return int.from_bytes(page[16:24], "little")


def test_devices_that_do_not_belong_are_refused(filled: Path) -> None:
    other = filled.parent / "other"
    (filled / "device-0").rename(other)
    (filled / "device-1").rename(filled / "device-0")
    other.rename(filled / "device-1")
    with pytest.raises(NotADisk, match="labelled as device 1, not 0"):
        open_disk(filled)


def test_a_flipped_byte_of_the_witness_is_repaired(filled: Path) -> None:
    for at in used_bytes(filled / "witness", 19):
        flip(filled / "witness", at)
        disk = open_disk(filled, sync=False)
        disk.fail(1)
        disk.return_(1)
        disk.settle()
        assert read_all(disk) == expected(), at
        disk.close()


def test_two_bad_pieces_of_one_stripe_are_both_repaired(tmp_path: Path) -> None:
    """Bad parity is repaired though a second device is bad, too (OpenZFS PR 11489).

    Afterwards any two devices may fail.
    """
    shape = plan(8, layout="raid6-4+2", block_bytes=512, segment_blocks=4, segments=9)
    for data, parity in ((0, 4), (1, 5), (3, 4), (4, 5)):
        folder = tmp_path / f"{data}-{parity}"
        create(folder, shape, sync=False)
        disk = open_disk(folder, sync=False)
        disk.write(0, b"".join(block(tag) for tag in range(1, 5)))
        disk.checkpoint()
        pba = pba_of(disk, 0)
        stripe = pba // 4
        holds = {disk.state.capacity.striping.piece(number, stripe): number for number in range(6)}
        disk.close()
        for piece in (data, parity):
            flip(folder / f"device-{holds[piece]}", shape.capacity_base + stripe * 512 + 7)
        disk = open_disk(folder, sync=False)
        assert scrub(disk).repaired["chunk"] == 2 and scrub(disk).repaired["chunk"] == 0
        for piece in (2, 1 if data != 1 else 0):
            disk.fail(holds[piece], "degraded")
        assert disk.read(0, 4) == b"".join(block(tag) for tag in range(1, 5))
        disk.abandon()
