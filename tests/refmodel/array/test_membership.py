"""The membership record: what few devices were told never overrules what was acknowledged."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from refmodel import create, open_disk, plan
from refmodel.array import membership as records
from refmodel.array.layout import MEMBERSHIP_BASE, PAGE
from refmodel.array.member import Member
from refmodel.core.errors import DataLost, PowerCut
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.scrub import scrub
from refmodel.media.device import Device, FileDevice
from refmodel.media.enclosure import WITNESS
from refmodel.media.power_supply import PowerSupply
from support.disks import block

ALL = 1 << 20  # more than the sectors of a write


class Bay:
    """A disk whose devices and witness are put in and taken out while it is closed."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.folder = folder
        self.power = PowerSupply()
        shape = plan(16, block_bytes=512, layout=layout, segment_blocks=4)
        create(folder, shape, sync=False)
        self.open()

    def open(self) -> None:
        """Open the disk."""
        self.disk = open_disk(self.folder, sync=False, power=self.power)

    def close(self, *present: int, witness: bool = True) -> None:
        """Close the disk. From now on only these devices are present."""
        self.disk.abandon()
        wanted = {f"device-{index}" for index in present} | ({WITNESS} if witness else set())
        for file in [*self.folder.iterdir()]:
            name = file.name.removesuffix(".pulled")
            file.rename(self.folder / (name if name in wanted else name + ".pulled"))

    def reopen(self, *present: int, witness: bool = True) -> None:
        """Close the disk, and open it with only these devices."""
        self.close(*present, witness=witness)
        self.open()

    def restore(self, *kept: int) -> None:
        """Switch the power on; `kept` is as in PowerSupply, and nothing else is kept."""
        self.disk.abandon()
        self.power.restore(0, kept=[*kept])

    def record(self, device: int) -> records.Membership:
        """Return the membership record of a device, or of its pulled file."""
        (path,) = self.folder.glob(f"device-{device}*")
        file = FileDevice(path, sync=False)
        try:
            record = records.read(file)
            assert record is not None
            return record
        finally:
            file.close()


@pytest.fixture
def bay(folder: Path) -> Iterator[Bay]:
    """A mirror with block 0 written.."""
    one = Bay(folder, "mirror")
    one.disk.write(0, block(1))
    one.disk.flush()
    yield one
    one.disk.abandon()


def test_a_record_is_on_each_device_twice(bay: Bay) -> None:
    page = records.encode(bay.record(0))
    with closing(FileDevice(bay.folder / "device-0", sync=False)) as device:
        assert records.is_on(device, page)


def test_a_record_that_only_one_device_has_is_older_than_what_others_opened_with(bay: Bay) -> None:
    bay.reopen(0, 1)
    before = bay.record(0).sequence
    bay.power.cut_at(2)
    with pytest.raises(PowerCut):
        bay.disk.fail(1)
    bay.restore()
    assert bay.record(0).sequence == before + 1 and bay.record(0).members[1].state == "absent"
    bay.reopen(1)
    bay.disk.write(0, block(2))
    bay.reopen(0, 1)
    assert bay.disk.read(0) == block(2)
    assert [str(member.state) for member in bay.disk.array.members] == ["stale", "active"]


