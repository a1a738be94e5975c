"""Another process as a target: one JSON object per line on stdin and stdout. Nothing is trusted."""

import binascii
import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from conformance.contract.trace import DECODER
from conformance.targets.base import Message, PowerCut, TargetFailure, Unusable
from conformance.targets.pauses import PAUSE, awaited, held

PATIENCE = 10.0  # seconds for an answer
HURRIED = 10  # times less, while a program that hangs is shrunk
SLOW = frozenset(
    ["hello", "crash", "settle", "restart"]
)  # a process has to start first, and to recover
SLOW_FACTOR = 3
LONGEST_ANSWER = 64 << 20  # bytes
KEPT_OUTPUT = 8 << 10  # bytes of stderr
CHUNK = 1 << 16
MOMENT = 0.001  # seconds in which an answer that nobody asked for comes behind one
POWER_CUT = "power-cut"  # the answer that says that the power failed, as `cut` of the request asks


class ProcessTarget:
    """Runs `command` (split like a shell does, but run without one) until it is closed or fails.

    Raises Unusable if it cannot be started, or does not answer hello. `patience` is in seconds. If
    the process cuts its power where a request says (`cuts` of hello), calls raise PowerCut."""

    schedules = True  # for pauses: `schedule` is not sent

    def __init__(self, command: str, patience: float = PATIENCE):
        self.patience = self._usual_patience = patience
        self.hello: Message = {}
        self._options: dict[str, Any] = {}
        self._output = b""
        self._received = bytearray()
        self._lines = 0  # how many ends of line were received
        self._unsent = bytearray()
        self._numbered = False  # whether the target speaks version 2
        self._number = 0  # the id of the next request, in version 2
        self._ids: dict[int, int] = {}  # id in flight -> the caller's number
        self._may_be_cut: set[int] = set()  # ids of requests with a `cut`
        self._crash: int | None = None  # the id of a crash in flight
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise Unusable(f"the command cannot be split into words: {error}") from None
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as error:
            raise Unusable(
                f"cannot start '{command}': {getattr(error, 'strerror', None) or error}"
            ) from None
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin and stdout and stderr, "all three are pipes"
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        try:
            for pipe in self._pipes():
                os.set_blocking(pipe.fileno(), False)
            self.hello = self.request({"op": "hello", "protocol": 2})
            self._numbered = self.hello.get("protocol") == 2
            if self.hello.get("ok") is False:
                refusal = _shown(_line_of(self.hello))
                raise self.ended(TargetFailure("protocol", f"it refused: {refusal}"))
            self.cuts = self.hello.get("cuts") is True
        except TargetFailure as failure:
            raise Unusable(f"hello: {failure.message}", failure.output) from None
        except BaseException:  # an interrupt: nobody has this target yet who could close it
            self._end()
            raise

    def request(self, message: Message) -> Message:
        """Return the response. Raises TargetFailure, after which the process is gone."""
        if self._numbered:
            return self._one_numbered(message)
        op = message["op"]
        patience = self.patience * (SLOW_FACTOR if op in SLOW else 1)
        try:
            self._nothing_unasked()
            self._unsent += _line_of(self._with_options(message))
            self._write()
            line = self._line(patience)
            if line is None:
                raise self._late(op, patience)
            return _unless_cut(self._opened(line), "cut" in message)
        except TargetFailure as failure:
            raise self.ended(failure) from None

    def rest(self) -> None:
        """Raise TargetFailure if it ends, or prints something, with nothing in flight."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._stdout, selectors.EVENT_READ)
            ready.select(MOMENT)
        try:
            self._nothing_unasked()
        except TargetFailure as failure:
            raise self.ended(failure) from None

    def call(self, number: int, message: Message) -> None:
        """Send a request of version 2 under this number, at once or together with the next one.

        Raises TargetFailure."""
        sent = {key: value for key, value in message.items() if key != "schedule"}
        due = min(awaited(message), len(self._ids))
        try:
            if not self._ids and not self._look():
                raise self._ended_before()  # which is not the fault of this request
            self._ids[self._number] = number
            if "cut" in message:
                self._may_be_cut.add(self._number)
            if message["op"] == "crash":
                self._crash = self._number
            self._unsent += _line_of({**self._with_options(sent), "id": self._number})
            self._number += 1
            if not held(message):
                self._write()
            if due:
                self._receive_lines(PAUSE, due)
        except TargetFailure as failure:
            raise self.ended(failure) from None

    def inside(self) -> list[Message]:
        return []

    def answered(self) -> bool:
        """Return whether an answer is there already."""
        if not self._lines:
            self._look()
        return self._lines > 0

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        """Return the next answer of version 2, with the number of its call; None after
        `seconds`.

        Raises TargetFailure, PowerCut."""
        try:
            line = self._line(seconds)
            if line is None:
                return None
            response = self._opened(line)
            number = response.pop("id", None)
            if type(number) is not int or number not in self._ids:
                raise TargetFailure(
                    "protocol",
                    f"its answer has the id {number!r}, which is not in flight: {_shown(line)}",
                )
            called = self._ids.pop(number)
            if number == self._crash:
                self._crash = None
            elif self._crash is not None and response.get("error") == POWER_CUT:
                return self.answer(seconds)  # the crash in flight ends all the others
            return called, _unless_cut(response, number in self._may_be_cut)
        except TargetFailure as failure:
            raise self.ended(failure) from None

    def cut(self) -> None:
        """Forget, after a power cut, what was in flight: it is never answered."""
        self._ids.clear()
        self._may_be_cut.clear()
        self._crash = None

    def _one_numbered(self, message: Message) -> Message:
        op = message["op"]
        patience = self.patience * (SLOW_FACTOR if op in SLOW else 1)
        self.call(0, message)
        answered = self.answer(patience)
        if answered is None:
            raise self.ended(self._late(op, patience))
        return answered[1]

    def hurry(self, hurried: bool) -> None:
        """Wait less long for answers, or as long as usual."""
        self.patience = self._usual_patience / (HURRIED if hurried else 1)

    def take_options(self, options: Mapping[str, Any]) -> None:
        """Send these options with each `create` from now on, as far as hello lists them."""
        knobs = self.hello.get("knobs", {})
        self._options = {name: value for name, value in options.items() if name in knobs}

    def _with_options(self, message: Message) -> Message:
        if message["op"] == "create" and self._options:
            return {**message, "options": self._options}
        return message

    def _late(self, op: str, patience: float) -> TargetFailure:
        part = f" (so far: {_shown(self._received)})" if self._received else ""
        return TargetFailure("hang", f"no answer to {op} within {patience:g} seconds{part}")

    def ended(self, failure: TargetFailure) -> TargetFailure:
        """End the process; return the failure with what it printed last."""
        self._end()
        failure.output = self.last_words()
        return failure

    def last_words(self) -> str:
        """Return what the process printed on stderr last."""
        if not self._stderr.closed:
            self._listen()
        return self._output.decode(errors="replace")

    def close(self) -> None:
        """Say bye, wait a second at most, and see to it that nothing is left running."""
        if self._process.poll() is None and not self._stdin.closed:
            try:
                bye = {"op": "bye", "id": self._number} if self._numbered else {"op": "bye"}
                self._stdin.write(_line_of(bye))
                self._stdin.close()
                self._process.wait(timeout=1)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self._end()

    def _pipes(self) -> list[Any]:
        return [self._stdin, self._stdout, self._stderr]

    def _line(self, seconds: float) -> bytes | None:
        """Return the next line; None after `seconds`."""
        if not self._receive_lines(seconds, 1):
            return None
        end = self._received.index(b"\n")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        self._lines -= 1
        return line

    def _receive_lines(self, seconds: float, lines: int) -> bool:
        """Look after all three pipes until `lines` lines are there; False after `seconds`."""
        deadline = time.monotonic() + seconds
        stdin, stdout, stderr = self._pipes()
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            ready.register(stderr, selectors.EVENT_READ)
            if self._unsent:
                ready.register(stdin, selectors.EVENT_WRITE)
            while self._lines < lines:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in ready.select(left):
                    if key.fileobj is stdin:
                        self._write()
                        if not self._unsent:
                            ready.unregister(stdin)
                    elif key.fileobj is stdout:
                        self._receive()
                    elif not self._listen():
                        ready.unregister(stderr)
        return True

    def _write(self) -> None:
        """Write what the pipe takes now."""
        while self._unsent:
            try:
                written = os.write(self._stdin.fileno(), bytes(self._unsent[:CHUNK]))
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._unsent.clear()  # its last words are still to come on stdout
                return
            del self._unsent[:written]

    def _look(self) -> bool:
        """Take in what has been printed; False at its end."""
        try:
            part = os.read(self._stdout.fileno(), CHUNK)
        except BlockingIOError:
            return True
        self._take_in(part)
        return bool(part)

    def _nothing_unasked(self) -> None:
        runs = self._look()
        if self._received:
            raise TargetFailure(
                "protocol", f"it printed what nobody asked for: {_shown(self._received)}"
            )
        if not runs:
            raise self._ended_before()

    def _ended_before(self) -> TargetFailure:
        when = "after its last answer" if self.hello else "before it answered"
        return TargetFailure("exit", f"{self._ending()} {when}")

    def _receive(self) -> None:
        try:
            part = os.read(self._stdout.fileno(), CHUNK)
        except BlockingIOError:
            return
        if not part:
            raise TargetFailure("exit", self._ending())
        self._take_in(part)
        if len(self._received) > LONGEST_ANSWER * (self._lines + 1):
            raise TargetFailure(
                "protocol",
                f"its answer is longer than {LONGEST_ANSWER >> 20} MiB: {_shown(self._received)}",
            )

    def _take_in(self, part: bytes) -> None:
        self._received += part
        self._lines += part.count(b"\n")

    def _listen(self) -> bool:
        """Take in stderr; False at its end."""
        try:
            part = os.read(self._stderr.fileno(), CHUNK)
        except BlockingIOError:
            return True
        self._output = (self._output + part)[-KEPT_OUTPUT:]
        return bool(part)

    def _ending(self) -> str:
        rest = f" after printing {_shown(self._received)}" if self._received else ""
        try:
            status = self._process.wait(timeout=0.3)
        except subprocess.TimeoutExpired:
            return f"it closed its stdout{rest}, and runs on"
        if status < 0:
            return f"it was killed by signal {-status} ({signal.Signals(-status).name}){rest}"
        return f"it exited with status {status}{rest}"

    def _opened(self, line: bytes) -> Message:
        """Return the answer in the line, data decoded, without the fields that are null."""
        try:
            message = DECODER.decode(line.decode())
        except (ValueError, RecursionError):
            raise TargetFailure(
                "protocol", f"it printed what is not JSON: {_shown(line)}"
            ) from None
        if not isinstance(message, dict):
            raise TargetFailure("protocol", f"it printed what is not a JSON object: {_shown(line)}")
        absent = [key for key, value in message.items() if value is None and key != "crash_profile"]
        for key in absent:
            del message[key]
        if "data" in message:
            try:
                message["data"] = binascii.a2b_base64(message["data"], strict_mode=True)
            except (binascii.Error, ValueError, TypeError, AttributeError) as error:
                raise TargetFailure("protocol", f"its data is not base64: {error}") from None
        return message

    def _end(self) -> None:
        """Kill the process and its children, reap it, and keep its last words."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        while not self._stderr.closed:
            before = len(self._output), self._output[-64:]
            if not self._listen() or (len(self._output), self._output[-64:]) == before:
                break
        for pipe in self._pipes():
            pipe.close()


def _unless_cut(response: Message, expected: bool) -> Message:
    """Return the answer. Raises PowerCut if it says that the power failed, as was asked for."""
    if response.get("error") != POWER_CUT:
        return response
    if not expected:
        raise TargetFailure("protocol", f"it answered {POWER_CUT} though the request has no `cut`")
    raise PowerCut


def _line_of(message: Message) -> bytes:
    """Return the request as a line, data in base64."""
    if "data" in message:
        data = binascii.b2a_base64(message["data"], newline=False).decode()
        message = {**message, "data": data}
    return json.dumps(message).encode() + b"\n"


def _shown(data: bytes | bytearray) -> str:
    text = data[:120].decode(errors="replace")
    return repr(text) + (f" ... ({len(data)} bytes)" if len(data) > 120 else "")
