"""A script for nbdkit that serves memory: the fastest that a plugin in Python can be.

It has the same filter and thread model as refmodel.serving.nbdkit_plugin, and is compared with it
by refmodel.bench.nbd_comparison.
"""

import nbdkit  # type: ignore[import-not-found]  # a module that exists inside nbdkit only

from refmodel.serving.thread_states import ThreadStates

API_VERSION = 2
memory = bytearray()


def config(key: str, value: str) -> None:
    """Take the parameter `bytes`: the size of the memory."""
    memory.extend(bytes(int(value)))


def thread_model() -> int:
    """Requests run in parallel."""
    model: int = nbdkit.THREAD_MODEL_PARALLEL
    return model


def open(readonly: bool) -> ThreadStates:
    """Connect a client."""
    return ThreadStates()


def close(export: ThreadStates) -> None:
    """Disconnect a client."""
    export.free()


def get_size(export: ThreadStates) -> int:
    """The size in bytes."""
    return len(memory)


def pread(export: ThreadStates, buffer: bytearray, offset: int, flags: int) -> None:
    """Read into a buffer."""
    export.keep()
    buffer[:] = memory[offset : offset + len(buffer)]


def pwrite(export: ThreadStates, buffer: bytearray, offset: int, flags: int) -> None:
    """Write a buffer."""
    export.keep()
    memory[offset : offset + len(buffer)] = buffer


def flush(export: ThreadStates, flags: int) -> None:
    """Do nothing: memory is not durable."""
