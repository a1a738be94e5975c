"""Files that are whole or not there: a full file system never leaves half a file."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Yield a text file to write, which takes the place of `path` once it is whole.

    After an error the file that was there is as it was. Raises OSError, which names the path. What
    is no regular file (a pipe, a terminal) is written to directly.
    """
    beside = path if path.exists() and not path.is_file() else path.with_name(path.name + ".new")
    try:
        try:
            with beside.open("w", encoding="utf-8") as out:
                yield out
            if beside != path:
                beside.replace(path)
        except BaseException:
            if beside != path:
                with suppress(OSError):
                    beside.unlink()
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file, or leave what was there. Raises OSError, which names the path."""
    with replacing(path) as out:
        out.write(text)
