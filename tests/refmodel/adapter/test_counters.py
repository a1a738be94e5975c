"""The counters that an engine of the project answers to `stats`."""

from pathlib import Path

from refmodel.adapter.engine_target import Adapter


def test_a_disk_that_cannot_be_opened_says_what_it_has_done(tmp_path: Path) -> None:
    target = Adapter(folder=tmp_path, layout="mirror", block_bytes=512)
    assert target.request({"op": "stats"}) == {"ok": True, "counters": {}}
    assert target.request({"op": "create", "blocks": 8})["ok"]
    assert target.request({"op": "write", "lba": 0, "data": bytes(512)})["ok"]
    for device in (0, 1):
        assert target.request({"op": "fail", "device": device, "mode": "absent"})["ok"]
    target.request({"op": "restart"})
    assert target.request({"op": "read", "lba": 0, "count": 1})["error"] == "data-lost"
    assert target.request({"op": "stats"})["counters"]["operations.write"] == 1
    target.close()
