"""What nbdkit's Python plugin can do at best: memory behind the same filter and thread model as refmodel.serving.nbdkit_plugin (refmodel.bench.nbd_comparison)."""

import nbdkit

from refmodel.serving.thread_states import ThreadStates

API_VERSION = 2
memory = bytearray()


def config(key: str, value: str) -> None:
    memory.extend(bytes(int(value)))


def thread_model() -> int:
    return nbdkit.THREAD_MODEL_PARALLEL


def open(readonly: bool) -> ThreadStates:
    return ThreadStates()


def close(export: ThreadStates) -> None:
    export.free()


def get_size(export: ThreadStates) -> int:
    return len(memory)


def pread(export: ThreadStates, buffer, offset: int, flags: int) -> None:
    export.keep()
    buffer[:] = memory[offset : offset + len(buffer)]


def pwrite(export: ThreadStates, buffer, offset: int, flags: int) -> None:
    export.keep()
    memory[offset : offset + len(buffer)] = buffer


def flush(export: ThreadStates, flags: int) -> None:
    """Memory is as durable as it will be."""
