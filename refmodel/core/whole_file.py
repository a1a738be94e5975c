"""Files that are whole or not there: a full file system never leaves half a file."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

DEVICES = (Path("/dev"), Path("/dev/fd"))  # /dev/stdout is a link to a file where it is redirected


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Yield a text file to write, which takes the place of `path` once it is whole.

    After an error the file that was there is as it was. Raises OSError, which names the path. What
    is no regular file (a pipe, a terminal), or is in `/dev`, is appended to directly. A link stays.
    """
    direct = path.exists() and not path.is_file() or path.absolute().parent in DEVICES
    real = path if direct else path.resolve()
    beside = path if direct else real.with_name(real.name + ".new")
    try:
        try:
            with beside.open("a" if direct else "w", encoding="utf-8") as out:
                yield out
            if not direct:
                beside.replace(real)
        except BaseException:
            if not direct:
                with suppress(OSError):
                    beside.unlink()
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file, or leave what was there. Raises OSError, which names the path."""
    with replacing(path) as out:
        out.write(text)
