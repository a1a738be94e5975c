"""Faults of the host, injected at the system calls of devices."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

Fails = Callable[[str], bool]  # whether a call on the device of this name fails


@contextmanager
def refusing(call: str, errno: int, fails: Fails = lambda name: True) -> Iterator[None]:
    """Let a system call (`pwrite`, `pread`, `posix_fallocate`, `open`, ...) fail on devices."""
    right = getattr(os, call)

    def wrong(target: Any, *arguments: Any, **more: Any) -> Any:
        named = isinstance(target, (str, os.PathLike))
        path: str = os.fspath(target) if named else os.readlink(f"/proc/self/fd/{target}")
        name = os.path.basename(path)
        if name.startswith(("device-", "witness")) and fails(name):
            raise OSError(errno, os.strerror(errno))
        return right(target, *arguments, **more)

    with patch.object(os, call, wrong):
        yield


@contextmanager
def full(errno: int, from_byte: int) -> Iterator[None]:
    """Let the host have no room for what lies behind a byte of any device."""
    right = os.pwrite

    def write(file: int, data: bytes, offset: int) -> int:
        if offset >= from_byte:
            raise OSError(errno, os.strerror(errno))
        return right(file, data, offset)

    with patch.object(os, "pwrite", write), refusing("posix_fallocate", errno):
        yield
