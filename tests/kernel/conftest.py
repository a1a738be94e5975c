"""What tests with a guest need; without it they are not run: `make kernel` installs it."""

import shutil

import pytest

from conformance.targets.engines.kernel.machine import guest

TOOLS = (guest.KERNEL, "cc", "qemu-storage-daemon", "qemu-img", "mkfs.nilfs2", "mkfs.btrfs")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]


@pytest.fixture
def needs_guest() -> None:
    if MISSING:
        pytest.skip(f"NOT RUN: {', '.join(MISSING)} missing: make kernel")
