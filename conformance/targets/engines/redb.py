"""redb, a copy-on-write B-tree store in Rust, as a disk of blocks.

redb_disk/ is the adapter; it has media of its own.

What it declares, and why:

- `ack` with durability `immediate` (a commit is durable when it returns), `prefix` with `eventual`
  and `none` (commits become durable later, in their order; a flush is an empty commit that is
  durable at once).
- A snapshot is a persistent savepoint. It is read by going back to it in a transaction that is then
  aborted.
- There is no `revert`: going back to a savepoint for good makes redb forget all later ones, as its
  documentation says.
- Blocks have 512 bytes; a commit is atomic, so any size would do.
- `clean` is compaction, which redb refuses while there are savepoints.

The store lies in memory (redb's own StorageBackend), which knows what was synced: a power cut
leaves any part of the rest, torn at sectors. It may come at any write of an operation, and of
recovery unless the option `recovery` says otherwise, to look behind a finding (docs/findings).
"""

import os
import shlex
from pathlib import Path
from typing import Any

from conformance.targets.base import Message, Unusable
from conformance.targets.process import ProcessTarget

BUILT = Path(__file__).parents[3] / "build" / "engines" / "release" / "redb-disk"


class RedbTarget(ProcessTarget):
    """redb as a disk.

    Options: `durability` of writes ("immediate", "eventual" or "none"); `recovery` ("cut" or
    "whole")."""

    knobs: dict[str, list[Any]] = {"durability": ["immediate", "eventual", "none"]}
    fixed_options = ("recovery",)

    def __init__(self, options: dict[str, Any]) -> None:
        program = Path(os.environ.get("REDB_DISK", BUILT))
        if not os.access(program, os.X_OK):
            raise Unusable(
                f"redb's adapter is not built ({program}): run make engines, which needs cargo"
            )
        self._recovery_is_cut = options.get("recovery", "cut") == "cut"
        super().__init__(f"{shlex.quote(str(program))} {options.get('durability', 'immediate')}")

    def request(self, message: Message) -> Message:
        if message["op"] == "crash" and not self._recovery_is_cut:
            message = {"op": "crash"}
        return super().request(message)
