"""A clean close while more devices are away than are tolerated."""

from pathlib import Path

import pytest

from refmodel.adapter.dialogue import Message
from refmodel.adapter.engine_target import Adapter

DATA = bytes(range(256)) * 2


@pytest.mark.parametrize("blocks", [8, 9, 10, 11, 12])  # another seed of what the media keep
def test_what_was_acknowledged_is_durable_though_nothing_may_be_written(
    tmp_path: Path, blocks: int
) -> None:
    """Device 4 is back and lacks the write, and device 3 is away: the log is on 0 and 1 alone."""
    target = Adapter(
        folder=tmp_path, layout="raid5-4+1", block_bytes=512, repair_share=1, write_back=True
    )
    try:
        requests: list[Message] = [
            {"op": "create", "blocks": blocks},
            *({"op": "write", "lba": 7 - at, "data": DATA} for at in range(blocks - 8)),
            {"op": "fail", "device": 4, "mode": "absent"},
            {"op": "write", "lba": 2, "data": DATA},
            {"op": "return", "device": 4},
            {"op": "write", "lba": 3, "data": DATA},
            {"op": "fail", "device": 3, "mode": "absent"},
            {"op": "restart"},
            {"op": "return", "device": 3},
        ]
        for request in requests:
            assert target.request(request)["ok"], request
        assert target.request({"op": "read", "lba": 3, "count": 1}).get("data") == DATA
    finally:
        target.close()
