"""At a scrub, what a disk says of itself is compared with what it reads."""

from collections.abc import Iterator
from typing import Any

import pytest

from refmodel.adapter.engine_target import Adapter
from refmodel.array.layout import MEMBERSHIP_BASE, PAGE
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


@pytest.mark.parametrize("adapter", [{"cache_bytes": 1 << 14}], indirect=True)
def test_the_cache_of_the_other_host_holds_what_the_disk_holds(adapter: Adapter) -> None:
    disk = disk_of(adapter)
    disk.cache.move()
    disk.cache.copy_slots()
    disk.cache.flash.empty()
    assert adapter.scrub() == []
    disk.disk.write(4, b"y" * BLOCK)
    assert adapter.scrub() == ["2 blocks from 3: the cache differs from the disk"]


@pytest.mark.parametrize("adapter", [{"engine": "in-place-raid5"}], indirect=True)
def test_an_array_in_place_has_its_members_on_record(adapter: Adapter) -> None:
    array = disk_of(adapter).array
    array.roster.away.append((7, "0" * 32))
    array.capacity.components[0].lack([1])
    assert adapter.scrub() == [
        "device 0 is active, and lacks 1 stripes of the capacity leg",
        "the spares, or the devices that have left, are not on record as they are",
    ]


@pytest.mark.parametrize("adapter", [{"engine": "in-place-raid5"}], indirect=True)
def test_each_voter_has_the_record_of_the_members(adapter: Adapter) -> None:
    device = disk_of(adapter).array.members[1].device
    device.write(MEMBERSHIP_BASE, bytes(PAGE))
    assert adapter.scrub() == ["1 of the voters lack the record of the members"]
