"""Writes what an output option of the command lines names."""

from pathlib import Path

import click

from commandline.output_file import STDOUT
from commandline.standard_output import give_up_if_unwritable
from refmodel.core.whole_file import write_whole


def write_output(path: Path, text: str) -> None:
    """Write a file, or to standard output. Raises OSError, which names the path."""
    if path != STDOUT:
        write_whole(path, text)
        return
    try:
        click.echo(text, nl=False)
    except OSError as error:
        give_up_if_unwritable()
        raise OSError(error.errno, error.strerror, str(path)) from error
