"""What an operation may be refused with, and what ends an engine."""

from pathlib import Path


class DiskError(Exception):
    """A refusal: the operation changed nothing. `code` is one of design's error codes."""

    code = "bad-request"


class BadRequest(DiskError):
    code = "bad-request"


class OutOfRange(DiskError):
    code = "out-of-range"


class NoSuchSnapshot(DiskError):
    code = "no-such-snapshot"


class SnapshotExists(DiskError):
    code = "snapshot-exists"


class NoSpace(DiskError):
    code = "no-space"


class DataLost(DiskError):
    """No good copy is left of something that was stored."""

    code = "data-lost"


class Unsupported(DiskError):
    code = "unsupported"


class UnknownOutcome(DiskError):
    """The operation may have happened or not; the disk must be opened again."""

    code = "unknown-outcome"


class NotADisk(Exception):
    """The folder holds no disk, or one that cannot be opened. Says why in one line."""


class DiskBusy(NotADisk):
    """Another process has the disk in the folder `path` open."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another process has the disk at {path} open")
        self.path = path


class PowerCut(Exception):
    """The power failed in the middle of an operation; only opening the disk again helps."""
