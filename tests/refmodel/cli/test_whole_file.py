"""Files that are whole or not there."""

from pathlib import Path

import pytest

from refmodel.core.whole_file import replacing, write_whole


def test_a_link_that_is_written_to_stays_a_link(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "elsewhere" / "file"
    file.parent.mkdir()
    file.write_text("old")
    link.symlink_to(file)
    write_whole(link, "new")
    assert link.is_symlink() and file.read_text() == "new"
    with pytest.raises(RuntimeError), replacing(link) as out:
        out.write("half")
        raise RuntimeError
    assert file.read_text() == "new" and [*file.parent.iterdir()] == [file]
