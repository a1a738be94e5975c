"""The pictures show every segment, node and record of a disk, up to a bound.

The page of HTML needs no other file.
"""

import re
import xml.etree.ElementTree as XML
from collections.abc import Callable
from pathlib import Path

from refmodel import LogStructuredDisk
from refmodel.log_structured.disk import open_disk
from refmodel.observe import exporters, pictures
from support.command_line import run
from support.disks import block

SVG = "{http://www.w3.org/2000/svg}"
Make = Callable[..., LogStructuredDisk]


def titles(disk: LogStructuredDisk, name: str) -> list[str]:
    return [
        title.text or "" for title in XML.fromstring(pictures.svg(disk, name)).iter(f"{SVG}title")
    ]


def test_every_piece_of_every_segment_is_drawn(make: Make) -> None:
    disk = make(64, layout="raid6-4+2", segments=20)
    for lba in range(64):
        disk.write(lba, block(lba + 1))
    shown = titles(disk, "segments")
    sealed = len(disk.state.segments.sealed)
    assert sealed == 16
    assert (
        sum(": data" in title for title in shown) == 20 * 4
        and sum(": parity" in title for title in shown) == 20 * 2
    )
    assert sum(title.endswith("free") for title in shown) == 20 - sealed
    disk.fail(3)
    assert sum("missing here" in title for title in titles(disk, "segments")) == sealed


def test_a_shared_node_is_drawn_once(make: Make) -> None:
    disk = make(64, pages=600, segments=40)
    disk.write(0, block(1) * 40)
    disk.snapshot("monday")
    disk.write(5, block(2))
    disk.snapshot("<tuesday>".strip("<>"))
    disk.write(30, block(3))
    nodes = [title for title in titles(disk, "views") if title.startswith("page ")]
    assert (
        len(nodes)
        == len({title.split(",")[0] for title in nodes})
        == exporters.as_json(disk)["pages.of"][0]["value"]
    )
    shared = [title for title in nodes if "," in title.split("reached from ")[1]]
    assert len(shared) == exporters.as_json(disk)["pages.shared"]
    assert any(title.endswith("reached from monday, tuesday, live") for title in nodes)


def test_every_record_that_recovery_would_replay_is_drawn(make: Make) -> None:
    disk = make(64, log_bytes=1 << 16)
    disk.write(3, block(1) * 2)
    disk.unmap(3, 1)
    disk.snapshot("s1")
    shown = [title.split(": ")[1] for title in titles(disk, "log") if title.startswith("record")]
    assert shown == ["open", "write 3, 2 blocks", "unmap 3", "snapshot s1"]
    disk.checkpoint()
    assert not titles(disk, "log")


def test_a_log_that_wraps_around_the_end_of_its_ring(make: Make) -> None:
    disk = make(64, log_bytes=20 * 1024, segments=60)
    while (
        disk.state.log.head // (20 * 1024) == disk.state.log.tail // (20 * 1024)
        or disk.state.log.used() < 8 * 1024
    ):
        disk.write(disk.state.log.head // 512 % 64, block(7))
    records = [title for title in titles(disk, "log") if title.startswith("record")]
    assert len(records) == disk.state.log.used() // 1024
    ring = [
        rect
        for rect in XML.fromstring(pictures.svg(disk, "log")).iter(f"{SVG}rect")
        if rect.get("fill") == "#7aa7d8"
    ]
    assert len(ring) == 2


def test_a_large_disk_makes_no_large_picture(make: Make) -> None:
    disk = make(4096, fanout=8, segment_blocks=16)
    for lba in range(0, 4096, 16):
        disk.write(lba, block(lba + 1) * 16)
    page = pictures.page(disk)
    assert len(page) < 200_000
    assert "the rest is not shown" in page and "not shown)" in page


def test_the_page_needs_no_other_file_and_drawing_changes_nothing(make: Make, folder: Path) -> None:
    disk = make(64)
    disk.write(0, block(1) * 20)
    disk.snapshot("s1")
    disk.state.update_maps()  # a picture merges what waits
    before = exporters.as_json(disk)
    page = pictures.page(disk)
    assert not re.findall(r"(?:src|href)=|url\(http", page)
    after = exporters.as_json(disk)
    assert all(
        before[name] == after[name]
        for name in before
        if not name.startswith("device.") and "read" not in name
    )


def test_an_empty_disk(make: Make) -> None:
    assert "empty: the checkpoint has every operation" in pictures.page(make(8))


def test_on_the_command_line(folder: Path, make: Make, tmp_path: Path) -> None:
    make(64).close()
    assert run("inspect", folder, "--html", tmp_path / "page.html").returncode == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    for name in pictures.PICTURES:
        XML.fromstring(run("inspect", folder, "--svg", name).stdout)
    open_disk(folder).close()
