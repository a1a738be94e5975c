"""The command line: exit statuses, files, and one line for a mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli import main
from conformance.selftest.corpus import SCRIPT
from conformance.targets import resolve
from refmodel import __version__

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "conformance" / "examples" / "dict_disk.py"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_run_leaves_everything_behind(tmp_path: Path) -> None:
    result = call(
        "run",
        "--target",
        f"exec:python3 {EXAMPLE}",
        "--traces",
        5,
        "--seed",
        1,
        "--report",
        tmp_path / "out",
        "--json",
        tmp_path / "r.json",
        "--junit",
        tmp_path / "r.xml",
    )
    assert result.exit_code == 0, result.output
    assert "pass" in result.output and "never" in result.output
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["verdict"] == "pass" and found["traces"] == 5
    assert "<testsuite" in (tmp_path / "r.xml").read_text()
    assert "<svg" not in (tmp_path / "out" / "report.html").read_text(), (
        "nothing is wrong, so there is no picture"
    )
    assert (tmp_path / "out" / "report.md").read_text().startswith("# exec:")
    files = sorted((tmp_path / "out" / "traces").glob("*.jsonl"))
    assert len(files) == 5
    assert call("check", tmp_path / "out" / "traces").exit_code == 0
    replayed = call("replay", files[0], "--target", f"exec:python3 {EXAMPLE}")
    assert replayed.exit_code == 0 and "create" in replayed.output


def test_a_failure_can_be_replayed(tmp_path: Path) -> None:
    faulty = f"exec:python3 {SCRIPT} unmap-ignored"
    result = call("run", "--target", faulty, "--traces", 60, "--seed", 1, "--report", tmp_path)
    assert result.exit_code == 1 and "resurrected" in result.output and "--target" in result.output
    failing = next(tmp_path.glob("traces/failure-*.jsonl"))
    assert call("replay", failing, "--target", faulty).exit_code == 1
    assert call("replay", failing, "--target", "model:ack").exit_code == 0
    assert call("check", failing).exit_code == 1


def test_the_summary_says_that_nothing_certified_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTIFIED_ORACLE", "nowhere")
    result = call("run", "--target", "model", "--traces", 2, "--seed", 1)
    assert "judge: model (optional: the certified checker, which `make proofs` builds)" in " ".join(
        result.output.split()
    )


def test_inconclusive_is_three(tmp_path: Path) -> None:
    assert call("run", "--target", "exec:/nonexistent/engine").exit_code == 3
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    result = call("check", bad)
    assert result.exit_code == 3 and f"{bad}:1:" in result.output
    assert call("replay", bad, "--target", "model").exit_code == 3


TARGET = """
import json, sys
HELLO = {"ok": True, "name": "declares", "block_size": 512, "crash_profile": None, "tolerates": 1}
for line in sys.stdin:
    request = json.loads(line)
    answer = HELLO | {"capabilities": sys.argv[1:]} if request["op"] == "hello" else {"ok": True}
    if request["op"] == "create":
        disk = bytearray(512 * request["blocks"])
    elif request["op"] in ("read", "write"):
        import base64
        at = 512 * request["lba"]
        data = base64.b64decode(request.get("data", ""))
        end = at + (len(data) or 512 * request["count"])
        if end > len(disk):
            answer = {"ok": False, "error": "out-of-range"}
        elif data:
            disk[at:end] = data
        else:
            answer["data"] = base64.b64encode(disk[at:end]).decode()
    print(json.dumps(answer), flush=True)
