"""Snapshots of Linux drivers, in a guest kernel of its own: see docs/kernel-targets.md."""

from conformance.targets.engines.kernel.dm_snapshot import DmSnapshot
from conformance.targets.engines.kernel.dm_thin import DmThin

DRIVERS = {"dm-thin": DmThin, "dm-snapshot": DmSnapshot}
