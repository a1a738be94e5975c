"""The kit on the proved disk on several devices: it passes, and what is broken in it is found."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from scheduler_bugs import built

from conformance.cli import main
from support.proved_disk import FIRST_FAILURE, PROGRAM

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "target",
    [
        "exec:{} adapter --mirrors 3",
        "exec:{} adapter --raid5 4",
        "exec:{} adapter --raid6 5",
        "exec:{} adapter --mirrors 3 --trees",
        "exec:{} adapter --raid5 4 --trees",
        "exec:{} adapter --raid6 5 --trees",
        "python:proofs.disk.cutting_target:open_mirrors",
        "python:proofs.disk.cutting_target:open_raid5",
        "python:proofs.disk.cutting_target:open_raid6",
    ],
)
def test_the_kit_finds_nothing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = ["run", "--target", target.format(PROGRAM), "--traces", "20", "--seed", "5"]
    result = CliRunner().invoke(main, [*arguments, "--jobs", "1"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("file", "old", "new", "devices"),
    [
        (
            "mirror_set.ml",
            "      write_members set members clean;\n      run set next",
            "      ignore (members, clean);\n      run set next",
            "--mirrors 2",
        ),
        (
            "mirror_set.ml",
            "settle_leg set.layout.code set.record.size",
            "settle_leg set.layout.code 0",
            "--mirrors 2",
        ),
        ("field.ml", "Int64.logxor", "Int64.logor", "--raid6 4"),
        ("field.ml", "!product a b", "max a b", "--raid6 4"),
    ],
    ids=[
        "the record of the members is not written",
        "settle copies nothing",
        "the sum of two bytes is another one",
        "the product of two bytes is another one",
    ],
)
def test_the_kit_finds_what_is_broken(
    file: str, old: str, new: str, devices: str, tmp_path: Path
) -> None:
    program = built(tmp_path, {"what": new, "old": old, "new": new}, file)
    arguments = ["-m", "conformance", "run", "--target", f"exec:{program} adapter {devices}"]
    done = subprocess.run(
        [sys.executable, *arguments, "--traces", "40", "--seed", "5", *FIRST_FAILURE],
        cwd=ROOT,
        capture_output=True,
    )
    assert done.returncode == 1
