"""Exit statuses of the commands and of the server, and the line that an error prints."""

from refmodel.core.errors import (
    DataLost,
    DiskBusy,
    DiskError,
    HostFull,
    HostRefused,
    NotADisk,
    UnknownOutcome,
    Unsupported,
)

REFUSED = 1  # the operation was refused, and changed nothing
USAGE = 2  # a wrong option or path, or a command that the engine does not have
BUSY = 4  # another process has the disk open
DAMAGED = 5  # data is lost or damaged
UNKNOWN = 6  # the change may have happened or not
INTERRUPTED = 130  # by Ctrl-C or SIGTERM; a change may have happened

# The first class that an error is of decides; any other error is REFUSED.
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (DataLost, DAMAGED),
    (UnknownOutcome, UNKNOWN),
    (MemoryError, UNKNOWN),  # perhaps in the middle of a change
    (Unsupported, USAGE),
    (DiskBusy, BUSY),
    (NotADisk, USAGE),
)


def explained(error: Exception) -> tuple[str, int]:
    """Return the line to print for an error, and the exit status that it ends the process with.

    The line is "" if the output is no longer read, as behind `head`.
    """
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), REFUSED)
    match error:
        case HostRefused() if not isinstance(error, HostFull):
            return str(error), status
        case DiskError():
            return f"{error.code}: {error}", status
        case MemoryError():
            return "there is not enough memory; a change may have happened or not", status
        case BrokenPipeError():
            return "", status
        case OSError() if error.strerror:
            return f"{error.filename or 'output'}: {error.strerror}", status
    return str(error), status
