"""Which disks report what happens inside: looking at all pages takes too long on a large one."""

from pathlib import Path

import pytest

from refmodel.adapter.dialogue import Message
from refmodel.adapter.engine_target import MOST_TOLD, Adapter


@pytest.mark.parametrize("blocks, told", [(MOST_TOLD, True), (MOST_TOLD + 1, False)])
def test_a_large_disk_reports_no_inner_events(tmp_path: Path, blocks: int, told: bool) -> None:
    adapter = Adapter(folder=tmp_path)
    try:
        requests: list[Message] = [
            {"op": "create", "blocks": blocks},
            {"op": "snapshot", "name": "a"},
        ]
        requests += [{"op": "restart"}, {"op": "snapshot", "name": "b"}]
        answers = [adapter.request(request) for request in requests]
    finally:
        adapter.close()
    assert all(answer["ok"] and bool(answer.get("events")) == told for answer in answers)
