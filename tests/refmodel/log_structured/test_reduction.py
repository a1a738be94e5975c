"""Compression and deduplication: random histories with power cuts, and the space that they save.

It has more than 400 lines because both reductions have the same disks and helpers.
"""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from refmodel import LogStructuredDisk, open_disk
from refmodel.array.member import ComponentState
from refmodel.bench import runner
from refmodel.bench.results import describe
from refmodel.bugs.registry import override
from refmodel.core.errors import BadRequest, DataLost, NoSpace, UnknownOutcome
from refmodel.log_structured.audit import audit
from refmodel.log_structured.chunks import deduplication
from refmodel.log_structured.chunks.compression import Compressor
from refmodel.log_structured.chunks.physical_address import Addressing
from refmodel.log_structured.geometry import REDUCTIONS, plan, with_reserve
from refmodel.log_structured.scrub import scrub
from refmodel.log_structured.snapshots.space_report import by_view, pinned
from refmodel.observe.families import log_structured
from support.disks import pba_of
from support.histories import Content, History

BOTH: dict[str, Any] = dict.fromkeys(REDUCTIONS, True)
NOISE = (0, 40, 100, 200, 500)  # bytes of a block of 512 that do not compress


def content(tag: int, size: int = 512) -> bytes:
    """Return a block that holds its tag and compresses as its tag says; zeroes for tag 0."""
    noise = NOISE[tag % len(NOISE)] * size // 512
    return (tag.to_bytes(8, "little") + random.Random(tag).randbytes(noise) if tag else b"").ljust(
        size, b"\0"
    )[:size]


def values(disk: LogStructuredDisk) -> dict[str, float]:
    found = {}
    for family in log_structured.FAMILIES:
        if family.name.endswith(".ratio"):
            ((_, value),) = family.samples(disk)
            assert isinstance(value, int | float)
            found[family.name] = value
    return found


class ReducedHistory(History):
    few = False  # whether the same data is written again and again

    def tags(self, count: int) -> tuple[int, ...]:
        if self.few:
            return tuple(self.random.choice((1, 2, 3, 4, 5, 6, 7, 7, 7)) for _ in range(count))
        return super().tags(count)

    def block(self, tag: int) -> bytes:
        return content(tag)

    def read_all(self) -> Content:
        found = live, snapshots = super().read_all()
        for view, tags in ((None, live), *snapshots.items()):
            assert self.disk.read(0, self.shape.blocks, view) == b"".join(map(content, tags))
        return found


class SharedHistory(ReducedHistory):
    few = True


@pytest.mark.parametrize("seed", range(16))
def test_any_history_compressed(folder: Path, seed: int) -> None:
    _live_through(ReducedHistory(folder, seed, compression=True))


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("compression", [False, True], ids=["alone", "and compressed"])
def test_any_history_deduplicated(folder: Path, seed: int, compression: bool) -> None:
    _live_through(SharedHistory(folder, seed, deduplication=True, compression=compression))


def _live_through(history: History) -> None:
    for _ in range(150):
        history.step()
        live = history.disk.state.space_usage.live
        if history.random.random() < 0.1:
            history.disk.state.update_maps()
            assert history.disk.state.space_usage.live == live
    assert history.read_all() == history.content()
    history.disk.settle()
    assert scrub(history.disk).clean and history.read_all() == history.content()
    assert audit(history.disk.state) == []
    history.disk.abandon()


def test_what_compresses_takes_an_eighth_and_what_does_not_a_block(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, compression=True)
    disk.write(0, b"".join(content(5 * tag) for tag in range(1, 17)))  # no noise at all
    disk.write(16, b"".join(content(5 * tag + 4) for tag in range(1, 9)))  # next to nothing else
    disk.checkpoint()
    assert disk.state.segments.live == 16 * 1 + 8 * 8 and disk.state.space_usage.live == 10
    assert values(disk)["compression.ratio"] == values(disk)["reduction.ratio"] == 24 / 10
    assert disk.read(0, 24) == b"".join(
        [content(5 * tag) for tag in range(1, 17)] + [content(5 * tag + 4) for tag in range(1, 9)]
    )


