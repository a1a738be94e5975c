"""Snapshots of Linux drivers, in a guest kernel of its own: see docs/kernel-targets.md."""

from conformance.targets.engines.kernel.btrfs import Btrfs
from conformance.targets.engines.kernel.dm_snapshot import DmSnapshot
from conformance.targets.engines.kernel.dm_thin import DmThin
from conformance.targets.engines.kernel.nilfs2 import Nilfs2

DRIVERS: dict[str, type[Btrfs | DmSnapshot | DmThin | Nilfs2]] = {
    "dm-thin": DmThin,
    "dm-snapshot": DmSnapshot,
    "nilfs2": Nilfs2,
    "btrfs": Btrfs,
}
