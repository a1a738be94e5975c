"""What `python -m modelcheck` and `python -m crosscheck` say when something is wrong: one line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelcheck.checkers import tlc
from refmodel import __version__

FULL = "output: No space left on device"
CLOSED = "output: Bad file descriptor"
ONE_RUN = "specs VirtualDisk-tiny-block"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a program with the redirections of a shell."""
    command = f'exec "{sys.executable}" -P -m {line}'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("modelcheck --help >/dev/full", f"modelcheck: {FULL}"),
        ("modelcheck specs --version >/dev/full", f"modelcheck: {FULL}"),
        (f"modelcheck {ONE_RUN} >/dev/full", f"modelcheck: {FULL}"),
        (f"modelcheck {ONE_RUN} >&-", f"modelcheck: {CLOSED}"),
        ("modelcheck mutants --write /proc/x LogStructuredDisk_torn", "modelcheck: /proc/x"),
        ("modelcheck explain - <&-", "modelcheck: - holds no counterexample of TLC"),
        ("crosscheck judge-speed --histories 1 --ops 5 >/dev/full", f"crosscheck: {FULL}"),
    ],
)
def test_an_output_that_cannot_be_written_is_a_line_and_status_3(line: str, said: str) -> None:
    done = shell(line)
    assert done.returncode == 3
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1


@pytest.mark.parametrize("line", [ONE_RUN, "mutants --write DIR LogStructuredDisk_torn"])
def test_a_reader_that_is_gone_is_not_reported(line: str, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-P", "-m", "modelcheck", *line.split()]
    command = [str(tmp_path) if word == "DIR" else word for word in command]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=300)
    os.close(write)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("line", ["modelcheck specs", "crosscheck overlap-speed --traces 9999"])
def test_an_interrupt_is_a_line_and_status_130(line: str, number: signal.Signals) -> None:
    command = [sys.executable, "-P", "-m", *line.split()]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in a shell's job
    ) as running:
        time.sleep(4)  # it works by then
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, f"{line.split()[0]}: interrupted\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "specs --group foo",
            "invalid value for '--group': 'foo' is not one of",
        ),
        ("mutants --group foo", "invalid value for '--group': 'foo' is not one of"),
        ("specs VirtualDisk-ack nosuch", "there is no run 'nosuch' (see specs/models.toml)\n"),
        ("mutants nosuch", "there is no mutant 'nosuch' (see specs/mutants)\n"),
        ("apalache nosuch", "there is no run of Apalache 'nosuch' (see specs/models.toml)\n"),
        ("distributed nosuch", "there is no run 'nosuch' (see specs/models.toml)\n"),
        ("distributed VirtualDisk-ack", "MCVirtualDisk-ack.cfg: distributed mode would silently"),
        ("explain /tmp", "/tmp is a folder (see --help)\n"),
        (
            "mutation --kept /proc/nosuch/x",
            "invalid value for '--kept': /proc/nosuch/x cannot be written",
        ),
    ],
)
def test_wrong_usage_is_a_line_and_status_2(line: str, said: str) -> None:
    done = shell(f"modelcheck {line}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"modelcheck {line.split()[0]}: {said}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("line", ["modelcheck", "modelcheck specs", "crosscheck judge-speed"])
def test_every_command_has_the_version(line: str) -> None:
    assert shell(f"{line} --version").stdout == f"{line.split()[0]} {__version__}\n"


def test_a_survey_of_one_mutant_is_of_one_mutant(tmp_path: Path) -> None:
    done = shell(f"modelcheck mutation VirtualDisk --count 1 --kept {tmp_path}/kept")
    assert "\n1 mutant, " in done.stdout


def test_the_command_that_is_printed_for_a_mutant_finds_it(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    done = shell(f"modelcheck mutants --write '{folder}' VirtualDisk_unmap_ignored")
    line = done.stdout.splitlines()[0]
    checked = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120)
    found = tlc.parse(checked.stdout)
    assert found.status == "violated", checked.stderr
