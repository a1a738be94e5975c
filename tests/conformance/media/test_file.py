"""A file as a block device: what the kit itself does to it must not look like a fault."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from conformance.media.file import FileDevice

OLD, NEW = b"o" * 512, b"n" * 512


def test_a_read_sees_a_write_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is in the middle of the write when the read is sent, as ext4 allows."""
    (tmp_path / "disk").write_bytes(OLD)
    device = FileDevice(str(tmp_path / "disk"))
    halfway, seen = Event(), Event()

    def in_two_halves(file: int, parts: list[bytes], offset: int, flags: int) -> int:
        os.pwrite(file, parts[0][:256], offset)
        halfway.set()
        seen.wait(0.3)
        return 256 + os.pwrite(file, parts[0][256:], offset + 256)

    def read() -> bytes:
        halfway.wait()
        found = device.read(0, 512)
        seen.set()
        return found

    monkeypatch.setattr(os, "pwritev", in_two_halves)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(read)
        device.write(0, NEW)
        assert reading.result() in (OLD, NEW)
    device.close()
