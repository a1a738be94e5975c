"""Live rates where stdout is a pipe or a file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmodel.cli import main
from refmodel.serving import live_top


def test_top_prints_each_update_at_once_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed = []

    def frames(folder: Path, interval: float) -> Iterator[str]:
        for frame in ("first", "second", "third"):
            yield frame
            printed.append(sys.stdout.buffer.getvalue().split())  # type: ignore[union-attr]

    monkeypatch.setattr(live_top, "frames", frames)
    done = CliRunner().invoke(main, ["top", "d", "--count", "2"])
    assert done.exit_code == 0 and done.output.split() == ["first", "second"]
    assert printed == [[b"first"]]  # islice does not ask again behind the second
