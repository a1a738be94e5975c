"""The bench: runs a workload profile on a new disk, and measures rates and device I/Os by cause.

The operations depend on the seed alone. On a shared machine seconds are noise; counts are exact.
"""

import inspect
import random
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from refmodel.bench.clients import Clients, RepairClock, Stopwatch, Window
from refmodel.bench.peers import PEERS, Batches
from refmodel.bench.results import Result
from refmodel.bench.workloads.dataset import Files
from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import (
    BLOCK,
    DISK,
    Profile,
    Request,
    Stretch,
    digest,
    stretches,
)
from refmodel.cache.disk import behind_cache
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import Unsupported
from refmodel.engine.disk import closed_at_end
from refmodel.engine.shape import Shape
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.geometry import with_reserve
from refmodel.observe.families.views import reduction
from refmodel.registry import DEFAULT, ENGINES, Disk, create, open_disk, plan
from refmodel.runtime.collector import collect_if_due, full_collections_in_idle_moments
from refmodel.serving.callbacks import Callbacks
from refmodel.serving.command_socket import CommandSocket, RunCommand

SEGMENT = 128  # blocks per segment, as in refmodel.log_structured.geometry.plan
FILL = 64  # blocks per write that fills the disk
COPIES = 4  # copies of each block of the dataset on the whole disk, on average
GENERATION = 256  # blocks that are written between two snapshots before the run
WINDOWS = 100  # windows of a run
BATCHES = 8  # batches per window at least

