"""The proved disk as a target whose power can fail inside an operation.

conformance run --target python:proofs.disk.cutting_target:open_target --traces 200
conformance run --target python:proofs.disk.cutting_target:open_trees --traces 200
conformance run --target python:proofs.disk.cutting_target:open_mirrors --traces 200
conformance run --target python:proofs.disk.cutting_target:open_prefix --traces 200
conformance run --target python:proofs.disk.cutting_target:open_prefix_raid5 --traces 200

A power cut tears blocks: of each sector the old or a new content survives (`device.ml`). The names
of snapshots are made long, so that their log records take two sectors and differ in the second one.
"""

import os
from pathlib import Path
from typing import Any

from conformance.targets.base import Message, PowerCut
from conformance.targets.process import ProcessTarget

PROGRAM = Path(os.environ.get("PROVED_DISK", Path(__file__).parents[2] / "build" / "proved-disk"))
LONGEST_NAME = 64


NAMES = {"name", "view"}  # the fields that hold the name of a snapshot


def long(name: Any) -> Any:
    """Return another name for a snapshot, as long as names may be, if it is one that has room."""
    short = isinstance(name, str) and name.isalnum() and len(name) <= 6
    return name.rjust(LONGEST_NAME, "_") if short else name


class CuttingTarget(ProcessTarget):
    """A process that understands `"cut":{"after":n,"seed":s}` in a request."""

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.cuts = True  # `hello` does not say it: the answer to a cut is an unknown outcome

    def request(self, message: Message) -> Message:
        """Return the response. Raises PowerCut where the power failed, TargetFailure where no
        answer came."""
        names = {key: long(message[key]) for key in NAMES & set(message)}
        response = super().request(message | names)
        if "cut" in message and response.get("error") == "unknown-outcome":
            raise PowerCut()
        return response


def open_target(options: dict[str, Any]) -> CuttingTarget:
    """Start `build/proved-disk adapter`. `records` is the size of its log, in records."""
    return CuttingTarget(f"{PROGRAM} adapter --log-records {options.get('records', 4)}")


open_target.knobs = {"records": [4, 1, 2, 16]}  # type: ignore[attr-defined]


def open_trees(options: dict[str, Any]) -> CuttingTarget:
    """Start it with its maps as shared trees. `records` is the size of its log, in records."""
    return CuttingTarget(f"{PROGRAM} adapter --trees --log-records {options.get('records', 4)}")


open_trees.knobs = {"records": [4, 1, 2, 16]}  # type: ignore[attr-defined]


def open_prefix(options: dict[str, Any]) -> CuttingTarget:
    """Start it with write-back; `trees` says whether its maps are trees."""
    trees = " --trees" if options.get("trees") else ""
    records = options.get("records", 4)
    return CuttingTarget(f"{PROGRAM} adapter --profile prefix{trees} --log-records {records}")


open_prefix.knobs = {"records": [4, 1, 2, 16], "trees": [False, True]}  # type: ignore[attr-defined]


def open_block(options: dict[str, Any]) -> CuttingTarget:
    """Start the same disk where it promises the profile `block`."""
    trees = " --trees" if options.get("trees") else ""
    records = options.get("records", 4)
    return CuttingTarget(f"{PROGRAM} adapter --profile block{trees} --log-records {records}")


open_block.knobs = open_prefix.knobs  # type: ignore[attr-defined]


LEGS: dict[str, list[Any]] = {"records": [4, 1, 16], "trees": [False, True]}  # knobs of all legs


def on_legs(layout: str, options: dict[str, Any]) -> CuttingTarget:
    """Start it on several devices, which fail too; `trees` says whether its maps are trees."""
    trees = " --trees" if options.get("trees") else ""
    records = options.get("records", 4)
    return CuttingTarget(f"{PROGRAM} adapter {layout}{trees} --log-records {records}")


def open_mirrors(options: dict[str, Any]) -> CuttingTarget:
    """Start it on mirrors. `mirrors` is their number."""
    return on_legs(f"--mirrors {options.get('mirrors', 2)}", options)


open_mirrors.knobs = {"mirrors": [2, 3, 1], **LEGS}  # type: ignore[attr-defined]


def open_raid5(options: dict[str, Any]) -> CuttingTarget:
    """Start it on devices with parity, of which one may fail. `devices` is their number."""
    return on_legs(f"--raid5 {options.get('devices', 3)}", options)


open_raid5.knobs = {"devices": [3, 4, 6], **LEGS}  # type: ignore[attr-defined]


def open_raid6(options: dict[str, Any]) -> CuttingTarget:
    """Start it on devices with parity, of which two may fail. `devices` is their number."""
    return on_legs(f"--raid6 {options.get('devices', 4)}", options)


open_raid6.knobs = {"devices": [4, 5, 6], **LEGS}  # type: ignore[attr-defined]


WRITE_BACK = " --profile prefix"


def open_prefix_mirrors(options: dict[str, Any]) -> CuttingTarget:
    """Start it on mirrors, with write-back."""
    return on_legs(f"--mirrors {options.get('mirrors', 2)}{WRITE_BACK}", options)


open_prefix_mirrors.knobs = open_mirrors.knobs  # type: ignore[attr-defined]


def open_block_mirrors(options: dict[str, Any]) -> CuttingTarget:
    """Start the same disk on mirrors where it promises the profile `block`."""
    return on_legs(f"--mirrors {options.get('mirrors', 2)} --profile block", options)


open_block_mirrors.knobs = open_mirrors.knobs  # type: ignore[attr-defined]


def open_prefix_raid5(options: dict[str, Any]) -> CuttingTarget:
    """Start it on devices with parity, of which one may fail, with write-back."""
    return on_legs(f"--raid5 {options.get('devices', 3)}{WRITE_BACK}", options)


open_prefix_raid5.knobs = open_raid5.knobs  # type: ignore[attr-defined]


def open_prefix_raid6(options: dict[str, Any]) -> CuttingTarget:
    """Start it on devices with parity, of which two may fail, with write-back."""
    return on_legs(f"--raid6 {options.get('devices', 4)}{WRITE_BACK}", options)


open_prefix_raid6.knobs = open_raid6.knobs  # type: ignore[attr-defined]
