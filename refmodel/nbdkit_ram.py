"""What nbdkit's Python plugin can do at best: memory behind the same filter and thread model as refmodel.nbdkit_plugin (refmodel.served)."""

import nbdkit

API_VERSION = 2
memory = bytearray()


def config(key: str, value: str) -> None:
    memory.extend(bytes(int(value)))


def thread_model() -> int:
    return nbdkit.THREAD_MODEL_PARALLEL


def open(readonly: bool) -> int:
    return 1


def get_size(export: int) -> int:
    return len(memory)


def pread(export: int, buffer, offset: int, flags: int) -> None:
    buffer[:] = memory[offset : offset + len(buffer)]


def pwrite(export: int, buffer, offset: int, flags: int) -> None:
    memory[offset : offset + len(buffer)] = buffer


def flush(export: int, flags: int) -> None:
    """Memory is as durable as it will be."""
