"""The bench: a workload profile on a new disk of some engine; how fast, and what an operation costs in device I/Os and bytes, by cause.

Deterministic by seed. Seconds are noise on a shared machine; the counts are not.
"""

import inspect
import random
import tempfile
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

from refmodel.array.label import Shape
from refmodel.bench.clients import Clients, RepairClock, Stopwatch, Window
from refmodel.bench.dataset import Files
from refmodel.bench.peers import PEERS
from refmodel.bench.profiles import (
    BLOCK,
    DISK,
    PROFILES,
    Profile,
    Request,
    Stretch,
    digest,
    stretches,
)
from refmodel.bench.results import Result
from refmodel.cache.disk import CachedDisk
from refmodel.cache.settings import Settings
from refmodel.core.errors import Unsupported
from refmodel.log_structured.geometry import with_reserve
from refmodel.observe.families.views import reduction
from refmodel.registry import DEFAULT, ENGINES, Disk, create, open_disk, plan
from refmodel.serving.command_socket import Listener, RunCommand, Turn

SEGMENT = 128  # blocks, as plan has it
FILL = 64  # blocks of a write that fills the disk
COPIES = 4  # of a block of files, on average, on the whole disk
GENERATION = 256  # blocks that are written between two snapshots taken before the run
WINDOWS = 100  # of a run,
BATCHES = 8  # of requests at least in each


Watch = Callable[
    [Window, int, int], None
]  # is told of each window, and how many of how many operations are done


