"""A file or a folder that a command writes at the end: an option of the command lines."""

import os
from pathlib import Path
from typing import Any

import click

# An output that is standard output. What a command prints for people goes to stderr then.
STDOUT = Path("/dev/stdout")


class Output(click.Path):
    """A file or a folder that is written at the end of a run. A mistake is reported before the run,
    and what is in the file stays until its end.

    The folder that it is in must exist, unless it `makes_folders`. If it may be `standard` output,
    `-` is STDOUT.
    """

    def __init__(
        self, *, folder: bool = False, makes_folders: bool = False, standard: bool = False
    ) -> None:
        super().__init__(file_okay=not folder, dir_okay=folder, writable=True)
        self._standard = standard
        self._folder = folder
        self._makes_folders = folder or makes_folders

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> Path:
        if self._standard and os.fspath(value) in ("-", str(STDOUT)):
            return STDOUT
        if os.fspath(value) in ("", "-"):
            self.fail(f"'{value}' names no file", param, context)
        path = Path(os.fsdecode(super().convert(value, param, context)))
        if path.exists() and not path.is_file():  # a folder, or a device such as /dev/null
            if self._folder and not path.is_dir():
                self.fail(f"{path} is no folder", param, context)
            return path
        if path.is_symlink() and path.is_file():  # what is written replaces the file, not the link
            path = path.resolve()
        above = path.absolute().parents
        folder = next(one for one in above if one.exists()) if self._makes_folders else above[0]
        if not folder.is_dir():
            self.fail(f"{path} cannot be written: there is no folder {folder}", param, context)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"{path} cannot be written: no permission in {folder}", param, context)
        return path
