"""Exit statuses of the commands and of the server, and the line that an error prints."""

from refmodel.core.errors import DataLost, DiskBusy, DiskError

REFUSED = 1  # the operation was refused, and changed nothing
BUSY = 4  # another process has the disk open
DAMAGED = 5  # data is lost or damaged
INTERRUPTED = 130  # by Ctrl-C; a change may have happened


def explained(error: Exception) -> tuple[str, int]:
    """Return the line to print for an error, and the exit status that it ends the process with.

    The line is "" if the output is no longer read, as behind `head`.
    """
    if isinstance(error, DiskError):
        return f"{error.code}: {error}", DAMAGED if isinstance(error, DataLost) else REFUSED
    if isinstance(error, BrokenPipeError):
        return "", REFUSED
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'output'}: {error.strerror}", REFUSED
    return str(error), BUSY if isinstance(error, DiskBusy) else REFUSED