@pytest.mark.parametrize("writes", range(1, 9))
def test_an_opening_that_was_cut_short_is_older_than_the_next_one(
    bay: Bay, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Device 0 alone has a record that calls it active, and then one of an opening that was cut."""
    bay.reopen(0, 1)
    bay.disk.fail(0)
    bay.disk.write(0, block(2))
    bay.disk.return_(0)
    activate = bay.disk.array.activate

    def cut_and_activate(member: Member) -> None:
        bay.power.cut_at(2)
        activate(member)

    monkeypatch.setattr(bay.disk.array, "activate", cut_and_activate)
    with pytest.raises(PowerCut):
        bay.disk.settle()
    bay.restore()
    assert [bay.record(device).members[0].state for device in (0, 1)] == ["active", "stale"]
    bay.close(0)
    bay.power.cut_at(writes)
    with pytest.raises(PowerCut):
        bay.open()
    bay.restore()
    bay.reopen(1)
    bay.disk.write(0, block(3))
    with pytest.raises(DataLost, match="no device that is here has a current performance leg"):
        bay.reopen(0)
    bay.reopen(0, 1)
    assert bay.disk.read(0) == block(3)


def test_a_device_that_fails_while_a_term_begins_changes_no_record_of_it(
    bay: Bay, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, str]] = []
    write = records.write

    def fail_on_device_0(device: Device, page: bytes, base: int = MEMBERSHIP_BASE) -> None:
        if device.name == "device-0":
            raise OSError("no such device")
        record = records.decode(page)
        assert record is not None
        told.append((record.sequence & 0xFFFFFFFF, record.members[0].state))
        write(device, page, base)

    term = bay.record(1).term
    bay.close(0, 1)
    with (bay.folder / "device-0").open("r+b") as file:
        file.seek(MEMBERSHIP_BASE)
        file.write(bytes(PAGE))  # so the voters do not have the same record
    monkeypatch.setattr(records, "write", fail_on_device_0)
    bay.open()
    assert told[2:] == [(0, "active"), (0, "active"), (1, "absent"), (1, "absent")]
    assert bay.record(1).sequence == (term + 1 << 32) + 1
    assert bay.disk.read(0) == block(1)


def test_nothing_is_written_until_a_change_counts_on_a_majority(bay: Bay) -> None:
    """Without the witness, device 0 alone does not decide that device 1 is absent."""
    bay.reopen(0, 1, witness=False)
    with pytest.raises(DataLost, match="only 1 of 3 members could record the change"):
        bay.disk.fail(1)
    changes: tuple[Callable[[], object], ...] = (
        lambda: bay.disk.write(0, block(2)),
        lambda: bay.disk.snapshot("s"),
        bay.disk.checkpoint,
        bay.disk.settle,
    )
    for change in changes:
        with pytest.raises(DataLost, match="the newest change of the members"):
            change()
    assert bay.disk.read(0) == block(1)
    bay.disk.return_(1)
    assert bay.disk.array.redundant
    bay.disk.write(0, block(3))
    bay.reopen(1)
    assert bay.disk.read(0) == block(3)


def test_a_disk_that_could_not_write_without_a_device_does_not_open_without_it(
    folder: Path,
) -> None:
    """Device 1 alone has a record of the log. Recovery without it must not be followed by one with.

    Device 2 is stale, so without device 1 nothing may be written.
    """
    one = Bay(folder, "raid5-2+1")
    one.disk.write(0, block(1))
    one.disk.fail(2)
    one.disk.write(1, block(2))
    one.disk.flush()
    one.power.cut_at(2)
    with pytest.raises(PowerCut):
        one.disk.write(0, block(3))
    one.restore(0, ALL - 1)
    one.close(0, 2)
    with pytest.raises(
        DataLost, match="devices 1, 2 are gone or not up to date; the layout raid5-2.1 tolerates 1"
    ):
        one.open()
    one.reopen(0, 1, 2)
    assert one.disk.read(0) == block(3) and one.disk.read(1) == block(2)
    one.disk.settle()
    assert one.disk.array.redundant
    one.disk.abandon()


def test_scrub_rewrites_what_a_voter_has_wrong(bay: Bay) -> None:
    assert isinstance(bay.disk, LogStructuredDisk)
    bay.disk.fail(1)
    bay.disk.return_(1)
    bay.disk.settle()
    page = records.encode(bay.record(0))
    assert scrub(bay.disk).repaired.total() == 0
    for file, at in (("device-0", MEMBERSHIP_BASE), ("device-1", MEMBERSHIP_BASE + PAGE)):
        with closing(FileDevice(bay.folder / file, sync=False)) as device:
            device.write(at + 20, b"\xff")
    with closing(FileDevice(bay.folder / WITNESS, sync=False)) as device:
        device.write(0, bytes(2 * PAGE))
    found = scrub(bay.disk)
    assert found.verified["membership record"] == found.repaired["membership record"] == 3
    assert scrub(bay.disk).repaired.total() == 0
    for file, base in (("device-0", MEMBERSHIP_BASE), ("device-1", MEMBERSHIP_BASE), (WITNESS, 0)):
        with closing(FileDevice(bay.folder / file, sync=False)) as device:
            assert records.is_on(device, page, base)


@pytest.mark.parametrize("opened", [True, False])
def test_scrub_makes_a_lost_witness_again(bay: Bay, opened: bool) -> None:
    """With the new witness, one mirror has a majority again, and the other one is stale."""
    assert isinstance(bay.disk, LogStructuredDisk)
    if opened:
        (bay.folder / WITNESS).unlink()
    else:
        bay.reopen(0, 1, witness=False)
        (bay.folder / (WITNESS + ".pulled")).unlink()
    assert bay.disk.array.roster.quorum.witness_lost
    found = scrub(bay.disk)
    assert (found.verified["membership record"], found.repaired["membership record"]) == (3, 1)
    with closing(FileDevice(bay.folder / WITNESS, sync=False)) as device:
        assert records.is_on(device, records.encode(bay.record(0)), base=0)
    assert scrub(bay.disk).repaired.total() == 0
    bay.disk.fail(1)
    bay.disk.write(0, block(2))
    bay.reopen(0)
    assert bay.disk.read(0) == block(2)
    with pytest.raises(DataLost, match="no device that is here has a current performance leg"):
        bay.reopen(1)
    bay.reopen(0, 1)
    assert bay.disk.read(0) == block(2)


def test_a_lost_witness_is_not_made_again_without_both_mirrors(bay: Bay) -> None:
    """Device 0 and the lost witness alone know that device 1 is absent."""
    assert isinstance(bay.disk, LogStructuredDisk)
    bay.disk.fail(1)
    (bay.folder / WITNESS).unlink()
    assert scrub(bay.disk).repaired["membership record"] == 0
    assert bay.disk.array.roster.quorum.witness_lost
    bay.disk.return_(1)
    assert scrub(bay.disk).repaired["membership record"] == 1
    assert not bay.disk.array.roster.quorum.witness_lost


@pytest.mark.parametrize("writes", [1, 2])
def test_a_power_cut_while_a_witness_is_made_leaves_one_without_a_vote(
    bay: Bay, writes: int
) -> None:
    assert isinstance(bay.disk, LogStructuredDisk)
    scrub(bay.disk)
    (bay.folder / WITNESS).unlink()
    assert scrub(bay.disk).repaired.total() == 1
    (bay.folder / WITNESS).unlink()
    bay.power.cut_at(writes)
    with pytest.raises(PowerCut):
        bay.disk.array.roster.quorum.renew_witness()
    bay.restore()
    if writes == 1:
        with pytest.raises(DataLost, match="only 1 of 3 members are there"):
            bay.reopen(0)
    bay.reopen(0, 1)
    assert bay.disk.read(0) == block(1)
    assert scrub(bay.disk).repaired.total() == 0


def test_a_device_that_fails_while_scrub_looks_at_its_record_is_absent(
    bay: Bay, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(bay.disk, LogStructuredDisk)
    looked_at = records.is_on

    def failing(device: Device, page: bytes, base: int = MEMBERSHIP_BASE) -> bool:
        if device.name == "device-0":
            raise OSError("gone")
        return looked_at(device, page, base)

    monkeypatch.setattr(records, "is_on", failing)
    assert scrub(bay.disk).clean
    assert [str(member.state) for member in bay.disk.array.members] == ["absent", "active"]
    assert bay.record(1).members[0].state == "absent"
    assert bay.disk.read(0) == block(1)
