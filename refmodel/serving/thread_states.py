"""Python's states of threads that are not Python's own, kept from one call to the next.

nbdkit's plugin enters Python by PyGILState_Ensure, which makes a thread state and the stack of its frames, and leaves by PyGILState_Release, which unmaps them
again: for a request that copies 8 KiB, half of all the processor time. A thread that has entered once more than it leaves keeps its state.
"""

import ctypes
from threading import get_ident

api = ctypes.pythonapi
api.PyThreadState_Get.restype = ctypes.c_void_p
api.PyThreadState_Clear.argtypes = api.PyThreadState_Delete.argtypes = (ctypes.c_void_p,)


class ThreadStates:
    def __init__(self) -> None:
        self._kept: dict[int, int] = {}  # thread -> its state

    def keep(self) -> None:
        """Keep the state of the thread that calls."""
        if get_ident() not in self._kept:
            api.PyGILState_Ensure()
            self._kept[get_ident()] = api.PyThreadState_Get()

    def drop(self) -> None:
        """The threads have ended."""
        for state in self._kept.values():
            api.PyThreadState_Clear(state)
            api.PyThreadState_Delete(state)
        self._kept.clear()
