"""Threads that Python did not make keep their states until these are freed; none is left."""

import ctypes
from collections.abc import Callable
from threading import Barrier

from refmodel.serving.thread_states import ThreadStates

api = ctypes.pythonapi
api.PyInterpreterState_Head.restype = api.PyInterpreterState_ThreadHead.restype = (
    api.PyThreadState_Next.restype
) = ctypes.c_void_p
api.PyInterpreterState_ThreadHead.argtypes = api.PyThreadState_Next.argtypes = (ctypes.c_void_p,)
BODY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
libc = ctypes.CDLL(None)


def states() -> int:
    """How many thread states the interpreter has."""
    found, state = 0, api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Head())
    while state:
        found, state = found + 1, api.PyThreadState_Next(state)
    return found


def in_threads(count: int, work: Callable[[], None]) -> None:
    """Run `work` in `count` threads of the C library, all alive at the same time."""
    together = Barrier(count)

    def run(_: object) -> None:
        work()
        together.wait()

    body = BODY(run)
    threads = [ctypes.c_ulong() for _ in range(count)]
    for thread in threads:
        assert libc.pthread_create(ctypes.byref(thread), None, body, None) == 0
    for thread in threads:
        assert libc.pthread_join(thread, None) == 0


def test_states_live_until_they_are_freed() -> None:
    kept, before = ThreadStates(), states()
    in_threads(4, lambda: None)
    assert states() == before
    in_threads(4, kept.keep)
    assert states() == before + 4
    kept.free()
    assert states() == before
