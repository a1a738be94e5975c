"""A file of what has been done, so that long work can go on where it was: JSON Lines, a header and
a line for each thing done.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

Done = TypeVar("Done")


class BadProgress(Exception):
    """A file that is no record of this work. One line."""


class Progress(Generic[Done]):
    """The file; without a path nothing is kept. `done` is what `read` makes of its lines, and
    raises ValueError or the like of others.

    Raises BadProgress if the file is of other work, which the header tells, or damaged; OSError.
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
        """These are done."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
