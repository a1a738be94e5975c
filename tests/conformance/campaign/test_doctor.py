"""`conformance doctor`: what it says of targets that are sound, wrong, silent or not there."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.campaign.doctor import MEANINGS
from conformance.cli import main
from conformance.programs.swarm import CAPABILITIES
from conformance.selftest.corpus import SCRIPT as FAULTY
from conformance.targets.model import ModelTarget
from support.examples import EXAMPLES


def doctor(target: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["doctor", "--target", target])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


@pytest.mark.parametrize("target", ["refmodel", "model:block", f"exec:python3 {FAULTY} none"])
def test_a_sound_target_is_usable(target: str) -> None:
    status, output = doctor(target)
    assert status == 0 and output.endswith("usable\n") and "WRONG" not in output
    assert "crash profile" in output and "device        " in output
    assert "in flight     " in output


def test_it_says_how_many_requests_are_in_flight() -> None:
    assert "in flight     up to 8 requests; one step is a request\n" in doctor("refmodel")[1]
    assert "in flight     one request at a time\n" in doctor("model:block")[1]


def test_several_requests_need_version_2_and_power_cuts_a_profile(tmp_path: Path) -> None:
    source = (EXAMPLES / "dict_disk.py").read_text()
    declared = source.replace('"block_size"', '"in_flight": 8, "cuts": True, "block_size"')
    (tmp_path / "disk.py").write_text(declared.replace('e": "ack"', 'e": None'))
    status, output = doctor(f"exec:python3 {tmp_path / 'disk.py'}")
    assert status == 0 and 'says 8, but not "protocol": 2\n' in output, output
    assert "ok            crash" not in output
    assert "\npower cuts" not in output and "device write" not in output


def test_it_says_what_was_understood_of_devices_and_power_cuts(tmp_path: Path) -> None:
    source = (EXAMPLES / "dict_disk.py").read_text()
    declared = '"cuts": True, "devices": 6, "spares": 1, "tolerates": 2, "block_size"'
    assert source.count('"block_size"') == 1
    (tmp_path / "disk.py").write_text(source.replace('"block_size"', declared))
    target = f"exec:python3 {tmp_path / 'disk.py'}"
    output = CliRunner().invoke(main, ["doctor", "--target", target]).output
    assert "power cuts    also at a device write that the kit chooses\n" in output
    assert "WRONG         loses its power at a device write: " in output  # it knows no `cut`
    assert "devices       6, spares included: 1; 2 may fail\n" in output
    plain = doctor(f"exec:python3 {EXAMPLES / 'dict_disk.py'}")[1]
    assert "power cuts" not in plain and "devices  " not in plain


def test_several_requests_are_tried_in_flight(tmp_path: Path) -> None:
    source = (EXAMPLES / "dict_disk.py").read_text()
    numbered = source.replace('"block_size"', '"protocol": 2, "in_flight": 2, "block_size"')
    reads, says = "request = json.loads(line)\n", "json.dumps(answer(disk, request))"
    assert numbered.count(reads) == numbered.count(says) == 1
    numbered = numbered.replace(reads, f'{reads}        number = request.pop("id", 0)\n')
    for answered, status in (("number", 0), ("number - (number == 3)", 1)):
        said = f'json.dumps({{**answer(disk, request), "id": {answered}}})'
        (tmp_path / "disk.py").write_text(numbered.replace(says, said))
        found, output = doctor(f"exec:python3 {tmp_path / 'disk.py'}")
        assert found == status, output
        assert f"{'WRONG' if status else 'ok':13} answers requests in flight" in output
        assert f"{'WRONG' if status else 'ok':13} loses its power while they are in" in output


@pytest.mark.parametrize(
    "fault, says",
    [
        ("unmap-ignored", "WRONG         unmap"),
        ("accepts-out-of-range", "WRONG         refuses what reaches past the end"),
        ("does-not-open-again", "WRONG         crash"),
        ("exits", "status 7"),
        ("prints-garbage", "not JSON"),
    ],
)
def test_what_is_wrong_at_once_is_said(fault: str, says: str) -> None:
    status, output = doctor(f"exec:python3 {FAULTY} {fault}")
    assert status == 1 and says in output and "will fail" in output


def test_what_a_target_printed_before_it_ended_is_shown_once(tmp_path: Path) -> None:
    source = (EXAMPLES / "dict_disk.py").read_text()
    write = "    def write(self, lba: int, data: bytes) -> None:\n"
    assert source.count(write) == 1
    ends = write + '        raise SystemExit("the map is poisoned")\n'
    (tmp_path / "disk.py").write_text(source.replace(write, ends))
    status, output = doctor(f"exec:python3 {tmp_path / 'disk.py'}")
    assert status == 1 and output.count("exited with status 1") > 1, output
    assert output.count("\n              it printed\n") == 1, output
    assert output.count("\n                the map is poisoned\n") == 1, output


def test_what_cannot_be_tested() -> None:
    for target in (
        "exec:/nonexistent/engine",
        f"exec:python3 {FAULTY} exits-in-hello",
        f"exec:python3 {FAULTY} bad-hello",
    ):
        status, output = doctor(target)
        assert status == 3 and "unusable" in output


def test_it_does_not_wait_twice_for_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.targets.process.ProcessTarget.__init__.__defaults__", (2.0,))
    status, output = doctor(f"exec:python3 {FAULTY} hangs")
    assert status == 1 and output.count("WRONG") == 1 and "no answer to write" in output, output


def test_every_capability_has_a_meaning() -> None:
    assert set(MEANINGS) == set(CAPABILITIES)


@pytest.mark.parametrize("op", ["write", "unmap", "snapshot", "revert"])
def test_what_refuses_without_reason_cannot_be_tested(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract allows it, full disks being what they are; `run` would pass it with nothing
    tested.
    """
    answer = ModelTarget.request
    refuse = {"ok": False, "error": "no-space"}
    monkeypatch.setattr(
        ModelTarget,
        "request",
        lambda self, message: (
            refuse if message["op"] == op and message.get("lba", 0) < 7 else answer(self, message)
        ),
    )
    status, output = doctor("model:ack")
    assert status == 1 and f"{op}" in output and "no reason to refuse" in " ".join(output.split())


def test_it_tries_all_requests_of_a_capability(tmp_path: Path) -> None:
    source = (EXAMPLES / "dict_disk.py").read_text()
    assert source.count('"capabilities": [') == 1
    declares = source.replace('"capabilities": [', '"capabilities": ["clean", "device", ')
    declares = declares.replace('"block_size"', '"devices": 3, "tolerates": 1, "block_size"', 1)
    (tmp_path / "disk.py").write_text(declares)
    target = f"exec:python3 {tmp_path / 'disk.py'}"
    output = CliRunner().invoke(main, ["doctor", "--target", target]).output
    for what in ("clean", "checkpoint", "device", "replaces a device"):
        assert f"WRONG         {what}: " in output, output
