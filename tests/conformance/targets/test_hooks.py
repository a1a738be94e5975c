"""Hooks files: engines that are a device and commands, and mistakes in files and commands.

It has more than 400 lines because all tests share the small engines that hooks files describe.
"""

import errno
import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import targets
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.cli import main
from conformance.judging.oracles import named
from conformance.media import nbd
from conformance.targets import hooks_file
from conformance.targets.base import TargetFailure
from conformance.targets.hooks import HooksTarget
from conformance.targets.threads import Outcome
from support.in_flight import several

EXAMPLES = Path(hooks_file.__file__).parents[1] / "examples"
MODEL = {"model": named("model")}
COPIES = (EXAMPLES / "file_copies.toml").read_text()


def run(path: Path | str, count: int = 10, crashes: bool = True) -> Campaign:
    return campaign(
        targets.resolve(str(path)), count=count, ops=20, seed=1, oracles=MODEL, crashes=crashes
    )


def variant(folder: Path, old: str, new: str) -> Path:
    assert old in COPIES
    path = folder / "variant.toml"
    path.write_text(COPIES.replace(old, new))
    return path


def test_copies_of_a_file_keep_the_contract() -> None:
    result = run(EXAMPLES / "file_copies.toml")
    assert result.verdict == "pass", result.failures or result.reason
    assert result.skipped == ["clean", "crash", "device", "fua", "scrub"]


NBD = """
name = "exports"
data = "nbd+unix:///live?socket=none"
view = "nbd+unix:///$NAME?socket=none"
[commands]
create = "true"
snapshot = "true"
[refusals]
"snapshot store is offline" = "data-lost"
"""


class Exports:
    """An NBD server with the one export `live`: it is full, and says so as servers do."""

    size, multi_conn = 4096, False

    said = ("server has no export named 'missing': No such file or directory", errno.ENOENT)

    def __init__(self, uri: str, patience: float) -> None:
        if "/live?" not in uri:
            raise nbd.NbdError(*self.said)

    def read(self, offset: int, length: int) -> bytes:
        return bytes(length)

    def write(self, offset: int, data: bytes, durable: bool = False) -> None:
        raise nbd.NbdError("command failed: No space left on device", errno.ENOSPC)

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HooksTarget]:
    monkeypatch.setattr(nbd, "library", lambda: None)
    monkeypatch.setattr(nbd, "NbdDevice", Exports)
    path = tmp_path / "exports.toml"
    path.write_text(NBD)
    target = HooksTarget(path)
    assert target.request({"op": "create", "blocks": 4}) == {"ok": True}
    yield target
    target.close()


