"""An engine that is a block device and some commands, as a target: a hooks file describes it.

Commands run under `sh -c` in a folder of their own, with what they may need in the environment.
Data goes over NBD (network block device), or to a file.

With `in_flight`, reads and writes overlap. A command runs alone unless the file names it in
`under_load`; several run at once if it says `commands_overlap`. `crash` runs under load, and cuts
commands. Over NBD requests still arrive on the connections that are open while it runs, until it
breaks them; a file is closed first.
"""

import errno
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from conformance.contract.model import NAME
from conformance.contract.trace import OVERLAPPING
from conformance.media import file, nbd
from conformance.media.block_device import BlockDevice
from conformance.targets.base import Message, TargetFailure, Unusable
from conformance.targets.hooks_file import read
from conformance.targets.pauses import PAUSE
from conformance.targets.threads import Done, Gate, Threads, Unanswered

KEPT_OUTPUT = 8 << 10  # bytes of what a command printed
HOLD = 0.005  # seconds that a request waits for the next call, which the driver sends at once
CONTROL = ("snapshot", "delete", "revert", "crash", "restart")


class _Refusal(Exception):
    """The request is refused: an error code of the contract, and what was said."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class HooksTarget:
    """The engine that a hooks file describes. Raises BadHooks, Unusable."""

    schedules = True  # the kit's pauses between calls

    def __init__(self, path: Path) -> None:
        self._hooks = read(path)
        self._over_nbd = self._hooks["data"].startswith("nbd")
        if self._over_nbd:
            try:
                nbd.library()
            except nbd.Unavailable as error:
                raise Unusable(str(error)) from None
        self._block = self._hooks.get("block_size", 4096)
        self._seconds = self._hooks.get("seconds", 30)
        self.hello: Message = self._hello(path)
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self._environment = {
            **os.environ,
            "DIR": str(self._folder),
            "HOOKS": str(path.resolve().parent),
            "BLOCK_SIZE": str(self._block),
        }
        self._devices: dict[str | None, BlockDevice] = {}  # view -> its open device
        self._size = 0  # bytes
        self._under_load = frozenset(self._hooks.get("under_load", ()))
        self._under_it = "power_off" in self._hooks["commands"]  # commands run as the power fails
        self._threads = Threads(
            self._carry_out,
            most=self.hello.get("in_flight", 1),
            pause=lambda: PAUSE + self._usual,  # a command may be in flight that long
            hold=lambda message: HOLD * (self._under_it or message["op"] not in CONTROL),
        )
        self._gate = Gate()
        self._commands = Gate()  # passed by requests that run commands
        self._opening = threading.Lock()
        self._usual = 0.0  # seconds that the last command about a snapshot took
        self._usual_end = 0.0  # seconds until the last crash had ended the server, or more
        self._running: set[int] = set()  # processes of commands that a crash may kill
        # Nothing is begun that would reach the disk which a crash leaves:
        self._crashing = False  # no connection is opened
        self._off = False  # no command is begun

    def _hello(self, path: Path) -> Message:
        unmap = ["unmap"] if self._hooks.get("unmap", True) else []
        fua = ["fua"] if self._hooks.get("fua", False) else []
        control = [op for op in CONTROL if op in self._hooks["commands"]]
        several = {
            "protocol": 2,
            "in_flight": self._hooks.get("in_flight", 1),
            "atomic": self._hooks.get("atomic", "block"),
        }
        return {
            "ok": True,
            "name": self._hooks.get("name", path.stem),
            "version": self._hooks.get("version", ""),
            "block_size": self._block,
            "crash_profile": self._hooks.get("crash_profile"),
            "capabilities": ["flush", *unmap, *fua, *control],
            "devices": 1,
            "tolerates": 0,
            **(several if "in_flight" in self._hooks else {}),
        }

    def request(self, message: Message) -> Message:
        """Return the answer. Raises TargetFailure."""
        op = message["op"]
        name = message.get("name", message.get("view"))
        if op == "create":
            self._size = message["blocks"] * self._block
            self._environment |= {"BLOCKS": str(message["blocks"]), "BYTES": str(self._size)}
        try:
            if name is not None and not NAME.fullmatch(name):
                raise _Refusal("bad-request", "the contract does not allow this name")
            if op in ("create", *CONTROL) and op in self._hooks["commands"]:
                if op == "crash" and "power_off" in self._hooks["commands"]:
                    self._control("power_off", None)
                self._control(op, name)
                return {"ok": True}
            if op in ("read", "write") or op in self.hello["capabilities"]:
                return {"ok": True, **self._data(message)}
        except _Refusal as refusal:
            return {"ok": False, "error": refusal.code, "message": str(refusal)}
        return {"ok": False, "error": "unsupported"}

    def call(self, message: Message, done: Done) -> None:
        """Start a request; `done` is called by its thread. What is sent alone is answered here."""
        if message["op"] in OVERLAPPING:
            self._threads.call(message, done)
            return
        done(self._cut() if message["op"] == "crash" else self.request(message))

    def _carry_out(self, message: Message) -> Message:
        """Answer a request while others are in flight. Raises Unanswered if a crash ends it."""
        op = message["op"]
        alone = op in CONTROL and op not in self._under_load
        try:
            with self._gate.alone() if alone else self._gate.together():
                if self._crashing:
                    time.sleep(random.random() * self._usual_end)
                if op in CONTROL or message.get("view") is not None:
                    several = op in CONTROL and self._hooks.get("commands_overlap", False)
                    with self._commands.together() if several else self._commands.alone():
                        if self._off:
                            raise Unanswered
                        answer = self.request(message)
                else:
                    if not self._crashing and self._commands.busy():
                        # Half meet the command somewhere in its middle, not at its start.
                        time.sleep(max(0.0, 2 * random.random() - 1) * self._usual)
                    answer = self.request(message)
                if self._crashing and not answer["ok"]:
                    raise Unanswered  # the server may have been away
                return answer
        except TargetFailure:
            if self._crashing:
                raise Unanswered from None
            raise

    def _cut(self) -> Message:
        """Return the answer to a crash that comes while requests are in flight.

        A command that runs under load is cut at any moment: killed, or the power fails under it. No
        connection is opened and no command begins from then on, until the crash has ended. What is
        answered before the server ends, counts. A file is closed first. Raises TargetFailure."""
        command, status, output = "power_off", 0, ""
        if not self._under_it and self._threads.any_of(self._under_load):
            time.sleep(random.random() * self._usual)
        self._crashing = True
        self._off = not self._under_it
        self._threads.release()
        with self._opening:
            pass  # who is opening the device goes on
        started = time.monotonic()
        if self._under_it:
            status, output = self._run(command, None)
            self._off = True
        end = time.monotonic()
        self._kill_commands()
        if not self._over_nbd:
            self._wait("when the command crash was due")
            self._close_devices()
        with self._commands.alone():
            if status == 0:
                command = "crash"
                status, output = self._run(command, None)
        if self._over_nbd:
            self._usual_end = (end if self._under_it else time.monotonic()) - started
        self._wait("after the command crash a connection stays open, and on it", output)
        self._crashing = self._off = False
        self._close_devices()
        try:
            self._check(command, status, output)
        except _Refusal as refusal:
            return {"ok": False, "error": refusal.code, "message": str(refusal)}
        return {"ok": True}

    def _wait(self, when: str, output: str = "") -> None:
        """Return when nothing is in flight any more. Raises TargetFailure."""
        try:
            self._threads.wait()
        except TimeoutError as error:
            raise TargetFailure("hang", f"{when} {error}", output) from None

    def _kill_commands(self) -> None:
        """Kill the commands that run under load."""
        for process in list(self._running):
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)

    def close(self) -> None:
        """Close the devices, run the command `stop`, and remove the folder."""
        self._threads.close()
        try:
            self._threads.wait()
            self._close_devices()
            if "stop" in self._hooks["commands"]:
                self._run("stop", None)
        except (TargetFailure, TimeoutError):
            pass  # it was judged by its answers
        shutil.rmtree(self._folder, ignore_errors=True)

    def connect(self) -> BlockDevice:
        """Return one more connection to the live disk. Raises what opening a device raises."""
        return self._connected(self._place(self._hooks["data"], None), True, 1)

    def _control(self, op: str, name: str | None) -> None:
        """Run the command. The devices are closed first: the command may stop the engine.

        The live one stays open if the command may run under load."""
        keep = {None} if op in self._under_load else set()
        self._close_devices(self._devices.keys() - keep)
        self._check(op, *self._run(op, name))

    def _check(self, command: str, status: int, output: str) -> None:
        """Raise _Refusal or TargetFailure unless the command ended with status 0."""
        if status == 0:
            return
        self._raise_refusal(output)
        last = (output.strip().splitlines() or ["it printed nothing"])[-1]
        raise TargetFailure(
            "exit",
            f"the command {command} ended with status {status}, and no pattern of refusals is in "
            f"what it printed: {last[:200]}",
            output,
        )

    def _raise_refusal(self, said: str) -> None:
        """Raise _Refusal if a pattern of the file is in what a command or the NBD server said."""
        for pattern, code in self._hooks.get("refusals", {}).items():
            if re.search(pattern, said):
                raise _Refusal(code, said.strip()[-200:])

    def _data(self, message: Message) -> Message:
        op, at, view = message["op"], message.get("lba", 0) * self._block, message.get("view")
        length = len(message["data"]) if op == "write" else message.get("count", 0) * self._block
        beyond = at + length > self._size
        device = self._device(view)
        if beyond and isinstance(device, file.FileDevice):
            raise _Refusal("out-of-range", "the kit says so itself: a file would grow")
        try:
            match op:
                case "write":
                    device.write(at, bytes(message["data"]), message.get("fua", False))
                case "read":
                    return {"data": device.read(at, length)}
                case "unmap":
                    device.zero(at, length)
                case "flush":
                    device.flush()
        except TimeoutError as error:
            raise TargetFailure("hang", f"{op}: {error}") from None
        except (nbd.NbdError, OSError) as error:
            if beyond:
                raise _Refusal("out-of-range", str(error)) from None
            self._raise_refusal(str(error))
            if error.errno == errno.ENOSPC and op in ("write", "unmap"):
                raise _Refusal("no-space", str(error)) from None
            raise TargetFailure("exit", f"{op}: {error}") from None
        return {}

    def _device(self, view: str | None) -> BlockDevice:
        """Return the live disk, or a snapshot, open; one snapshot at a time.

        Raises _Refusal `no-such-snapshot` if the server, or the file system, knows no such name."""
        with self._opening:
            if self._crashing and view not in self._devices:
                raise Unanswered
            return self._opened(view)

    def _opened(self, view: str | None) -> BlockDevice:
        if view in self._devices:
            return self._devices[view]
        if view is not None:
            self._close_devices({other for other in self._devices if other is not None})
        if view is not None and "open_view" in self._hooks["commands"]:
            self._check("open_view", *self._run("open_view", view))
        place = self._place(self._hooks["data" if view is None else "view"], view)
        try:
            self._devices[view] = self._connected(place, view is None)
        except TimeoutError as error:
            raise TargetFailure("hang", f"{place}: {error}") from None
        except (nbd.NbdError, OSError) as error:
            if view is not None:
                self._raise_refusal(str(error))
                if error.errno == errno.ENOENT:
                    raise _Refusal("no-such-snapshot", f"{place}: {error}") from None
            reason = error.strerror if isinstance(error, OSError) else ""
            raise TargetFailure("exit", f"cannot open {place}: {reason or error}") from None
        return self._devices[view]

    def _connected(self, place: str, writable: bool, most: int | None = None) -> BlockDevice:
        """Return the device; by at most `most` connections, if it is live and its server allows
        it.
        """
        if place.startswith("nbd"):
            usual = self._hooks.get("connections", nbd.CONNECTIONS)
            alone = not writable or self.hello.get("in_flight", 1) == 1
            return nbd.Connections(place, self._seconds, most or (1 if alone else usual))
        return file.FileDevice(str(self._folder / place), writable)

    def _close_devices(self, views: set[str | None] | None = None) -> None:
        """Close these views, or all that are open."""
        for view in list(self._devices) if views is None else views:
            device = self._devices.pop(view, None)
            if device is not None:
                device.close()
            if device is not None and view is not None and "close_view" in self._hooks["commands"]:
                self._check("close_view", *self._run("close_view", view))

    def _place(self, template: str, name: str | None) -> str:
        """Return the URI or path, with $DIR and so on replaced."""
        values = self._environment | ({"NAME": name} if name is not None else {})
        return re.sub(r"\$(\w+)", lambda found: values.get(found[1], found[0]), template)

    def _run(self, command: str, name: str | None) -> tuple[int, str]:
        """Run a command; return its status, and what it printed. It may leave processes behind.

        Raises TargetFailure `hang` after the time limit; all its processes are killed then."""
        environment = self._environment | ({"NAME": name} if name is not None else {})
        with tempfile.TemporaryFile() as output:  # a pipe would stay open as long as a server runs
            process = subprocess.Popen(
                ["sh", "-c", self._hooks["commands"][command]],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            status: int | None
            started = time.monotonic()
            if command in self._under_load:
                self._running.add(process.pid)
                if self._off:
                    self._kill_commands()
            try:
                status = process.wait(self._seconds)
                if status == 0 and command in ("snapshot", "delete", "revert"):
                    self._usual = time.monotonic() - started
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = None
            self._running.discard(process.pid)
            output.seek(max(0, output.seek(0, os.SEEK_END) - KEPT_OUTPUT))
            printed = output.read().decode(errors="replace")
        if status is None:
            raise TargetFailure(
                "hang",
                f"the command {command} did not end within {self._seconds:g} seconds",
                printed,
            )
        return status, printed
