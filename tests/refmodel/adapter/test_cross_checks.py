"""At a scrub, what a disk says of itself is compared with what it reads."""

from collections.abc import Iterator
from typing import Any

import pytest

from refmodel.adapter.engine_target import Adapter
from refmodel.cache.disk import CachedDisk

BLOCK = 512


@pytest.fixture
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    made = Adapter(block_bytes=BLOCK, **request.param)
    made.request({"op": "create", "blocks": 16})
    made.request({"op": "write", "lba": 3, "data": b"x" * 2 * BLOCK})
    yield made
    made.close()


def disk_of(adapter: Adapter) -> Any:
    return adapter._disk


@pytest.mark.parametrize(
    "adapter", [{}, {"engine": "redo-se"}, {"engine": "in-place-raid5"}], indirect=True
)
def test_what_is_called_unmapped_is_zeroes(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert adapter.scrub() == []
    disk = disk_of(adapter)
    mapped = disk.mapped
    monkeypatch.setattr(disk, "mapped", lambda *range: [at for at in mapped(*range) if at != 4])
    (problem,) = adapter.scrub()
    assert problem.endswith("blocks from 4 of live are not mapped, and are no zeroes"), problem


@pytest.mark.parametrize("adapter", [{"cache_bytes": 1 << 14}], indirect=True)
def test_the_cache_holds_what_the_disk_holds(adapter: Adapter) -> None:
    disk = disk_of(adapter)
    assert isinstance(disk, CachedDisk) and adapter.scrub() == []
    disk.disk.write(4, b"y" * BLOCK)
    assert adapter.scrub() == ["2 blocks from 3: the cache differs from the disk"]
