"""A file that records finished work, so that a long run can continue where it stopped.

It is JSON Lines: a header, then a line for each piece of work that is done.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

Done = TypeVar("Done")


class BadProgress(Exception):
    """The file does not record this work. The message is one line."""


class Progress(Generic[Done]):
    """The file at `path`; if `path` is None, nothing is kept.

    `read` parses one line, and raises ValueError or the like if the line is invalid. `done` has
    what it returned. Raises BadProgress if the file is damaged or has another header, and OSError.
    """

    def __init__(
        self, path: Path | None, header: dict[str, Any], read: Callable[[Any], Done]
    ) -> None:
        self._path = path
        self.done: list[Done] = []
        if path is None:
            return
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(header) + "\n", encoding="utf-8")
            return
        first, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if first != json.dumps(header):
            raise BadProgress(f"{path}: of another campaign: give another file, or remove it")
        for number, line in enumerate(lines[:-1], 2):
            try:
                self.done.append(read(json.loads(line)))
            except (ValueError, LookupError, TypeError, AttributeError):
                raise BadProgress(
                    f"{path}:{number}: nothing that was done: remove the line, or the file"
                ) from None
        if lines and lines[-1]:  # cut off: that is done again
            path.write_text("\n".join([first, *lines[:-1], ""]), encoding="utf-8")

    def add(self, lines: Iterable[Any]) -> None:
        """Record more work as done. Raises OSError."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
