"""A file that a command writes at the end: an option of the command lines."""

import os
from pathlib import Path
from typing import Any

import click


class OutputFile(click.Path):
    """A file that is written at the end of a run. A mistake is reported before the run.

    What is in the file stays until then.
    """

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, context)))
        folder = path.absolute().parent
        if value == "":
            self.fail("the name of a file is not empty", param, context)
        if path.exists() and not path.is_file():  # a device such as /dev/stdout
            return path
        if not folder.is_dir():
            self.fail(f"{path} cannot be written: there is no folder {folder}", param, context)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"{path} cannot be written: no permission in {folder}", param, context)
        return path
