"""A device in a file of its own."""

import os
from pathlib import Path

import pytest

from refmodel.media.device import FileDevice
from refmodel.media.enclosure import Enclosure


@pytest.mark.parametrize("kind", ["device", "enclosure"])
def test_what_was_closed_when_it_was_interrupted_is_not_closed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    closed: list[int] = []
    close = os.close

    def interrupted(file: int) -> None:
        close(file)
        closed.append(file)
        raise KeyboardInterrupt

    FileDevice.create(tmp_path / "d0", 8192)
    opened = FileDevice(tmp_path / "d0") if kind == "device" else Enclosure(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opened.close()
        opened.close()
    assert len(closed) == 1
