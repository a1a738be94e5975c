"""Keeps the Python thread states of threads that Python did not make, from one call to the next.

nbdkit's plugin enters Python by PyGILState_Ensure, which makes a thread state and a stack for its
frames. It leaves by PyGILState_Release, which frees both again: for a request that copies 8 KiB,
that is half of the processor time. A thread that entered once more than it left keeps its state.
"""

import ctypes
from threading import get_ident

api = ctypes.pythonapi
api.PyThreadState_Get.restype = ctypes.c_void_p
api.PyThreadState_Clear.argtypes = api.PyThreadState_Delete.argtypes = (ctypes.c_void_p,)


class ThreadStates:
    """The thread states that are kept for one connection."""

    def __init__(self) -> None:
        self._states: dict[int, int] = {}  # thread -> address of its state

    def keep(self) -> None:
        """Keep the state of the calling thread."""
        if get_ident() not in self._states:
            api.PyGILState_Ensure()
            self._states[get_ident()] = api.PyThreadState_Get()

    def free(self) -> None:
        """Free all states. Every thread that called `keep` must have ended."""
        for state in self._states.values():
            api.PyThreadState_Clear(state)
            api.PyThreadState_Delete(state)
        self._states.clear()
