"""Errors of the host: errors of the operating system that are not about the device.

A full file system, a quota, missing rights or missing memory are no reason to take a device for
broken: its content is good, and the same call may succeed later. Other errors (EIO, ENXIO, ...) are
about the device, and stay OSError.
"""

import errno

from refmodel.core.errors import HostFull, HostRefused

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)
TOO_FEW = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOLCK)
REFUSES = "the host refuses"  # in the message of every such error


def reason(error: BaseException | None) -> str:
    """Return the words of an error, without the number that Python puts before those of OSError."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def explained(error: OSError, name: str) -> HostRefused | OSError:
    """Return what to raise for an error of a system call on the file of a device."""
    message = f"{REFUSES} {name}: {error.strerror or error}"
    if error.errno in FULL:
        return HostFull(message, error.errno)
    if error.errno in NOT_ALLOWED or error.errno in TOO_FEW:
        return HostRefused(message, error.errno)
    return error
