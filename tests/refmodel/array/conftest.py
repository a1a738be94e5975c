"""Disks for the tests of arrays."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.array_disks import TrackedDisk


@pytest.fixture
def tracked(folder: Path) -> Iterator[Callable[..., TrackedDisk]]:
    """Makes a disk of a layout, and opens it."""
    made: list[TrackedDisk] = []

    def make(layout: str, **shape: Any) -> TrackedDisk:
        made.append(TrackedDisk(folder, layout, **shape))
        return made[-1]

    yield make
    for one in made:
        one.disk.abandon()
