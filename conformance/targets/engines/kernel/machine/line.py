"""A line to the guest's agent: words go out, one answer comes in. Each has a part of the mailbox.

The agent serves each line by a thread, so that as many requests can be in flight as there are
lines."""

import os
import socket
import time
from collections.abc import Callable

from conformance.targets.base import TargetFailure

PATIENCE = 30.0  # seconds for an answer


class GuestError(Exception):
    """The agent's answer is an error: `number` is the errno."""

    def __init__(self, number: int, words: str):
        super().__init__(f"{words}: {os.strerror(number)}")
        self.number = number


class Line:
    """`mailbox` holds what the agent has read, or is to write. `console` says what the guest's
    kernel printed last."""

    def __init__(
        self, port: socket.socket, mailbox: memoryview, console: Callable[[], str]
    ) -> None:
        self._port, self.mailbox, self._console = port, mailbox, console
        self._received = b""

    def await_ready(self, seconds: float) -> None:
        """Wait until the agent is ready; a firmware may print something before. Raises
        TargetFailure.
        """
        self._port.settimeout(seconds)
        while self._said() != "ready":
            pass
        self._port.settimeout(PATIENCE)

    def ask(self, *words: object) -> str:
        """Have the agent do this. Return its answer. Raises GuestError, TargetFailure for no
        answer.
        """
        text = " ".join(map(str, words))
        try:
            self._port.sendall(text.encode() + b"\n")
        except OSError as error:
            raise self._ended(str(error)) from None
        kind, _, rest = self._said().partition(" ")
        if kind == "ok":
            return rest
        raise GuestError(int(rest.split()[0]), text[:200])

    def close(self) -> None:
        """Close the line; the agent is of no more use."""
        self._port.close()

    def _said(self) -> str:
        deadline = time.monotonic() + (self._port.gettimeout() or 0)
        try:
            while b"\n" not in self._received:
                more = self._port.recv(1 << 16)
                if not more:
                    raise self._ended("its port is closed")
                self._received += more
                if b"\n" not in self._received and time.monotonic() > deadline:
                    raise TimeoutError
        except TimeoutError:
            raise TargetFailure(
                "hang", "the guest's agent does not answer", self._console()
            ) from None
        except OSError as error:
            raise self._ended(str(error)) from None
        line, _, self._received = self._received.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    def _ended(self, how: str) -> TargetFailure:
        return TargetFailure("exit", f"the guest has ended: {how}", self._console())
