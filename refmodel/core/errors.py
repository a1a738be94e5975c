"""The errors of an engine: refusals, each with its code, and what makes a disk unusable.

The codes are those of the conformance kit's dialogue (docs/traces.md).
"""

from pathlib import Path


class DiskError(Exception):
    """A refusal: the operation changed nothing, except where a subclass says otherwise.

    `code` is the error code of the dialogue.
    """

    code = "bad-request"


class BadRequest(DiskError):
    """The request is malformed, or makes no sense in the state of the disk."""

    code = "bad-request"


class OutOfRange(DiskError):
    """The request reaches past the end of the disk."""

    code = "out-of-range"


class NoSuchSnapshot(DiskError):
    """No snapshot has the name."""

    code = "no-such-snapshot"


class SnapshotExists(DiskError):
    """A snapshot already has the name."""

    code = "snapshot-exists"


class NoSpace(DiskError):
    """The disk has no room for what the operation would add."""

    code = "no-space"


class DataLost(DiskError):
    """No good copy is left of something that was stored."""

    code = "data-lost"


class Unsupported(DiskError):
    """The engine does not have the operation."""

    code = "unsupported"


class HostRefused(DiskError):
    """The host's operating system refuses I/O on the file of a device: the device is not to blame.

    `errno` is its reason. Nothing that was durable is lost; the operation may be tried again. The
    dialogue has no code for it.
    """

    code = "unsupported"

    def __init__(self, message: str, errno: int) -> None:
        super().__init__(message)
        self.errno = errno


class HostFull(HostRefused, NoSpace):
    """The host's file system has no room, or a quota allows no more."""

    code = "no-space"


class UnknownOutcome(DiskError):
    """The operation may have happened or not. The disk must be opened again."""

    code = "unknown-outcome"


class NotADisk(Exception):
    """The folder holds no disk, or one that cannot be opened. The message is one line."""


class DiskBusy(NotADisk):
    """Another process has the disk in the folder `path` open."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another process has the disk at {path} open")
        self.path = path


class PowerCut(Exception):
    """The power failed during an operation. The disk must be opened again."""
