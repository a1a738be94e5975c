"""An engine that is a block device and some commands, as a target: a hooks file in TOML says which.

docs/test-your-own-engine.md describes the file; examples are conformance/examples/*.toml. Commands run under
`sh -c` in a folder of their own, with what they may need in the environment. Data goes over NBD, or to a file.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

from conformance.contract.model import NAME
from conformance.media import file, nbd
from conformance.targets.base import Message, TargetFailure, Unusable

LARGEST_FILE = 1 << 20  # bytes
KEPT_OUTPUT = 8 << 10  # bytes of what a command printed
CONTROL = ("snapshot", "delete", "revert", "crash", "restart")
SCHEMA = Path(__file__).with_name("hooks.schema.json")

Hooks = dict[str, Any]


class BadHooks(Exception):
    """A file that is no hooks file. One line that starts with its name."""


def read(path: Path) -> Hooks:
    """The hooks in the file. Raises BadHooks for whatever is wrong with it."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadHooks(f"{path}: larger than {LARGEST_FILE >> 20} MiB")
        hooks = tomllib.loads(path.read_text(encoding="utf-8"))
        _schema()(hooks)
        for pattern in hooks.get("refusals", {}):
            re.compile(pattern)
    except OSError as error:
        raise BadHooks(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadHooks(f"{path}: not UTF-8 (byte {error.start + 1})") from None
    except RecursionError:
        raise BadHooks(f"{path}: nested too deeply") from None
    except re.error as error:
        raise BadHooks(
            f"{path}: refusals: {error.pattern!r} is no regular expression: {error.msg}"
        ) from None
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadHooks(f"{path}: {_complaint(error)}") from None
    except ValueError as error:  # such as tomllib's
        raise BadHooks(f"{path}: not TOML: {error}") from None
    commands = hooks["commands"]
    if "snapshot" in commands and "view" not in hooks:
        raise BadHooks(
            f"{path}: commands.snapshot, but nothing says where a snapshot is read: give view"
        )
    if "crash" in commands and "crash_profile" not in hooks:
        raise BadHooks(
            f"{path}: commands.crash, but crash_profile does not say what a power cut keeps"
        )
    return hooks


class Refused(Exception):
    """The request is refused: the code, then what was said."""


class HooksTarget:
    """The engine that the file describes. Raises BadHooks, Unusable."""

    def __init__(self, path: Path):
        self._hooks = read(path)
        if self._hooks["data"].startswith("nbd"):
            try:
                nbd.library()
            except nbd.Unavailable as error:
                raise Unusable(str(error)) from None
        self._block = self._hooks.get("block_size", 4096)
        self._seconds = self._hooks.get("seconds", 30)
        commands = self._hooks["commands"]
        able = [
            "flush",
            *(["unmap"] if self._hooks.get("unmap", True) else []),
            *(c for c in CONTROL if c in commands),
        ]
        self.hello: Message = {
            "ok": True,
            "name": self._hooks.get("name", path.stem),
            "version": self._hooks.get("version", ""),
            "block_size": self._block,
            "crash_profile": self._hooks.get("crash_profile"),
            "capabilities": able,
            "devices": 1,
            "tolerates": 0,
        }
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self._environment = {
            **os.environ,
            "DIR": str(self._folder),
            "HOOKS": str(path.resolve().parent),
            "BLOCK_SIZE": str(self._block),
        }
        self._devices: dict[str | None, Any] = {}  # view -> its open device
        self._size = 0  # bytes

    def request(self, message: Message) -> Message:
        op = message["op"]
        name = message.get("name", message.get("view"))
        if op == "create":
            self._size = message["blocks"] * self._block
            self._environment |= {"BLOCKS": str(message["blocks"]), "BYTES": str(self._size)}
        try:
            if name is not None and not NAME.fullmatch(name):
                raise Refused("bad-request", "no name of the contract")
            if op in ("create", *CONTROL) and op in self._hooks["commands"]:
                self._control(op, name)
                return {"ok": True}
            if op in ("read", "write") or op in self.hello["capabilities"]:
                return {"ok": True, **self._data(message)}
        except Refused as refused:
            return {"ok": False, "error": refused.args[0], "message": refused.args[1]}
        return {"ok": False, "error": "unsupported"}

    def close(self) -> None:
        try:
            self._let_go()
            if "stop" in self._hooks["commands"]:
                self._run("stop", None)
        except TargetFailure:
            pass  # it was judged by its answers
        shutil.rmtree(self._folder, ignore_errors=True)

    def connect(self) -> Any:
        """One more connection to the live disk. Raises what opening a device raises."""
        return self._connected(self._place(self._hooks["data"], None), True)

    def _control(self, op: str, name: str | None) -> None:
        """Run the command. Whoever has the data open lets go first: the command may stop the engine."""
        self._let_go()
        self._done(op, *self._run(op, name))

    def _done(self, command: str, status: int, output: str) -> None:
        """Raises Refused or TargetFailure unless the command did what it was to do."""
        if status == 0:
            return
        for pattern, code in self._hooks.get("refusals", {}).items():
            if re.search(pattern, output):
                raise Refused(code, output.strip()[-200:])
        last = (output.strip().splitlines() or ["it printed nothing"])[-1]
        raise TargetFailure(
            "exit",
            f"the command {command} ended with status {status}, and no pattern of refusals is in "
            f"what it printed: {last[:200]}",
            output,
        )

    def _data(self, message: Message) -> Message:
        op, at, view = message["op"], message.get("lba", 0) * self._block, message.get("view")
        length = len(message["data"]) if op == "write" else message.get("count", 0) * self._block
        beyond = at + length > self._size
        device = self._device(view)
        if beyond and isinstance(device, file.Device):
            raise Refused("out-of-range", "the kit says so itself: a file would grow")
        try:
            match op:
                case "write":
                    device.write(at, bytes(message["data"]))
                case "read":
                    return {"data": device.read(at, length)}
                case "unmap":
                    device.zero(at, length)
                case "flush":
                    device.flush()
        except TimeoutError as error:
            raise TargetFailure("hang", f"{op}: {error}") from None
        except (nbd.Refused, OSError) as error:
            if beyond:
                raise Refused("out-of-range", str(error)) from None
            raise TargetFailure("exit", f"{op}: {error}") from None
        return {}

    def _device(self, view: str | None) -> Any:
        """The live disk, or a snapshot, open; of those one at a time."""
        if view in self._devices:
            return self._devices[view]
        if view is not None:
            self._let_go({other for other in self._devices if other is not None})
        if view is not None and "open_view" in self._hooks["commands"]:
            self._done("open_view", *self._run("open_view", view))
        place = self._place(self._hooks["data" if view is None else "view"], view)
        try:
            self._devices[view] = self._connected(place, view is None)
        except TimeoutError as error:
            raise TargetFailure("hang", f"{place}: {error}") from None
        except (nbd.Refused, OSError) as error:
            if view is not None and isinstance(error, FileNotFoundError):
                raise Refused("no-such-snapshot", f"{place} does not exist") from None
            raise TargetFailure("exit", f"cannot open {place}: {error}") from None
        return self._devices[view]

    def _connected(self, place: str, writable: bool) -> Any:
        if place.startswith("nbd"):
            return nbd.Device(place, self._seconds)
        return file.Device(str(self._folder / place), writable)

    def _let_go(self, views: set[str | None] | None = None) -> None:
        """Close these views, or all that is open."""
        for view in list(self._devices) if views is None else views:
            self._devices.pop(view).close()
            if view is not None and "close_view" in self._hooks["commands"]:
                self._done("close_view", *self._run("close_view", view))

    def _place(self, template: str, name: str | None) -> str:
        """The URI or path, with $DIR and so on replaced."""
        values = self._environment | ({"NAME": name} if name is not None else {})
        return re.sub(r"\$(\w+)", lambda found: values.get(found[1], found[0]), template)

    def _run(self, command: str, name: str | None) -> tuple[int, str]:
        """The status of the command, and what it printed. It may leave processes behind; if it hangs all are killed."""
        environment = self._environment | ({"NAME": name} if name is not None else {})
        with tempfile.TemporaryFile() as output:  # no pipe: what runs on would keep it open
            process = subprocess.Popen(
                ["sh", "-c", self._hooks["commands"][command]],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                status = process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = None
            output.seek(max(0, output.seek(0, os.SEEK_END) - KEPT_OUTPUT))
            printed = output.read().decode(errors="replace")
        if status is None:
            raise TargetFailure(
                "hang",
                f"the command {command} did not end within {self._seconds:g} seconds",
                printed,
            )
        return status, printed


@cache
def _schema() -> Any:
    return fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _complaint(error: fastjsonschema.JsonSchemaValueException) -> str:
    where = error.name.removeprefix("data").removeprefix(".") or "the file"
    return f"{where} {error.message.removeprefix(error.name).strip()}"[:300]