"""


def test_what_cannot_be_asked_for_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "declares.py").write_text(TARGET)
    target = f"exec:{sys.executable} declares.py device crash snapshots"
    result = call("run", "--target", target, "--traces", 3, "--seed", 1, "--json", "r.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "r.json").read_text())
    assert {"device", "crash", "snapshots", "unmap"} <= set(found["skipped"])
    assert "without clean, crash, delete" in found["worth"]["worth"]
    result = call("doctor", "--target", target)
    for line in ("device        will be", "crash         will be", "snapshots     will be"):
        assert line in result.output


def test_operations_that_are_not_declared_are_not_replayed(tmp_path: Path) -> None:
    call("run", "--target", "model", "--traces", 1, "--seed", 1, "--report", "out")
    (tmp_path / "declares.py").write_text(TARGET)
    where = f"exec:{sys.executable} declares.py"
    result = call("replay", "out/traces/00000.jsonl", "--target", where)
    assert result.exit_code == 3 and "which the target does not declare" in result.output


def test_a_report_has_no_traces_of_an_earlier_one(tmp_path: Path) -> None:
    traces = tmp_path / "out" / "traces"
    traces.mkdir(parents=True)
    for name in ("failure-00007.jsonl", "00007.jsonl", "mine.jsonl"):
        (traces / name).write_text("{}")
    call("run", "--target", "model", "--traces", 1, "--seed", 1, "--report", "out")
    assert {path.name for path in traces.iterdir()} == {"00000.jsonl", "mine.jsonl"}


@pytest.mark.parametrize(
    "words, says",
    [
        (["--target", "nope"], "there is no target 'nope' (see conformance targets)\n"),
        (["--target", "exec:"], "names no command"),
        (["--target", 'exec:"unclosed'], "cannot be split into words"),
        (["--target", "model:fast"], "no profile 'fast'"),
        (["--target", "python:no_such_module:f"], "no_such_module"),
        (["--target", "python:json:nothing"], "nothing"),
        (["--target", "refmodel:fast"], "there is no engine 'fast'"),
        (["--target", "refmodel:plant=x"], "there is no planted bug 'x'"),
        (["--target", "refmodel:faults=x"], "there is no fault 'x'"),
        (["--target", "refmodel:folder=x"], "no option folder"),
        (["--target", "refmodel:memory=-5"], "memory is at least 0 bytes"),
        (["--target", "refmodel:fanout=4,fanout=8"], "the option fanout is given twice"),
        (["--target", "refmodel:redo-se:engine=redo-vsan"], "the option engine is given twice"),
        (["--target", "qcow2:foo=1"], "there is no option foo: use power,"),
        (["--target", "sqlite:foo=1"], "there is no option foo: use mode,"),
        (["--target", "model", "--oracle", "certified"], "is not built (nowhere): run make proofs"),
        (["--target", "model", "--oracle", "model,moon"], "no oracle 'moon'"),
        (
            ["--target", "refmodel:redo-se", "--faults", "bit-flip"],
            "cannot be tested with bit-flip",
        ),
        (["--target", "model", "--crashes", "exhaustive"], "media that the kit owns"),
        (["--target", "refmodel", "--crashes", "exhaustive", "--ops", "9"], "out of reach"),
        (
            ["--target", "refmodel", "--crashes", "exhaustive", "--without", "unmap"],
            "are for random runs",
        ),
        *(
            (
                ["--target", "refmodel", "--crashes", "exhaustive", "--ops", "1", option, "1"],
                f"{option} is for random runs",
            )
            for option in ("--seed", "--jobs", "--scheduler", "--minutes", "--in-flight")
        ),
        (["--target", "model", "--resume", "p.jsonl"], "needs its --seed"),
        (["--target", "model", "--crashes", "some"], "'none', 'random', 'exhaustive'"),
        (["--target", "model", "--traces", "0"], "0 is not in the range"),
        (["--target", "model", "--minutes", "nan"], "nan is not a finite number"),
        (["--target", "model", "--minutes", "inf"], "inf is not a finite number"),
        ([], "--target"),
    ],
)
def test_wrong_usage_is_two(words: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTIFIED_ORACLE", "nowhere")
    result = call("run", *words)
    assert result.exit_code == 2 and says in result.output, result.output
    assert result.stderr.startswith("main run: ") and result.stderr.count("\n") == 1


def test_a_planted_bug_that_does_not_exist_is_wrong_usage() -> None:
    result = call("selftest", "nosuch")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert result.stderr.endswith("there is no bug 'nosuch' (see docs/self-test.md)\n")


def test_a_folder_is_replayed(tmp_path: Path) -> None:
    faulty = f"exec:python3 {SCRIPT} unmap-ignored"
    call("run", "--target", faulty, "--traces", 60, "--seed", 1, "--report", "out")
    result = call("replay", "out/traces", "--target", faulty)
    assert result.exit_code == 1 and "resurrected at operation" in result.output
    assert "   0  create" in result.output, "traces that fail are listed"
    assert call("replay", "out/traces", "--target", "model:ack").exit_code == 0
    (tmp_path / "out" / "traces" / "torn.jsonl").write_text("{}\n")
    result = call("replay", "out/traces", "--target", "model:ack")
    assert result.exit_code == 3 and "1 not judged" in result.output
    (tmp_path / "empty").mkdir()
    assert call("replay", "empty", "--target", "model:ack").exit_code == 2


@pytest.mark.parametrize("most", [1, 2])
def test_a_run_ends_after_so_many_failures(most: int) -> None:
    wrong = f"exec:python3 {SCRIPT} unmap-ignored"
    options = ("--traces", 60, "--seed", 1, "--jobs", 1, "--failures", most, "--json", "r.json")
    assert call("run", "--target", wrong, *options).exit_code == 1
    failures = json.loads(Path("r.json").read_text())["failures"]
    assert sum(len(failure["traces"]) for failure in failures) == most


def test_failures_are_kept_run_first_and_forgotten() -> None:
    wrong = f"exec:python3 {SCRIPT} unmap-ignored"
    result = call("run", "--target", wrong, "--traces", 60, "--seed", 1)
    kept = sorted(Path(".conformance/failures").rglob("*.jsonl"))
    assert kept and f"conformance replay {kept[0]} --target" in result.output
    assert Path(".conformance/.gitignore").read_text() == "*\n"
    again = call("run", "--target", wrong, "--traces", 1, "--seed", 99, "--json", "r.json")
    assert again.exit_code == 1 and "a failure kept from an earlier run" in again.output
    failures = json.loads(Path("r.json").read_text())["failures"]
    assert None in failures[0]["traces"]
    assert sorted(Path(".conformance/failures").rglob("*.jsonl")) == kept
    other = call("run", "--target", "model", "--traces", 1, "--seed", 99)
    assert other.exit_code == 0, "another target has its own"


def test_a_kept_failure_that_passes_is_forgotten(tmp_path: Path) -> None:
    flag = tmp_path / "fixed"
    module = tmp_path / "mine.py"
    module.write_text(
        "import pathlib\n"
        "from conformance.targets.model import ModelTarget\n"
        "class Mine(ModelTarget):\n"
        "    knobs = {'profile': ['ack']}\n"
        "    def request(self, message):\n"
        f"        if message['op'] == 'unmap' and not pathlib.Path({str(flag)!r}).exists():\n"
        "            return {'ok': True}\n"
        "        return super().request(message)\n"
    )
    words = ("run", "--target", "python:mine:Mine", "--traces", 20, "--seed", 1, "--jobs", 1)
    assert call(*words).exit_code == 1
    assert list(Path(".conformance/failures").rglob("*.jsonl"))
    flag.touch()
    result = call(*words)
    assert result.exit_code == 0 and "kept failures: 0 fail again, " in result.output
    assert not list(Path(".conformance/failures").rglob("*.jsonl"))
    flag.unlink()
    assert call(*words, "--no-keep").exit_code == 1
    assert not list(Path(".conformance/failures").rglob("*.jsonl"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_run_shows_what_it_did(
    number: signal.Signals, jobs: str, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "conformance", "run", "--target", "model", "--minutes", "5"]
    where = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*words, "--jobs", jobs, "--json", "r.json", "--seed", "1", "--resume", "kept"],
        cwd=tmp_path,
        env=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in a shell's job
    )
    time.sleep(4)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "inconclusive" in output + errors
    if (tmp_path / "r.json").exists():  # it was generating traces, and not still starting
        found = json.loads((tmp_path / "r.json").read_text())
        assert found["verdict"] == "inconclusive" and found["interrupted"]
        assert found["traces"] > 0 or jobs == "2"  # others may still be starting
        assert "resume   kept has " in errors and " traces, which are whole parts" in errors


@pytest.mark.parametrize("words", [["--version"], ["run", "--version"], ["doctor", "--version"]])
def test_every_command_says_its_version(words: list[str]) -> None:
    result = call(*words)
    assert result.exit_code == 0 and result.output == f"conformance {__version__}\n"


def test_help_and_targets() -> None:
    for words in (
        ["--help"],
        ["run", "--help"],
        ["check", "--help"],
        ["replay", "--help"],
        ["shrink", "--help"],
        ["targets"],
    ):
        assert call(*words).exit_code == 0
    assert "exec:COMMAND" in call("targets").output


@pytest.mark.parametrize("option", ["--report", "--json", "--junit", "--resume"])
def test_a_path_that_cannot_be_written_is_told_before_the_run(option: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "out"
    result = call("run", "--target", "model", "--traces", 1, "--seed", 1, option, place)
    assert result.exit_code == 2 and f"{place} cannot be written" in result.output, result.output
    assert "pass" not in result.output


@pytest.mark.parametrize(
    "options, status, says",
    [
        ("nosuch=3", 2, "has no option --nosuch"),
        ("blocks=3", 2, "has no option --blocks"),
        ("layout=nosuch", 2, "layout 'nosuch' is not one of"),
        ("fanout=1", 2, "the fanout is 3 to 128"),
        ("fanout=x", 2, "fanout=x: the value is one such as 3"),
        ("write-back=3", 2, "write_back=3: the value is one such as False"),
    ],
)
def test_a_wrong_option_of_the_engine_is_one_line(options: str, status: int, says: str) -> None:
    result = call("run", "--target", f"refmodel:{options}", "--traces", 1, "--jobs", 1)
    assert result.exit_code == status and says in result.output, result.output
    assert "it printed" not in result.output, result.output


@pytest.mark.parametrize(
    "target, says",
    [
        ("nilfs2:segment=abc", "segment=abc: the value is one such as 16"),
        ("nilfs2:order=loose", "order=loose: the value is one of relaxed, strict"),
        ("dm-thin:foo=1", "there is no option foo: use unit, discard, room, full, recovery"),
        ("dm-thin:discard=5", "discard=5: the value is one such as passdown"),
        ("dm-thin:discard=no", "discard=no: the value is one of passdown, no-passdown, ignore"),
        ("btrfs:mode=mixed", "there is no option mode: use spread, atom, cache, fault, linux"),
    ],
)
def test_a_wrong_option_of_a_driver_is_one_line(target: str, says: str) -> None:
    result = call("run", "--target", f"kernel:{target}", "--traces", 1, "--jobs", 1)
    assert result.exit_code == 2 and says in result.output, result.output


@pytest.mark.parametrize("options", ["order=strict,segment=2048,cache=through", "fault=lost-data"])
def test_the_options_of_a_driver_are_known(options: str) -> None:
    assert resolve(f"kernel:nilfs2:{options}").fixed


@pytest.mark.parametrize(
    "words",
    [("check",), ("replay", "--target", "model"), ("shrink", "--target", "model")],
    ids=lambda words: words[0],
)
def test_a_trace_that_does_not_exist_is_wrong_usage(words: tuple[str, ...]) -> None:
    result = call(*words, "missing.jsonl")
    assert result.exit_code == 2 and "'missing.jsonl' does not exist" in result.output


@pytest.mark.parametrize("target", ["refmodel", "model"])
def test_what_a_crash_left_is_for_kernel_targets(target: str) -> None:
    call("run", "--target", target, "--traces", 1, "--seed", 1, "--report", "out")
    result = call("replay", "out", "--target", target, "--as-left")
    assert (
        result.exit_code == 2 and f"--as-left is for kernel targets, not {target}" in result.output
    )


def test_a_closed_standard_stream_changes_no_verdict() -> None:
    run = f"{sys.executable} -m conformance run --target model --traces 2 --seed 1 --no-keep"
    where = {**os.environ, "PYTHONPATH": str(ROOT)}
    for closed in ("<&-", ">&-", "2>&-"):
        done = subprocess.run(f"{run} {closed}", shell=True, env=where, capture_output=True)
        assert done.returncode == 0 and b"Traceback" not in done.stderr