def test_a_missing_export_is_a_missing_snapshot(
    exports: HooksTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = {"op": "read", "lba": 0, "count": 1}
    assert exports.request(read)["ok"]
    answer = exports.request({**read, "view": "missing"})
    assert answer["error"] == "no-such-snapshot" and "no export named" in answer["message"]
    monkeypatch.setattr(Exports, "said", ("the snapshot store is offline", errno.EIO))
    assert exports.request({**read, "view": "missing"})["error"] == "data-lost", "a pattern fits"
    monkeypatch.setattr(Exports, "said", ("connection reset", errno.ECONNRESET))
    with pytest.raises(TargetFailure, match="connection reset"):
        exports.request({**read, "view": "missing"})


def test_a_full_device_is_no_space(exports: HooksTarget) -> None:
    write = {"op": "write", "lba": 0, "data": bytes(4096)}
    assert exports.request(write)["error"] == "no-space"
    assert exports.request({**write, "lba": 4})["error"] == "out-of-range"


def test_the_doctor_reads_a_snapshot_that_does_not_exist(tmp_path: Path) -> None:
    sound = CliRunner().invoke(main, ["doctor", "--target", str(EXAMPLES / "file_copies.toml")])
    assert "ok            refuses to read a snapshot that does not exist" in sound.output
    wrong = variant(tmp_path, 'view = "$NAME.copy"', 'view = "disk"')
    result = CliRunner().invoke(main, ["doctor", "--target", str(wrong)])
    assert result.exit_code == 1
    assert "WRONG         refuses to read a snapshot that does not exist" in result.output


def test_a_wrong_hook_is_found(tmp_path: Path) -> None:
    result = run(variant(tmp_path, 'cp ./$NAME.copy disk"', 'ls ./$NAME.copy"'), count=30)
    assert result.verdict == "fail" and result.failures[0].verdict.kind in (
        "stale",
        "zeroed",
        "resurrected",
    )


@pytest.mark.parametrize(
    "old, new, kind, says",
    [
        (
            '"rm ./$NAME.copy"',
            '"echo out of paper; exit 5"',
            "exit",
            "the command delete ended with status 5",
        ),
        (
            '"cp ./$NAME.copy disk"',
            '"sleep 60"',
            "hang",
            "the command revert did not end within 3 seconds",
        ),
        (
            '"sync -d disk"',
            '"sleep 60 & echo started"',
            None,
            "",
        ),  # what runs on in the background holds nobody up
        ('data = "disk"', 'data = "elsewhere"', "exit", "cannot open elsewhere: No such file"),
        ('"sync -d disk"', '"no-such-command-at-all"', "exit", "status 127"),
    ],
)
def test_hooks_that_fail_or_hang(
    tmp_path: Path, old: str, new: str, kind: str | None, says: str
) -> None:
    path = variant(tmp_path, old, new)
    path.write_text("seconds = 3\n" + path.read_text())
    started = time.monotonic()
    result = run(path, count=20)
    assert time.monotonic() - started < 60
    if kind is None:
        assert result.verdict == "pass", result.failures
        return
    assert result.verdict == "fail"
    verdict = result.failures[0].verdict
    assert verdict.kind == kind and says in verdict.actual, verdict


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "the file lacks commands, data"),
        ("data = 3\n[commands]\ncreate = 'true'\n", "data must be string"),
        ("data = 'x'\n[commands]\n", "commands lacks create"),
        ("data = 'x'\ndate = 'y'\n[commands]\ncreate = 'true'\n", "has unknown keys: date"),
        ("data = 'x'\n[commands]\ncreate = 'a'\nmake = 'b'\n", "commands has unknown keys: make"),
        ("data = 'x'\n[commands]\ncreate = 'true'\nsnapshot = 'true'\n", "give view"),
        ("data = 'x'\n[commands]\ncreate = 'true'\ncrash = 'true'\n", "crash_profile"),
        ("data = 'x'\nblock_size = 100\n[commands]\ncreate = 'true'\n", "block_size"),
        (
            "data = 'x'\nblock_size = 1000000000000000000000000\n[commands]\ncreate = 'true'\n",
            "block_size",
        ),
        (
            "data = 'x'\n[commands]\ncreate = 'true'\n[refusals]\n'(' = 'no-space'\n",
            "regular expression",
        ),
        (
            "data = 'x'\n[commands]\ncreate = 'true'\n[refusals]\n'a' = 'moon'\n",
            "refusals.a must be one of",
        ),
        ("data = \n", "not TOML"),
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("#" * (2 << 20), "larger than 1 MiB"),
    ],
)
def test_a_bad_file_is_one_line_and_status_two(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    result = CliRunner().invoke(main, ["run", "--target", str(path)])
    assert result.exit_code == 2 and "Traceback" not in result.output
    with pytest.raises(hooks_file.BadHooks, match=str(path)) as error:
        hooks_file.read(path)
    message = str(error.value)
    assert says in message, message
    assert "\n" not in message and len(message) < 400


def test_a_missing_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["run", "--target", str(tmp_path / "none.toml")])
    assert result.exit_code == 2 and "No such file" in result.output


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.tuples(st.integers(0, len(COPIES)), st.integers(0, 40), st.binary(max_size=12)).map(
            lambda edit: COPIES.encode()[: edit[0]] + edit[2] + COPIES.encode()[edit[0] + edit[1] :]
        ),
    )
)
def test_any_file_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.toml"
    path.write_bytes(content)
    try:
        read = hooks_file.read(path)
    except hooks_file.BadHooks as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
    else:
        assert read["commands"]["create"] and read["data"]


SEVERAL = 'view = "$NAME.copy"\nin_flight = 8\n'
SLOW_COPY = "head -c 512 disk >./$NAME.copy; sleep 0.1; tail -c +513 disk >>./$NAME.copy"


def test_reads_and_writes_overlap_and_commands_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "several.toml"
    path.write_text(
        COPIES.replace('view = "$NAME.copy"', SEVERAL).replace("cp disk ./$NAME.copy", SLOW_COPY)
    )
    seen = several(str(path), 8, ops=30)
    assert not seen.failures, seen.words
    assert seen.overlapping == 8


def test_a_copy_that_is_not_atomic_is_found_under_load(tmp_path: Path) -> None:
    path = tmp_path / "torn.toml"
    text = COPIES.replace('view = "$NAME.copy"', SEVERAL + 'under_load = ["snapshot"]')
    path.write_text(text.replace("cp disk ./$NAME.copy", SLOW_COPY))
    seen = several(str(path), 400, ops=200)  # about one trace in eight: it is a race of processes
    # Now and then the copy has half of a block, since it is read while the block is written.
    assert seen.failures and seen.failures[0][1].kind in ("no-order", "garbage")


UNDER_LOAD = """
name = "killed"
data = "nbd+unix:///live?socket=none"
view = "nbd+unix:///$NAME?socket=none"
in_flight = 8
crash_profile = "prefix"
under_load = ["snapshot"]
[commands]
create = "touch $HOOKS/log"
snapshot = "echo begun >>$HOOKS/log; sleep 0.3; echo snapshot >>$HOOKS/log"
crash = "sleep 0.3; echo crash >>$HOOKS/log"
"""
POWER_OFF = UNDER_LOAD + 'power_off = "sleep 0.3; echo off >>$HOOKS/log"'
WRITE = {"op": "write", "lba": 0, "data": bytes(4096)}
HELD = {**WRITE, "schedule": 0}


