"""The file of `refmodel bench --json`: one JSON object per line and row."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from refmodel.core.output_file import write_output

R = TypeVar("R")
Lines = list[dict[str, Any]]


@contextmanager
def json_lines(path: Path | None) -> Iterator[Lines]:
    """Yield a list for objects, which are written to a file at the end.

    If the run is interrupted, those that are there are written. Without any the file stays as it
    was. Raises OSError, which names the path.
    """
    lines: Lines = []
    try:
        yield lines
    finally:
        if path is not None and lines:
            write_output(path, "".join(json.dumps(line) + "\n" for line in lines))


def recorded(rows: Iterable[R], lines: Lines, **what: str) -> Iterator[R]:
    """Yield the rows of a table, and append each as an object, behind `what` it is."""
    for row in rows:
        lines.append(what | _plain(row))
        yield row


def _plain(value: Any) -> Any:
    """Return a dataclass or a named tuple as an object of JSON, with those in its fields."""
    if is_dataclass(value):
        fields = vars(value)
    elif hasattr(value, "_asdict"):
        fields = value._asdict()
    else:
        return value
    return {name: _plain(one) for name, one in fields.items()}
