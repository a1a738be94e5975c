"""Group commit: requests in flight together form a group, and each gets its own answer."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from refmodel import LogStructuredDisk
from refmodel.core.errors import NoSuchSnapshot, OutOfRange
from refmodel.serving.command_socket import Turn
from refmodel.serving.group_commit import GroupCommit, Pending, perform
from support.disks import block

Make = Callable[..., LogStructuredDisk]


def test_waiting_requests_form_one_group_and_each_gets_its_answer(make: Make) -> None:
    disk, turn, sizes = make(64), Turn(), []

    def performed(group: list[Pending]) -> None:
        sizes.append(len(group))
        perform(disk, group)

    groups = GroupCommit(turn, performed)
    with ThreadPoolExecutor(16) as clients:
        with turn:
            writes = [
                clients.submit(groups.submit, Pending(lba, 1, block(lba + 1))) for lba in range(16)
            ]
            while groups.waiting < 16:
                threading.Event().wait(0.001)
        for write in writes:
            write.result(10)
        reads = [clients.submit(groups.submit, Pending(lba, 2)) for lba in range(15)]
        assert [read.result(10) for read in reads] == [
            block(lba + 1) + block(lba + 2) for lba in range(15)
        ]
    assert sizes[0] == 16 and sum(sizes) == 31
    assert disk.operations.blocks_of("write") == 16


def test_a_refused_request_does_not_fail_the_others(make: Make) -> None:
    disk = make(8)
    wrong, right, read, lost = (
        Pending(8, 1, block(1)),
        Pending(3, 1, block(2)),
        Pending(3, 1),
        Pending(3, 1, view=lambda: "gone"),
    )
    perform(disk, [wrong, right, read, lost])
    assert isinstance(wrong.error, OutOfRange) and isinstance(lost.error, NoSuchSnapshot)
    assert right.error is None and read.result == block(2) == disk.read(3)


def test_an_error_of_the_engine_reaches_the_caller(make: Make) -> None:
    def fails(group: list[Pending]) -> None:
        raise RuntimeError("planted")

    groups = GroupCommit(Turn(), fails)
    for _ in range(2):  # the next request is performed all the same
        with pytest.raises(RuntimeError):
            groups.submit(Pending(0, 1))