# Called after each window: the window, the operations done so far, and those of the whole run.
Watch = Callable[[Window, int, int], None]


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
    wall: bool = False,
    memory: int | None = None,
    seed: int = 1,
    path: Path | None = None,
    watch: Watch = lambda window, done, of: None,
    run_command: RunCommand | None = None,
) -> Result:
    """Run a profile on a new disk, which is filled first.

    profile, engine: a name of PROFILES, and one of ENGINES.
    layout: of the devices; by default the profile's.
    cache_bytes, cache_block_bytes: a read cache in front of the disk; 0: none.
    compression, deduplication: data reduction of the log-structured engine.
    files: write the data of refmodel.bench.workloads.dataset; always so with data reduction.
        Otherwise the same random bytes are written again and again.
    scale: multiplies the size of the disk (64 MiB at 1) and the number of operations.
    blocks, operations, depth: override the profile's and the scale's.
    snapshots: snapshots that are taken before the run. room: the disk has room for as many.
    still: do none of the profile's actions. This is the control run of one with actions.
    compare: do the same operations on peers, too.
    sync: wait for the medium at every flush.
    memory: bytes for tree nodes of the log-structured engine.
    wall: the clock of the run shows wall-clock time, else CPU time.
    path: folder of the disk, which stays; by default the disk is temporary.
    watch: called after each window.
    run_command: runs commands of other processes on the disk meanwhile (`refmodel top`).

    Raises KeyError if the profile or the engine does not exist, NotADisk if the folder is in use,
    BadRequest if the engine lacks an option, Unsupported if it lacks what the profile needs.
    """
    chosen = PROFILES[profile]
    blocks = blocks or max(FILL, round(DISK * scale))
    unit = operations / chosen.length if operations else chosen.unit * scale
    parts = list(stretches(chosen, blocks, unit, seed))
    if still:
        parts = [part._replace(actions={}) for part in parts]
    if depth:
        parts = [part._replace(access=part.access._replace(in_flight=depth)) for part in parts]
    stopwatch, repair_clock = Stopwatch(wall=wall), RepairClock()
    with tempfile.TemporaryDirectory(dir=_memory(sync)) as folder:
        path = path or Path(folder) / "disk"
        reductions = {"compression": compression, "deduplication": deduplication}
        shape = _plan(engine, chosen, parts, blocks, max(snapshots, room), layout, reductions)
        _require_able(shape, profile, parts, snapshots)
        create(
            path, shape, sync=sync, cache=CacheSettings.asked(shape, cache_bytes, cache_block_bytes)
        )
        with (
            closed_at_end(open_disk(path, sync=sync, now=repair_clock, memory=memory)) as disk,
            closing(Callbacks()) as callbacks,
            _commands(path, callbacks, disk, run_command),
        ):
            reduced = compression or deduplication
            data = Files(blocks // COPIES, BLOCK, seed).take if files or reduced else None
            clients = Clients(disk, partial(callbacks.run, 0), stopwatch, repair_clock, data)
            prepare(clients, disk, blocks, snapshots, seed)
            with full_collections_in_idle_moments():
                windows = _measure(clients, parts, watch)
            ratio = _reduction(disk) if reduced else None
        batches = _batches(parts) if compare else []
        peers = {
            name: peer(Path(folder), blocks, batches, stopwatch)
            for name, peer in (PEERS.items() if compare else ())
        }
    return Result(
        profile=profile,
        engine=engine,
        layout=getattr(shape, "layout", ""),
        scale=scale,
        blocks=blocks,
        snapshots=snapshots,
        cache_bytes=cache_bytes,
        seed=seed,
        digest=digest(parts),
        wall=wall,
        windows=windows,
        actions=clients.done,
        requests={part.phase.name: part.requests for part in parts},
        peers=peers,
        reduction=ratio,
        waits=dict(clients.waits),
    )


def _commands(
    path: Path, callbacks: Callbacks, disk: Disk, run_command: RunCommand | None
) -> AbstractContextManager[CommandSocket | None]:
    """Return the socket for commands of other processes, if anything runs them."""
    if run_command is None:
        return nullcontext()
    return closing(CommandSocket(path, callbacks, partial(run_command, disk)))


def prepare(clients: Clients, disk: Disk, blocks: int, snapshots: int, seed: int) -> None:
    """Fill the disk, take snapshots with writes between them, and finish all background work."""
    choose = random.Random(f"history {seed}")
    together = min(GENERATION, blocks)  # the log of a small disk has room for so many
    for lba in range(0, blocks, FILL):
        clients.perform([Request(False, lba, min(FILL, blocks - lba))])
    for number in range(snapshots):
        disk.snapshot(f"before{number}")
        for first in range(0, GENERATION, together):
            part = range(first, min(first + together, GENERATION))
            clients.perform([Request(False, choose.randrange(blocks), 1) for _ in part])
    disk.settle()
    disk.checkpoint()


def _measure(clients: Clients, parts: list[Stretch], watch: Watch) -> list[Window]:
    """Run all stretches. A later phase's rate is a share of what the first phase could do."""
    operations = sum(len(part.requests) for part in parts)
    length = sum(part.phase.length for part in parts)
    windows: list[Window] = []
    done, fastest = 0, 0.0
    for part in parts:
        most = len(part.requests) // (BATCHES * part.access.in_flight)
        count = max(1, min(most, round(WINDOWS * part.phase.length / length)))
        for window in clients.run(part, part.phase.rate * fastest, count):
            windows.append(window)
            done += window.operations
            watch(window, done, operations)
            collect_if_due()
        fastest = fastest or done / sum(window.seconds for window in windows)
    return windows


def _batches(parts: list[Stretch]) -> Batches:
    """Return the requests of a run in batches, each of the requests that are in flight together."""
    return [
        part.requests[at : at + part.access.in_flight]
        for part in parts
        for at in range(0, len(part.requests), part.access.in_flight)
    ]


def _reduction(disk: Disk) -> float:
    engine = behind_cache(disk)
    assert isinstance(engine, LogStructuredDisk)  # no other engine has the options
    return reduction(engine)


def _plan(
    engine: str,
    profile: Profile,
    parts: list[Stretch],
    blocks: int,
    snapshots: int,
    layout: str | None,
    reductions: dict[str, bool],
) -> Shape:
    """Return the shape of the disk: the options of the profile that the engine has.

    Raises BadRequest if the engine lacks the layout or the data reduction that was asked for.
    """
    wished: dict[str, Any] = {"segments": _segments(parts, blocks, snapshots), **profile.options}
    known = inspect.signature(ENGINES[engine].plan).parameters
    options = {name: value for name, value in wished.items() if name in known}
    if layout or engine == DEFAULT:
        options["layout"] = layout or profile.layout
    options |= {name: True for name, wanted in reductions.items() if wanted}
    return plan(engine, blocks, **options)


def _require_able(shape: Shape, profile: str, parts: list[Stretch], snapshots: int) -> None:
    """Raises Unsupported if the engine lacks what the profile needs, before anything is run."""
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
            raise Unsupported(f"the engine {shape.engine} has no {what}: it cannot run {profile}")


def _segments(parts: list[Stretch], blocks: int, snapshots: int) -> int:
    """Return the number of segments for all that the snapshots may hold, and half as many more.

    So cleaning does not hide what snapshots cost.
    """
    written = sum(request.blocks for part in parts for request in part.requests if not request.read)
    taken = sum(action == "snapshot" for part in parts for action in part.phase.actions)
    pinned = blocks + snapshots * min(GENERATION, blocks) + min(written, taken * blocks)
    return with_reserve(-(-(3 * pinned // 2 + blocks // 2) // SEGMENT) + 1)


def _memory(sync: bool) -> str | None:
    """Return the folder for a temporary disk: in memory, unless the medium is to be measured."""
    return "/dev/shm" if not sync and Path("/dev/shm").is_dir() else None