class Loaded:
    """A target whose connections break when its log says that it crashed."""

    def __init__(self, folder: Path, hooks: str, monkeypatch: pytest.MonkeyPatch) -> None:
        log = self._log = folder / "log"

        class Server(Exports):
            def __init__(self, uri: str, patience: float) -> None:
                super().__init__(uri, patience)
                self.begun = log.read_text().count("crash")

            def write(self, offset: int, data: bytes, durable: bool = False) -> None:
                if log.read_text().count("crash") > self.begun:
                    raise nbd.NbdError("the connection broke", errno.ECONNRESET)
                with log.open("a") as file:
                    file.write("write\n")

        monkeypatch.setattr(nbd, "library", lambda: None)
        monkeypatch.setattr(nbd, "NbdDevice", Server)
        monkeypatch.setattr(random, "random", lambda: 0.5)
        (folder / "loaded.toml").write_text(hooks)
        self.target = HooksTarget(folder / "loaded.toml")
        assert self.target.request({"op": "create", "blocks": 4})["ok"]
        assert self.target.request(WRITE)["ok"]
        self.answers: list[tuple[str, Outcome]] = []

    @property
    def log(self) -> list[str]:
        return self._log.read_text().split()[1:]

    def call(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.target.call(message, partial(self._done, message["op"]))

    def _done(self, op: str, answer: Outcome) -> None:
        self.answers.append((op, answer))

    def wait(self, count: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.answers) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        self.target.close()
        assert self.answers[count - 1 :] and all(
            answer == {"ok": True} for _, answer in self.answers
        )


def snapshots(names: str) -> list[dict[str, Any]]:
    return [{"op": "snapshot", "name": name} for name in names]


def test_nothing_reaches_the_disk_that_a_crash_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a command, or to be sent, when the crash comes, is not begun after it."""
    loaded = Loaded(tmp_path, UNDER_LOAD, monkeypatch)
    loaded.target._usual_end = 2.0  # so that the write that is held comes too late
    loaded.call(*snapshots("abcd"), HELD, {"op": "crash"}, WRITE)
    loaded.wait(2)
    assert loaded.answers[-2:] == [("crash", {"ok": True}), ("write", {"ok": True})]
    assert loaded.log[-2:] == ["crash", "write"]
    assert "snapshot" not in loaded.log, "the command in flight is killed, the others do not begin"


def test_requests_arrive_while_the_server_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Loaded(tmp_path, UNDER_LOAD, monkeypatch)
    loaded.target._usual_end = 0.3
    loaded.call(HELD, {"op": "crash"})
    loaded.wait(2)
    assert loaded.log == ["write", "crash"]
    assert [op for op, _ in loaded.answers] == ["write", "crash"], "its answer counts"


def test_a_command_is_in_flight_when_the_power_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Loaded(tmp_path, POWER_OFF.replace("; sleep 0.3;", "; sleep 20;"), monkeypatch)
    held = {**snapshots("a")[0], "schedule": 0}
    loaded.call(held, {"op": "crash"})
    loaded.wait(1)
    assert loaded.log == ["begun", "off", "crash"], "it is killed once the power is off"


def test_a_command_on_a_file_is_cut_by_a_crash(tmp_path: Path) -> None:
    """Copying is not atomic, and a part of a copy is a snapshot to who finds it."""
    crash = 'under_load = ["snapshot"]\ncrash_profile = "ack"'
    path = tmp_path / "torn.toml"
    text = COPIES.replace('view = "$NAME.copy"', SEVERAL + crash)
    text = text.replace("[refusals]", 'crash = "true"\n[refusals]')
    path.write_text(
        text.replace("cp disk ./$NAME.copy", "head -c 1 disk >$NAME.copy; sleep 1; touch whole")
    )
    target = HooksTarget(path)
    target.request({"op": "create", "blocks": 1})
    target._usual = 0.5
    answers: list[Outcome] = []
    target.call({"op": "snapshot", "name": "a"}, answers.append)
    while not (target._folder / "a.copy").exists():
        time.sleep(0.01)
    target.call({"op": "crash"}, answers.append)
    assert answers == [{"ok": True}], "the snapshot is not answered"
    assert not (target._folder / "whole").exists(), "nor does it go on"
    target.close()


@pytest.mark.parametrize("together", [False, True])
def test_commands_overlap_if_the_file_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    text = UNDER_LOAD.replace("[commands]", "commands_overlap = true\n[commands]")
    loaded = Loaded(tmp_path, text if together else UNDER_LOAD, monkeypatch)
    loaded.call(*snapshots("ab"))
    loaded.wait(2)
    assert (loaded.log[:2] == ["begun", "begun"]) == together


def test_a_connection_that_has_ended_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    device = nbd.NbdDevice.__new__(nbd.NbdDevice)
    device._nbd, device._patience = cast(Any, SimpleNamespace(nbd_aio_flush=None)), 1.0
    device._changed, device._ended = threading.Condition(), False
    device.end()
    with pytest.raises(nbd.NbdError, match="has ended"):
        device.flush()