def test_segments_hold_more_than_their_blocks(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(64, compression=True, segments=9)  # of 4 blocks each, 4 of them a reserve
    for lba in range(64):
        disk.write(lba, content(5 * lba + 5))
    for name in "abc":
        disk.snapshot(name)
        disk.write(0, content(5))
    disk.checkpoint()
    assert disk.geometry.usable_chunks < 64 and disk.read(63) == content(5 * 63 + 5)
    with pytest.raises(NoSpace):
        for lba in range(64):
            disk.write(lba, content(5 * lba + 4))
    assert audit(disk.state) == []


def test_a_large_write_is_compressed_if_the_log_can_hold_it(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, compression=True, log_bytes=16384)
    blocks = [content(5 * tag) for tag in range(1, 49)]
    disk.write(0, b"".join(blocks[:24]))
    disk.checkpoint()
    assert disk.state.segments.live == 24 and disk.state.large_writes.placed == 0
    disk.write(0, b"".join(blocks))  # too large for the log: as it is
    assert disk.state.large_writes.placed == 48
    assert disk.read(0, 48) == b"".join(blocks)
    disk.write(1, content(7))
    for _ in range(20):
        disk.clean()  # what it moves is compressed
    assert disk.read(0, 3) == blocks[0] + content(7) + blocks[2]
    assert audit(disk.state) == []


def test_neighbours_are_read_in_one_io(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(64, compression=True, segment_blocks=16, layout="raid5-2+1")
    disk.write(0, b"".join(content(5 * tag) for tag in range(1, 33)))
    disk.checkpoint()
    before = disk.array.capacity.ios
    assert disk.read(0, 32) == b"".join(content(5 * tag) for tag in range(1, 33))
    assert disk.array.capacity.ios == before + 1


def test_without_reduction_the_label_does_not_name_it(
    make: Callable[..., LogStructuredDisk], folder: Path
) -> None:
    disk = make(8)
    disk.write(0, content(5))
    assert b"compression" not in (folder / "device-0").read_bytes()[:4096]
    assert set(REDUCTIONS).isdisjoint(disk.geometry.as_dict())
    assert values(disk)["reduction.ratio"] == 1


def test_damage_to_a_compressed_chunk_is_repaired_or_refused(
    make: Callable[..., LogStructuredDisk], folder: Path
) -> None:
    disk = make(8, compression=True)
    disk.write(0, content(5) + content(6))
    disk.checkpoint()
    places, shape = disk.state.segments.addressing, disk.geometry
    pba = pba_of(disk, 1)
    at = shape.capacity_base + places.offset(pba) + places.length(pba) // 2
    disk.close()
    for device, lost in (("device-0", 0), ("device-1", 1)):
        with (folder / device).open("r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1]))
        disk = open_disk(folder, sync=False)
        if not lost:
            assert disk.read(0, 2) == content(5) + content(6) and disk.array.capacity.repairs == 1
            disk.close()
            with (folder / device).open("r+b") as file:
                file.seek(at)
                file.write(bytes([byte ^ 1]))  # again, for both at once
    with pytest.raises(DataLost):
        disk.read(1)
    assert disk.read(0) == content(5)
    disk.abandon()


@pytest.mark.parametrize("block_bytes", [512, 4096, 65536])
def test_what_is_compressed_decompresses(block_bytes: int) -> None:
    compressor = Compressor(plan(8, block_bytes=block_bytes, compression=True))
    for tag in range(40):
        data = content(tag, block_bytes)
        stored = compressor.compress(data)
        assert (
            len(stored) in [block_bytes >> shift for shift in range(4)]
            and compressor.decompress(stored) == data
        )
    with pytest.raises(DataLost):
        compressor.decompress(bytes(block_bytes // 2))


def test_lengths_that_are_powers_of_two_leave_less_than_a_block_empty() -> None:
    chooses = random.Random(1)
    places = Addressing(plan(8, segment_blocks=8, compression=True))
    for _ in range(200):
        chunks = [(mba, chooses.choice([1, 2, 4, 8])) for mba in range(chooses.randint(1, 60))]
        left, empty = dict(chunks), 0
        while left:
            taken = places.fill(left.items())
            for pba in places.assign(3, [length for _, length in taken]):
                assert pba // places.span == 3
                assert (
                    places.offset(pba) // 4096
                    == (places.offset(pba) + places.length(pba) - 1) // 4096
                )
            for mba, length in taken:
                assert left.pop(mba) == length
            empty += 64 - sum(length for _, length in taken) if left else 0
        assert empty < 8


@pytest.mark.parametrize("segment_blocks", [1, 4, 16])
@pytest.mark.parametrize(
    "reduction", [("compression",), ("deduplication",), REDUCTIONS], ids=" and ".join
)
def test_overwritten_for_ever_with_no_room_to_spare(
    make: Callable[..., LogStructuredDisk], segment_blocks: int, reduction: tuple[str, ...]
) -> None:
    segments = with_reserve(64 // segment_blocks)
    options = dict.fromkeys(reduction, True)
    disk = make(64, segment_blocks=segment_blocks, segments=segments, log_bytes=8192, **options)
    choose, tags = random.Random(1), [0] * 64
    for number in range(2400):
        lba = choose.randrange(64)
        tags[lba] = (number, 5 * number + 4, 5 * number, number % 9)[
            number // 600
        ]  # mixed; not, very, and seldom new
        disk.write(lba, content(tags[lba]))
    assert disk.read(0, 64) == b"".join(map(content, tags))
    assert audit(disk.state) == []


def test_a_chunk_cut_short_is_noticed(folder: Path) -> None:
    """The planted bug: a block that does not shrink is cut to half."""
    compress = Compressor.compress

    def compress_and_cut(self: Compressor, data: bytes) -> bytes:
        return compress(self, data)[: len(data) // 2]

    with pytest.MonkeyPatch.context() as patch, pytest.raises((AssertionError, DataLost)):
        patch.setattr(Compressor, "compress", compress_and_cut)
        _live_through(ReducedHistory(folder, 0, compression=True))


def test_the_same_data_is_stored_once_and_goes_with_the_last_that_holds_it(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, deduplication=True, segment_blocks=8)
    for lba in range(0, 40, 10):
        disk.write(lba, b"".join(map(content, range(1, 11))))
    disk.checkpoint()
    assert disk.state.segments.live == 10 and disk.state.chunks.deduplication.found == 30
    assert values(disk)["reduction.ratio"] == 4
    disk.snapshot("s")
    for lba in range(0, 40, 10):
        disk.unmap(lba, 10)
    disk.checkpoint()
    assert disk.state.segments.live == 10 and disk.read(30, 10, "s") == b"".join(
        map(content, range(1, 11))
    )
    disk.delete("s")
    disk.settle()
    disk.checkpoint()
    assert disk.state.segments.live == 0
    assert [list(tree.items()) for tree in disk.state.chunks.deduplication.maps] == [
        [],
        [],
    ] and audit(disk.state) == []


def test_a_shared_chunk_is_moved_for_all(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(64, deduplication=True, segment_blocks=4)
    disk.write(0, b"".join(map(content, (1, 2, 3, 4))))
    disk.checkpoint()
    disk.write(8, content(1) * 3)
    disk.unmap(0, 3)
    disk.checkpoint()
    for lba in range(20, 34):  # what the cleaner has to gain
        disk.write(lba, content(lba))
    disk.unmap(20, 13)
    places = dict(disk.state.segments.owners.items())
    while disk.clean():
        pass
    assert dict(disk.state.segments.owners.items()) != places
    assert disk.read(8, 3) == content(1) * 3 and disk.read(3) == content(4)
    assert disk.state.chunks.moved and audit(disk.state) == []


def test_a_duplicate_in_the_bank_is_stored_when_its_primary_is_overwritten(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, deduplication=True, segment_blocks=4)
    for lba in range(6):
        disk.write(lba, content(1))
    disk.write(0, content(2))
    assert len(disk.state.chunks.bank) == 6
    disk.write(1, content(3))
    disk.checkpoint()
    assert disk.state.segments.live == 3
    assert disk.read(0, 6) == content(2) + content(3) + content(1) * 4 and audit(disk.state) == []


def test_a_device_catches_up_though_the_bank_fits_only_once_deduplicated(
    make: Callable[..., LogStructuredDisk], folder: Path
) -> None:
    """After a power cut all that the log holds is in the bank, and nothing of it is compared."""
    shape = {"layout": "raid5-2+1", "segment_blocks": 2, "segments": with_reserve(32)}
    disk = make(64, deduplication=True, log_bytes=1 << 17, **shape)
    for number in range(3):
        for first in range(0, 64, 16):
            blocks = range(first, first + 16)
            disk.write(first, b"".join(content(lba % 5 + number) for lba in blocks))
        disk.snapshot(f"s{number}")
    disk.abandon()
    with closing(open_disk(folder, sync=False)) as disk:
        assert isinstance(disk, LogStructuredDisk)
        assert len(disk.state.chunks.bank) > 2 * disk.state.segments.free_count()
        disk.fail(0, "absent")
        disk.return_(0)
        disk.settle()
        assert not disk.array.in_state(ComponentState.STALE)
        disk.fail(1, "degraded")
        assert disk.read(0, 5) == b"".join(content(lba + 2) for lba in range(5))
        assert audit(disk.state) == []


def test_data_that_agrees_in_the_key_alone_is_not_taken_for_the_same(
    make: Callable[..., LogStructuredDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = deduplication.fingerprint
    monkeypatch.setattr(deduplication, "fingerprint", lambda stored: bytes(8) + whole(stored)[8:])
    disk = make(16, deduplication=True, segment_blocks=4)
    disk.write(0, b"".join(map(content, (1, 2, 1, 2))))
    disk.checkpoint()
    disk.write(4, content(1) + content(2))
    disk.checkpoint()
    assert disk.read(0, 6) == b"".join(map(content, (1, 2) * 3))
    assert (
        disk.state.segments.live == 3 and audit(disk.state) == []
    )  # 2, which the index lacks, is stored again
    disk.unmap(0, 6)
    disk.checkpoint()
    assert disk.state.segments.live == 0 and audit(disk.state) == []


def _share_without_counting(disk: LogStructuredDisk) -> None:
    find_duplicates = disk.state.chunks.deduplication.find_duplicates

    def find_and_forget(bank: dict[int, bytes]) -> tuple[list[int], list[int]]:
        references = disk.state.chunks.deduplication.references
        before = dict(references.items())
        found = find_duplicates(bank)
        for mba, entry in before.items():
            references.put(mba, entry)
        return found

    override(disk.state.chunks.deduplication, "find_duplicates", find_and_forget)


def _believe_half_a_fingerprint(disk: LogStructuredDisk) -> None:
    index = disk.state.chunks.deduplication.index

    def find_any(mark: bytes) -> int | None:
        return next((mba for _, (*_, mba) in index.items()), None)

    override(disk.state.chunks.deduplication, "find_stored", find_any)


def _leave_it_in_the_index(disk: LogStructuredDisk) -> None:
    override(disk.state.chunks.deduplication.index, "remove", lambda key: None)


@pytest.mark.parametrize(
    "plant", [_share_without_counting, _believe_half_a_fingerprint, _leave_it_in_the_index]
)
def test_planted_bugs_of_sharing_are_found(
    folder: Path, plant: Callable[[LogStructuredDisk], None]
) -> None:
    class Planted(SharedHistory):
        def open(self) -> LogStructuredDisk:
            return open_disk(
                self.folder, sync=False, power=self.power, now=lambda: self.seconds, prepare=plant
            )

    with pytest.raises((AssertionError, DataLost, UnknownOutcome, KeyError)):
        _live_through(Planted(folder, 3, deduplication=True))


def test_the_ratio_of_a_bench_is_what_the_data_on_its_disk_has(tmp_path: Path) -> None:
    found = runner.run(
        "hcibench-4k-write",
        blocks=512,
        operations=400,
        compression=True,
        deduplication=True,
        path=tmp_path / "d",
    )
    disk = open_disk(tmp_path / "d", sync=False)
    disk.checkpoint()
    blocks = [disk.read(lba) for lba in range(512)]
    pack = Compressor(disk.geometry).compress
    space = sum(len(pack(data)) for data in set(blocks))
    assert disk.state.segments.live * 512 == space
    assert values(disk)["reduction.ratio"] == len(blocks) * 4096 / space > 2
    assert found.as_dict()[
        "reduction_ratio"
    ] > 2 and f"data reduction {found.reduction:.2f} to 1" in describe(found)
    disk.abandon()


@pytest.mark.parametrize("reduction", [{}, BOTH], ids=["as it is", "reduced"])
def test_questions_change_nothing(
    make: Callable[..., LogStructuredDisk], reduction: dict[str, bool]
) -> None:
    disk = make(64, segment_blocks=4, segments=80, **reduction)
    for number in range(150):
        disk.write(number * 7 % 64, content(number % 20))
        if number in (50, 90):
            disk.snapshot(f"s{number}")
    disk.delete("s50")
    disk.unmap(5, 3)
    disk.write(30, content(3) * 9)

    def memory() -> list[object]:
        state, chunks = disk.state, disk.state.chunks
        maps = [list(tree.items()) for tree in (*state.service_maps, state.views.live.map)]
        waiting = [dict(state.views.live_map.recent), dict(chunks.bank), dict(chunks.moving)]
        return [maps, waiting, [*chunks.dropped], dict(state.pages.in_use), state.clock.now]

    before = memory()
    assert before[1] != [{}, {}, {}] and before[2]
    assert audit(disk.state) == [] and disk.mapped(0, 64) and disk.read(0, 64)
    assert disk.state.space_usage.live <= disk.state.space_usage.occupied
    assert by_view(disk.state.views) and pinned(disk.state.views)
    assert [family.samples(disk) for family in log_structured.FAMILIES]
    assert memory() == before


def test_an_engine_without_reduction_refuses_it() -> None:
    with pytest.raises(BadRequest, match="no option --compression"):
        runner.run("4k-random-write", engine="redo-se", blocks=64, operations=8, compression=True)


def test_sequential_reads_pay_for_reduction_and_random_ones_do_not() -> None:
    files: dict[str, Any] = {"files": True}
    options: dict[str, Any] = {"blocks": 1024, "operations": 200, "depth": 1}
    cost = {
        name: [
            runner.run(name, **options, **reduction).part("run").foreground
            for reduction in (files, BOTH)
        ]
        for name in ("4k-random-read", "hcibench-32k-read")
    }
    assert cost["4k-random-read"] == [1.0, 1.0]
    assert 1.0 == cost["hcibench-32k-read"][0] < cost["hcibench-32k-read"][1] <= 8


def test_a_segment_that_is_filled_again_has_no_owner_of_before(
    make: Callable[..., LogStructuredDisk],
) -> None:
    """Chunks of other lengths begin at other places, so the new owners do not replace the old."""
    disk = make(64, compression=True, segments=12)
    segments, chunks, choose = disk.state.segments, disk.state.chunks, random.Random(1)
    filled_again = 0
    for tag in range(1, 2000):
        fillings = {at: usage.filled for at, usage in segments.sealed.items()}
        disk.write(choose.randrange(64), content(tag))
        for segment, usage in segments.sealed.items():
            if usage.filled != fillings.get(segment):
                filled_again += tag > 1000
                places = [pba for pba, _ in segments.written_to(segment)]
                units = sum(segments.addressing.units(pba) for pba in places)
                assert units <= segments.units, "places do not overlap"
                assert len(chunks.living(segment)) <= len(places)
    assert filled_again > 100 and audit(disk.state) == []