def run(
    profile: str,
    *,
    engine: str = DEFAULT,
    layout: str | None = None,
    cache_bytes: int = 0,
    cache_block_bytes: int | None = None,
    compression: bool = False,
    deduplication: bool = False,
    files: bool = False,
    scale: float = 1.0,
    blocks: int | None = None,
    operations: int | None = None,
    depth: int | None = None,
    snapshots: int = 0,
    room: int = 0,
    still: bool = False,
    compare: bool = False,
    sync: bool = False,
    seed: int = 1,
    path: Path | None = None,
    watch: Watch = lambda window, done, of: None,
    run_command: RunCommand | None = None,
) -> Result:
    """Run a profile on a fresh disk, filled once, with so many snapshots, and room for `room` where that is more.

    `blocks`, `operations` and `depth` override what the profile and `scale` say. With `cache_bytes` there is a read cache in front of
    the disk. What is written is random bytes, always the same, or with `files`, and where data is reduced, what refmodel.bench.dataset
    has. With `still` the same operations are done and none of the actions: what the actions are measured against. `compare` runs
    the same operations on peers too. The disk is made at `path` and stays, or is a temporary one. Raises KeyError for a profile or
    engine that does not exist, NotADisk if the folder is in use, BadRequest for what the engine cannot be made with, Unsupported
    for what the profile asks of it in vain.
    """
    chosen = PROFILES[profile]
    blocks = blocks or max(FILL, round(DISK * scale))
    unit = operations / chosen.length if operations else chosen.unit * scale
    parts = list(stretches(chosen, blocks, unit, seed))
    if still:
        parts = [part._replace(actions={}) for part in parts]
    if depth:
        parts = [part._replace(access=part.access._replace(in_flight=depth)) for part in parts]
    stopwatch, repair_clock, turn = Stopwatch(wall=sync), RepairClock(), Turn()
    with tempfile.TemporaryDirectory(dir=_memory(sync)) as folder:
        path = path or Path(folder) / "disk"
        shape = _plan(
            engine,
            chosen,
            parts,
            blocks,
            max(snapshots, room),
            layout,
            {"compression": compression, "deduplication": deduplication},
        )
        _require_able(shape, profile, parts, snapshots)
        create(path, shape, sync=sync, cache=Settings.asked(shape, cache_bytes, cache_block_bytes))
        with (
            closing(open_disk(path, sync=sync, now=repair_clock)) as disk,
            closing(Listener(path, disk, turn, run_command)) if run_command else nullcontext(),
        ):
            reduced = compression or deduplication
            data = Files(blocks // COPIES, BLOCK, seed).take if files or reduced else None
            clients = Clients(disk, turn, stopwatch, repair_clock, data)
            with turn:
                prepare(clients, disk, blocks, snapshots, seed)
            windows = _measure(clients, parts, watch)
            ratio = (
                reduction(disk.disk if isinstance(disk, CachedDisk) else disk) if reduced else None
            )
        peers = {}
        if compare:
            batches = [
                part.requests[at : at + part.access.in_flight]
                for part in parts
                for at in range(0, len(part.requests), part.access.in_flight)
            ]
            peers = {
                name: peer(Path(folder), blocks, batches, stopwatch) for name, peer in PEERS.items()
            }
    requests = {part.phase.name: part.requests for part in parts}
    return Result(
        profile, engine, getattr(shape, "layout", ""), scale, blocks, snapshots, cache_bytes, seed, digest(parts), sync, windows, clients.done, requests, peers, ratio
    )  # fmt: skip


def prepare(clients: Clients, disk: Disk, blocks: int, snapshots: int, seed: int) -> None:
    """Fill the disk, take snapshots with random writes between them, and let the disk come to rest."""
    choose = random.Random(f"history {seed}")
    for lba in range(0, blocks, FILL):
        clients.perform([Request(False, lba, min(FILL, blocks - lba))])
    for number in range(snapshots):
        disk.snapshot(f"before{number}")
        clients.perform([Request(False, choose.randrange(blocks), 1) for _ in range(GENERATION)])
    disk.settle()
    disk.checkpoint()


def _measure(clients: Clients, parts: list[Stretch], watch: Watch) -> list[Window]:
    operations, length = (
        sum(len(part.requests) for part in parts),
        sum(part.phase.length for part in parts),
    )
    windows: list[Window] = []
    done, fastest = 0, 0.0
    for part in parts:
        most = len(part.requests) // (BATCHES * part.access.in_flight)
        for window in clients.run(
            part,
            part.phase.rate * fastest,
            max(1, min(most, round(WINDOWS * part.phase.length / length))),
        ):
            windows.append(window)
            done += window.operations
            watch(window, done, operations)
        fastest = fastest or done / sum(window.seconds for window in windows)
    return windows


def _plan(
    engine: str,
    profile: Profile,
    parts: list[Stretch],
    blocks: int,
    snapshots: int,
    layout: str | None,
    reductions: dict[str, bool],
) -> Shape:
    """The engine's shape for a run: of what the profile wishes, what the engine knows. Raises BadRequest for a layout that it does not have."""
    wished = {"segments": _segments(parts, blocks, snapshots), **profile.options}
    known = inspect.signature(ENGINES[engine].plan).parameters
    options = {name: value for name, value in wished.items() if name in known}
    if layout or engine == DEFAULT:
        options["layout"] = layout or profile.layout
    options |= {name: True for name, wanted in reductions.items() if wanted}
    return plan(engine, blocks, **options)


def _require_able(shape: Shape, profile: str, parts: list[Stretch], snapshots: int) -> None:
    """Before anything is run. Raises Unsupported."""
    actions = {
        word
        for part in parts
        for together in part.actions.values()
        for action in together
        for word in action.split()
    }
    needs = {"snapshot": snapshots or "snapshot" in actions, "device": "fail" in actions}
    for capability, needed in needs.items():
        if needed and capability not in shape.capabilities:
            what = {"snapshot": "snapshots", "device": "devices that may fail"}[capability]
            raise Unsupported(
                f"the engine {shape.engine} has no {what}: it cannot run {profile} as asked"
            )


def _segments(parts: list[Stretch], blocks: int, snapshots: int) -> int:
    """Room for whatever the snapshots may pin, and half as much again, so that cleaning does not hide what they cost."""
    written = sum(request.count for part in parts for request in part.requests if not request.read)
    taken = sum(action == "snapshot" for part in parts for action in part.phase.actions)
    pinned = blocks + snapshots * min(GENERATION, blocks) + min(written, taken * blocks)
    return with_reserve(-(-(3 * pinned // 2 + blocks // 2) // SEGMENT) + 1)


def _memory(sync: bool) -> str | None:
    """Where a temporary disk is made: in memory, unless the medium is to be measured."""
    return "/dev/shm" if not sync and Path("/dev/shm").is_dir() else None
