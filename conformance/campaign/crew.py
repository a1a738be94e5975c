"""The worker processes of a campaign on this machine: watched, and brought to an end.

A worker that hangs where no time limit can interrupt it is killed. So are workers that do not end
with the campaign.
"""

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

SILENT = 30.0  # seconds after its time limit in which a call to a target still has not ended
LOOK = 1.0  # seconds between two looks
ENDING = 10.0  # seconds in which a worker within a target has to end after the campaign
LONGEST_ENDING = 60.0  # seconds for a worker that stops servers, for example


class Crew:
    """The workers that show their signs of life in `signs`."""

    def __init__(self, signs: Any) -> None:
        self._signs: Any = signs
        self._processes: dict[int, BaseProcess] = {}
        self._hung: set[int] = set()  # pids
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def look(self) -> None:
        """Take note of the processes that were started."""
        for process in multiprocessing.active_children():
            if process.pid is not None:
                self._processes[process.pid] = process

    def ended(self, seed: int) -> str:
        """Return in which traces workers have ended by themselves, and how, after one has."""
        self._wait(ENDING)
        found = []
        for sign in self._signs:
            process = self._processes.get(sign.pid)
            status = _status(process) if process else None
            if status in (None, 0, -signal.SIGTERM):  # the pool ends the others so
                continue
            where = f"trace {sign.trace} of seed {seed}" if sign.trace >= 0 else "its start"
            if sign.pid in self._hung:
                found.append(f"it hung in {where}, no time limit could interrupt it, it was killed")
            else:
                found.append(f"{_name(status)} in {where}")
        return "; ".join(found)

    def end(self) -> None:
        """Wait until the workers have ended; kill those that do not."""
        self._over.set()
        try:
            if self._wait(ENDING, lambda pid: self._within_target(pid)):
                self._wait(LONGEST_ENDING)
        finally:  # also when the user interrupts again
            for process in self._alive():
                process.kill()

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            for sign in self._signs:
                due = sign.due  # once: the call may end while we look
                if due and time.monotonic() > due + SILENT and sign.pid not in self._hung:
                    self._hung.add(sign.pid)
                    os.kill(sign.pid, signal.SIGKILL)

    def _within_target(self, pid: int | None) -> bool:
        return any(sign.pid == pid and sign.due for sign in self._signs)

    def _alive(self) -> list[BaseProcess]:
        ended = set(connection.wait([one.sentinel for one in self._processes.values()], 0))
        return [one for one in self._processes.values() if one.sentinel not in ended]

    def _wait(self, seconds: float, hangs: Any = None) -> bool:
        """Wait until all have ended, or for these seconds.

        Return whether some that are left may still end: not all of them hang."""
        ends = time.monotonic() + seconds
        while (alive := self._alive()) and time.monotonic() < ends:
            connection.wait([one.sentinel for one in alive], 0.1)
        return bool(alive) and not (hangs and all(hangs(one.pid) for one in alive))


def _status(process: BaseProcess) -> int | None:
    """Return how a process has ended; None if it has not. The pool asks at the same time, and who
    comes second gets None at first."""
    ends = time.monotonic() + LOOK
    while (status := process.exitcode) is None and time.monotonic() < ends:
        time.sleep(0.01)
    return status


def _name(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"
