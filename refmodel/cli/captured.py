"""A command line that runs in a process of others: with standard streams of its own.

click has such a runner for tests. It keeps what a command printed in cycles of objects, which a
server that is never idle does not collect for hours.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper

import click

from refmodel.serving.command_socket import Answer
from refmodel.serving.exit_status import UNKNOWN


def captured(command: click.Command, arguments: list[str], stdin: bytes) -> Answer:
    """Run a command line, and return what it printed and its exit status."""
    stdout, stderr = BytesIO(), BytesIO()
    with _standard_streams(BytesIO(stdin), stdout, stderr):
        try:
            command.main(arguments, prog_name="refmodel")
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception as error:
            print(f"refmodel: the server failed: {error!r}", file=sys.stderr)
            status = UNKNOWN
    return Answer(stdout.getvalue(), stderr.getvalue(), status)


@contextmanager
def _standard_streams(*streams: BytesIO) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr
    own = [TextIOWrapper(one, "utf-8", errors="backslashreplace") for one in streams]
    sys.stdin, sys.stdout, sys.stderr = own
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for text in own:
            text.detach()  # flushes it, and leaves the bytes open
