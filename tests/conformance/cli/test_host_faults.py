"""What the host refuses the kit: one line, a documented status, no wrong verdict, nothing lost."""

import errno
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.campaign import random_campaign
from conformance.cli import main
from conformance.contract import trace as traces
from conformance.selftest.corpus import SCRIPT
from refmodel.core.whole_file import write_whole
from support.host_faults import refusing

FAULTY = f"exec:python3 {SCRIPT} unmap-ignored"
PASSING = ("run", "--target", "model:ack", "--traces", 5, "--seed", 1, "--jobs", 1)
FAILING = ("run", "--target", FAULTY, "--traces", 60, "--seed", 1, "--jobs", 1)
# Root without the right to override permissions: the folder of the project may be root's alone.
AS_OTHERS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def process(
    *words: object,
    limit: tuple[int, int] | None = None,
    prefix: tuple[str, ...] = (),
    **how: Any,
) -> tuple[int, str]:
    """Run the kit as a process; its status, and what it printed."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "conformance", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=(lambda: resource.setrlimit(limit[0], (limit[1],) * 2)) if limit else None,
        **how,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_report_that_cannot_be_written_hides_no_verdict() -> None:
    passed, failed = (call(*words, "--json", "/dev/full") for words in (PASSING, FAILING))
    for result, status, verdict in ((passed, 3, "pass "), (failed, 1, "fail ")):
        assert result.exit_code == status and result.stdout.startswith(verdict), result.output
        line = "the report is not written: /dev/full: No space left on device"
        assert result.output.rstrip().endswith(line)
    (kept,) = Path(".conformance/failures").glob("*/*.jsonl")
    assert traces.read(kept).events


def test_a_matrix_that_cannot_be_written_hides_no_verdict() -> None:
    for bug, status, found in (
        ("overwrite-drops-shared", 3, "1 of 1"),
        ("replayed-not-in-increment", 1, "0 of 1"),
    ):
        result = call("selftest", bug, "--traces", 1, "--jobs", 1, "--json", "/dev/full")
        assert result.exit_code == status and f"{found} planted bugs found" in result.output
        line = "the matrix is not written: /dev/full: No space left on device\n"
        assert result.output.endswith(line), result.output


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_whole(file, "old")
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_whole(file, "new" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(file)
    assert [path.name for path in tmp_path.iterdir()] == ["f"] and file.read_text() == "old"


def test_a_kept_failure_that_cannot_be_read_now_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert call(*FAILING).exit_code == 1
    (kept,) = Path(".conformance/failures").glob("*/*.jsonl")
    right: Callable[..., Any] = Path.open

    def wrong(path: Path, mode: str = "r", **how: Any) -> Any:
        if path.name == kept.name and mode == "rb":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return right(path, mode, **how)

    before = kept.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", wrong)
        result = call(*FAILING[:4], 1, *FAILING[5:])
    assert f"a kept failure is not run: {kept}: Input/output error" in result.output
    assert kept.read_text() == before


@pytest.mark.parametrize("target", ["log-structured", "in-place-raid5", "redo-vmfs"])
@pytest.mark.parametrize("call_", ["pwrite", "posix_fallocate", "open"])
def test_a_host_that_refuses_the_engine_in_process_is_no_failure(target: str, call_: str) -> None:
    choose, number = random.Random(f"{target} {call_}"), errno.ENOSPC
    often = {"pwrite": 0.002, "posix_fallocate": 0.05, "open": 0.02}[call_]
    with refusing(call_, number, lambda name: choose.random() < often):
        for seed in range(6):
            words = ("--traces", 10, "--seed", seed, "--jobs", 1)
            result = call("run", "--target", f"refmodel:{target}", *words)
            assert result.exit_code in (0, 3), result.output
            if result.exit_code == 3:
                assert "the host refuses" in result.output
                return
    pytest.fail("no call was refused")


def test_too_many_open_files_and_too_large_files() -> None:
    words = ("run", "--target", "refmodel", "--traces", 6, "--seed", 1, "--jobs", 1)
    for limit, text in (
        ((resource.RLIMIT_NOFILE, 9), "Too many open files"),
        ((resource.RLIMIT_FSIZE, 8192), "File too large"),
    ):
        status, output = process(*words, limit=limit)
        assert status == 3 and text in output and "Traceback" not in output, output


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    prefix = AS_OTHERS if os.geteuid() == 0 else ()
    status, output = process(*PASSING, "--report", "out", prefix=prefix)
    assert status == 2 and "out cannot be written: no permission in" in output, output
    assert "pass" not in output, "it is told before the run"
    status, output = process(*FAILING, prefix=prefix)
    assert status == 1 and "failures are not kept: .conformance" in output, output


@pytest.mark.parametrize(
    "error, line",
    [
        (MemoryError(), "memory"),
        (OSError(errno.EMFILE, "Too many open files", "x"), "x: Too many open files"),
    ],
)
def test_what_is_refused_elsewhere_is_one_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(random_campaign, "campaign", refuse)
    result = call(*PASSING)
    assert (result.exit_code, result.output) == (3, f"inconclusive: the host refuses {line}\n")


def test_the_status_is_the_verdict_though_nobody_reads() -> None:
    read, write = os.pipe()
    os.close(read)
    Path("empty.jsonl").touch()
    for words, status in (
        (PASSING, 0),
        (FAILING, 1),
        (("check", "empty.jsonl"), 3),
        (("doctor", "--target", "model"), 0),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "conformance", *map(str, words)],
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=120,
        )
        assert done.returncode == status and b"Traceback" not in done.stderr, done.stderr
    os.close(write)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["targets"]])
def test_help_that_cannot_be_written_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "conformance", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    line = "inconclusive: the host refuses the output or a file: No space left on device\n"
    assert (done.returncode, done.stderr) == (3, line)
