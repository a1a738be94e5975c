"""Hooks files that name an NBD URI."""

from pathlib import Path

from conformance import targets
from conformance.campaign.random_campaign import campaign
from conformance.targets.hooks import HooksTarget
from support.examples import EXAMPLES, MODEL


def test_qcow2_behind_qemu_nbd_keeps_the_contract_when_killed() -> None:
    result = campaign(
        targets.resolve(str(EXAMPLES / "qemu_nbd.toml")), count=4, ops=20, seed=1, oracles=MODEL
    )
    assert result.verdict == "pass", result.failures or result.reason


def test_a_socket_that_nobody_serves_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    text = (EXAMPLES / "file_copies.toml").read_text()
    assert 'data = "disk"' in text
    path.write_text(text.replace('data = "disk"', 'data = "nbd+unix:///?socket=$DIR/none"'))
    result = campaign(targets.resolve(str(path)), count=20, ops=20, seed=1, oracles=MODEL)
    assert result.verdict == "fail"
    verdict = result.failures[0].verdict
    assert verdict.kind == "exit" and "No such file" in verdict.actual, verdict


def test_an_export_that_does_not_exist_is_a_missing_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "exports.toml"
    path.write_text(
        'data = "nbd+unix:///live?socket=$DIR/s"\n'
        'view = "nbd+unix:///$NAME?socket=$DIR/s"\n'
        "[commands]\n"
        'create = "truncate -s $BYTES d; '
        'qemu-nbd --fork -t -e 0 -f raw -x live -k $DIR/s --pid-file=$DIR/pid d"\n'
        'snapshot = "echo never; exit 1"\n'
        'stop = "kill $(cat $DIR/pid)"\n'
        "[refusals]\n"
        '"never" = "no-space"\n'
    )
    target = HooksTarget(path)
    try:
        assert target.request({"op": "create", "blocks": 4})["ok"]
        read = {"op": "read", "lba": 0, "count": 1}
        assert target.request(read)["data"] == bytes(4096)
        assert target.request({**read, "view": "gone"})["error"] == "no-such-snapshot"
    finally:
        target.close()
