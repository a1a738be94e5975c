"""The command line of the engine: one operation a call, on a disk that lasts."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click
from click.core import ParameterSource
from rich.live import Live

from refmodel import __version__, bench, cleaning, control, metrics, pictures
from refmodel import inspect as inspection
from refmodel import top as watch
from refmodel.adapter import Adapter
from refmodel.adapter import serve as speak
from refmodel.bugs import BUGS
from refmodel.cache.disk import CachedDisk
from refmodel.cache.settings import SMALLEST, Settings
from refmodel.disk import put_back
from refmodel.engines import DEFAULT, ENGINES, Disk, create, open_disk, plan
from refmodel.errors import DataLost, DiskBusy, DiskError, NotADisk, Unsupported
from refmodel.geometry import CLEANERS
from refmodel.layout import LAYOUTS
from refmodel.profiles import PROFILES
from refmodel.progress import progress
from refmodel.scrub import scrub as scrub_disk
from refmodel.serve import serve as become_nbdkit

REFUSED, BUSY, DAMAGED = 1, 4, 5

EPILOG = "Exit status: 0 done; 1 refused, nothing changed; 2 wrong usage; 4 another process has the disk open; 5 data is lost or damaged."
DISK = click.argument("disk", metavar="DIR", type=click.Path(path_type=Path))
ENGINE = click.option("--engine", type=click.Choice(list(ENGINES)), default=DEFAULT, show_default=True, help="Which engine's disk: docs/engines.md.")
CACHE = click.option("--cache-bytes", type=click.IntRange(min=0), default=0, show_default=True, help="Size of a read cache in front of the disk; 0: none.")
CACHE_BLOCK = click.option("--cache-block-bytes", type=int, default=SMALLEST, show_default=True, help="Of a cache block: 4 KiB to 1 MiB.")
COMPRESSION = click.option("--compression", is_flag=True, help="Compress blocks to whole eighths of one: 512 bytes of 4 KiB.")
DEDUPLICATION = click.option("--deduplication", is_flag=True, help="Store blocks with the same data once.")
UNSYNCED = click.option("--no-sync", is_flag=True, help="Do not wait for the medium at a flush. For tests and benchmarks only.")


@dataclass
class Call:
    """What this process was called with."""

    arguments: list[str]
    stdin: bytes = b""  # as far as the command wants it


class Commands(click.Group):
    """Refusals and damage end in one line and a status, never in a traceback. Where another process serves the disk, the command runs there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = Call(list(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except DiskBusy as busy:
            served = control.held.get() is not None  # this is the other process
            answer = None if served else control.forward(busy.path, ctx.obj.arguments, ctx.obj.stdin)
            if answer is None:
                _fail(*explained(busy))
            stdout, stderr, status = answer
            sys.stdout.buffer.write(stdout)
            sys.stderr.buffer.write(stderr)
            sys.exit(status)
        except (DiskError, NotADisk, OSError) as error:
            _fail(*explained(error))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="refmodel")
def main() -> None:
    """A log-structured virtual disk with snapshots, on real files: one operation a call, on a disk that lasts."""


@main.command("create")
@DISK
@ENGINE
@click.option("--blocks", type=click.IntRange(min=1), required=True, help="Size of the virtual disk, in blocks.")
@click.option("--layout", type=click.Choice(list(LAYOUTS)), default="mirror", show_default=True)
@click.option("--spares", type=int, default=0, show_default=True, help="Devices that wait for one to fail.")
@click.option("--repair-timer", type=float, default=3600, show_default=True, help="Seconds that a device may be absent before it is rebuilt on a spare.")
@click.option("--repair-share", type=int, default=30, show_default=True, help="Percent of device I/Os that resync and rebuild may take.")
@click.option("--cleaner", type=click.Choice(CLEANERS), default=CLEANERS[0], show_default=True, help="Which segment is cleaned first.")
@click.option("--write-back", is_flag=True, help="Acknowledge before it is durable: a crash keeps a prefix, no shorter than to the last flush.")
@click.option("--block-bytes", type=int, default=4096, show_default=True)
@click.option("--segment-blocks", type=int, default=128, show_default=True, help="Blocks of a segment.")
@click.option("--segments", type=int, help="Segments of the capacity leg.  [default: twice the disk's blocks, and a reserve]")
@click.option("--log-bytes", type=int, help="Size of the durable log.  [default: by the size of the disk, at most 64 MiB]")
@click.option("--pages", type=int, help="Pages for the maps.  [default: by the size of the capacity leg]")
@click.option("--fanout", type=int, default=0, help="Entries of a tree node at most; small ones make deep trees.  [default: what a page holds]")
@click.option("--layers", type=int, help="Of a redo-log chain: base and deltas at most.  [default: 256]")
@click.option("--table-cache", type=int, help="Of a redo-log chain: sectors of grain tables in memory; -1: all.  [default: the flavour's]")
@click.option("--strip-blocks", type=int, help="Of an in-place array: blocks of a stripe on one device.  [default: 16]")
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@click.pass_context
def create_command(ctx: click.Context, disk: Path, engine: str, blocks: int, cache_bytes: int, cache_block_bytes: int, **options) -> None:
    """Make a new disk in an empty or absent folder."""
    shape = plan(engine, blocks, **_given(ctx, options))
    create(disk, shape, cache=Settings.of(shape, cache_bytes, cache_block_bytes) if cache_bytes else None)


@main.command(epilog="Example: refmodel write d 8 --text hello; printf … | refmodel write d 8")
@DISK
@click.argument("lba", type=int)
@click.option("--text", help="Write this text, filled up with zeroes to whole blocks, in place of stdin.")
@click.option("--fill", type=click.IntRange(0, 255), help="Write COUNT blocks of this byte.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="Blocks, with --fill.")
@UNSYNCED
@click.pass_obj
def write(call: Call, disk: Path, lba: int, text: str | None, fill: int | None, count: int, no_sync: bool) -> None:
    """Write whole blocks from LBA on: of stdin, filled up with zeroes to whole blocks, unless an option says otherwise."""
    if text is not None and fill is not None:
        raise click.UsageError("--text and --fill exclude each other")
    if text is None and fill is None:
        call.stdin = sys.stdin.buffer.read()
    with _opened(disk, no_sync) as opened:
        size = opened.geometry.block_bytes
        if fill is not None:
            data = bytes([fill]) * (size * count)
        else:
            data = text.encode() if text is not None else call.stdin
        opened.write(lba, data.ljust(max(1, -(-len(data) // size)) * size, b"\0"))


@main.command()
@DISK
@click.argument("lba", type=int)
@click.argument("count", type=int, default=1)
@click.option("--view", help="A snapshot, in place of the live view.")
def read(disk: Path, lba: int, count: int, view: str | None) -> None:
    """Read COUNT blocks from LBA on to stdout."""
    with _opened(disk) as opened:
        sys.stdout.buffer.write(opened.read(lba, count, view))


@main.command()
@DISK
@click.argument("lba", type=int)
@click.argument("count", type=int, default=1)
@UNSYNCED
def unmap(disk: Path, lba: int, count: int, no_sync: bool) -> None:
    """Give COUNT blocks from LBA on back: they read as zeroes."""
    with _opened(disk, no_sync) as opened:
        opened.unmap(lba, count)


@main.command()
@DISK
def flush(disk: Path) -> None:
    """Make durable what was acknowledged; of interest with --write-back."""
    with _opened(disk) as opened:
        opened.flush()


@main.command()
@DISK
@click.argument("name")
def snapshot(disk: Path, name: str) -> None:
    """Keep what the disk reads as now, under a name."""
    with _opened(disk) as opened:
        opened.snapshot(name)


@main.command()
@DISK
@click.argument("name")
def delete(disk: Path, name: str) -> None:
    """Delete a snapshot; what only it held is freed in the background."""
    with _opened(disk) as opened:
        opened.delete(name)


@main.command()
@DISK
@click.argument("name")
def revert(disk: Path, name: str) -> None:
    """Make the live view what a snapshot is; every snapshot stays."""
    with _opened(disk) as opened:
        opened.revert(name)


@main.command()
@DISK
def ls(disk: Path) -> None:
    """List the snapshots, oldest first, with the number of blocks that each maps."""
    with _opened(disk) as opened:
        for name in opened.snapshots():
            click.echo(f"{name}\t{len(opened.mapped(0, opened.geometry.blocks, name))} blocks")


@main.command()
@DISK
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--openmetrics", is_flag=True, help="OpenMetrics text, as Prometheus reads it.")
@click.option("--cheap", is_flag=True, help="With --json: leave out what costs a walk over the maps.")
def stats(disk: Path, as_json: bool, openmetrics: bool, cheap: bool) -> None:
    """Counters: what the disk holds, and what was done since it was opened; docs/counters.md names them."""
    with _opened(disk) as opened:
        if as_json:
            click.echo(json.dumps(metrics.as_json(opened, walk=not cheap)))
        elif openmetrics:
            click.echo(metrics.openmetrics(opened), nl=False)
        else:
            click.echo("\n".join(metrics.table(opened)))


@main.command()
@DISK
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many.  [default: when the disk is closed]")
def top(disk: Path, interval: float, count: int | None) -> None:
    """Watch the counters of a disk that a server or a bench has open."""
    with Live(auto_refresh=False) as live:
        for frame in islice(watch.frames(disk, interval), count):
            live.update(frame, refresh=True)


@main.command(epilog="Example: refmodel inspect d --html d.html; refmodel inspect d --svg views > views.svg")
@DISK
@click.option("--html", type=click.File("w", lazy=True), metavar="FILE", help="A page with all the pictures, that needs nothing else.")
@click.option("--svg", type=click.Choice(list(pictures.PICTURES)), help="One picture, on stdout.")
def inspect(disk: Path, html, svg: str | None) -> None:
    """The log, the views, the maps and the segments in words, or in pictures."""
    with _opened(disk) as opened:
        _require_log_structured(opened, "inspect")
        if html is not None:
            html.write(pictures.page(opened))
        elif svg is not None:
            click.echo(pictures.svg(opened, svg))
        else:
            click.echo(inspection.describe(opened))


@main.command()
@DISK
def scrub(disk: Path) -> None:
    """Verify every copy of everything, repair what can be, say what is lost."""
    with _opened(disk) as opened:
        _require_log_structured(opened, "scrub")
        found = scrub_disk(opened)
    for what, count in found.verified.items():
        click.echo(f"{count} {what}s verified, {found.repaired[what]} copies repaired")
    for line in (*found.lost, *found.contradictions):
        click.echo(line, err=True)
    if not found.clean:
        _fail(f"{len(found.lost)} things are lost, {len(found.contradictions)} contradictions between the maps", DAMAGED)


@main.command(epilog="A disk that cannot be opened without the device stays as it is.")
@DISK
@click.argument("device", type=int)
@click.option("--mode", type=click.Choice(["absent", "degraded"]), default="absent", show_default=True, help="It may come back, or it will not.")
def fail(disk: Path, device: int, mode: str) -> None:
    """Pull a device out: the file is renamed to device-N.pulled."""
    with _opened(disk) as opened:
        opened.fail(device, mode)


@main.command("return")
@DISK
@click.argument("device", type=int)
def return_command(disk: Path, device: int) -> None:
    """Put an absent device back; what it missed is resynced while the disk is used, or at once by `settle`."""
    try:
        with _opened(disk) as opened:
            opened.return_(device)
    except DataLost:
        put_back(disk, device)  # it could not be opened without it
        open_disk(disk).close()


@main.command()
@DISK
@click.argument("device", type=int)
def replace(disk: Path, device: int) -> None:
    """Put a new, empty device in the place of one that is gone; it is rebuilt while the disk is used, or at once by `settle`."""
    with _opened(disk) as opened:
        opened.replace(device)


@main.command()
@DISK
def settle(disk: Path) -> None:
    """Finish reclaim, resync and rebuild."""
    with _opened(disk) as opened:
        opened.settle()


@main.command(epilog="Exit status: 0 fully redundant, 1 not.")
@DISK
def status(disk: Path) -> None:
    """Devices and components: who is active, absent, degraded, stale or resyncing."""
    with _opened(disk) as opened:
        standings = opened.status()
        shape, array = opened.geometry, opened.array
        spares = ", ".join(str(device) for device, _ in array.spares) or "none"
        click.echo(f"layout {shape.layout}, tolerates {shape.m}; spares: {spares}")
        for standing in standings:
            waits = f", repair in {max(0, shape.repair_timer - standing.absent):.0f} s" if standing.state == "absent" else ""
            lacks = f", lacks {standing.lacks} stripes" if standing.lacks else ""
            click.echo(f"{standing.leg:<12} component {standing.component}  device {standing.device}  {standing.state}{waits}{lacks}")
    sys.exit(0 if array.redundant else REFUSED)


@main.command()
@DISK
def clean(disk: Path) -> None:
    """Clean until a segment has become free."""
    with _opened(disk) as opened:
        gained = opened.clean()
        click.echo("cleaned" if gained else "nothing to gain", err=True)


@main.command()
@DISK
def checkpoint(disk: Path) -> None:
    """Write a checkpoint, so that the log may be forgotten."""
    with _opened(disk) as opened:
        opened.checkpoint()


@main.command("resize-cache")
@DISK
@click.argument("bytes", type=click.IntRange(min=1))
@click.option("--block-bytes", type=int, help="Of a cache block.  [default: as it is]")
def resize_cache(disk: Path, bytes: int, block_bytes: int | None) -> None:
    """Give the read cache another size, while the disk is in use too. It is empty then."""
    with _opened(disk) as opened:
        _cached(opened).resize(bytes, block_bytes)


@main.command()
@DISK
@click.option("--without-cache", is_flag=True, help="Leave the contents of the read cache behind.")
def migrate(disk: Path, without_cache: bool) -> None:
    """Move to another host: its read cache is another one, which takes the contents along. Of interest while the disk is served."""
    with _opened(disk) as opened:
        slots = _cached(opened).migrate(contents=not without_cache)
    click.echo(f"{slots} slots of the cache taken along", err=True)


@main.command("bench", epilog="docs/workloads.md describes the profiles. Example: refmodel bench --profile hpe-8k-50 --scale 0.2")
@click.argument("disk", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option("--profile", metavar="NAME", type=click.Choice([*PROFILES, "cleaning"]), multiple=True, help="A workload; may be repeated.  [default: the three of 4 KiB at random]")
@ENGINE
@click.option("--layout", type=click.Choice(list(LAYOUTS)), help="Of the devices.  [default: the profile's, where the engine has layouts]")
@click.option("--scale", type=click.FloatRange(min=0.001), default=1.0, show_default=True, help="Of the disk, 64 MiB at 1, and of the number of operations.")
@click.option("--snapshots", type=click.IntRange(min=0), default=0, show_default=True, help="How many are held from the beginning on.")
@click.option("--operations", type=click.IntRange(min=1), help="How many, whatever the scale.")
@click.option("--blocks", type=click.IntRange(min=bench.FILL), help="Size of the disk, whatever the scale.")
@click.option("--depth", type=click.IntRange(1, 1024), help="Operations in flight together.  [default: the profile's]")
@click.option("--seed", type=int, default=1, show_default=True)
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@click.option("--compare", is_flag=True, help="Run the same operations on peers, and print ratios.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the results to a file, one JSON object a line.")
@click.option("--sync", is_flag=True, help="Wait for the medium at every flush, and measure the wall's seconds.")
def bench_command(disk: Path | None, profile: tuple[str, ...], json_file: Path | None, **options) -> None:
    """Measure operations a second and device I/Os an operation, on a new disk in DIR that stays, or on a temporary one.

    The profile `cleaning` measures write amplification against theory, for every policy of the cleaner; it takes minutes.
    """
    names = profile or ("4k-random-write", "4k-random-read", "4k-random-50-50")
    if disk is not None and len(names) > 1:
        raise click.UsageError("a disk that stays is for one profile: name it with --profile")
    lines = []
    for name in names:
        if name == "cleaning":
            for row in cleaning.table():
                click.echo(cleaning.describe(row))
            continue
        with progress(name) as watch_run:
            result = bench.run(name, path=disk, watch=watch_run, **options)
        click.echo(bench.describe(result))
        lines.append(json.dumps(result.as_dict()) + "\n")
    if json_file is not None:
        json_file.write_text("".join(lines))


@main.command(epilog="Any other command on the disk works meanwhile. Try: nbdinfo --list 'nbd+unix:///?socket=PATH'")
@DISK
@click.option("--socket", "socket_path", type=click.Path(path_type=Path), required=True, metavar="PATH", help="The Unix socket to listen on.")
@UNSYNCED
def serve(disk: Path, socket_path: Path, no_sync: bool) -> None:
    """Serve the disk over NBD until SIGTERM or SIGINT: live as the default export, each snapshot as a read-only export of its name."""
    become_nbdkit(disk, socket_path, sync=not no_sync)


@main.command()
@ENGINE
@click.option("--layout", type=click.Choice(list(LAYOUTS)), default="mirror", show_default=True)
@click.option("--spares", type=int, default=0, show_default=True)
@click.option("--write-back", is_flag=True, help="Promise `prefix` in place of `ack`.")
@click.option("--block-bytes", type=int, default=4096, show_default=True)
@click.option("--segment-blocks", type=int, default=128, show_default=True)
@click.option("--fanout", type=int, default=0)
@click.option("--capacity-percent", type=int, help="Capacity leg in percent of the disk's blocks.")
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@click.option("--plant", type=click.Choice(list(BUGS)), default=None, help="Have this bug.", metavar="BUG")
@click.pass_context
def adapter(ctx: click.Context, engine: str, plant: str | None, **options) -> None:
    """Speak the dialogue of the conformance kit on stdin and stdout."""
    adapted = Adapter(engine=engine, plant=plant or "", **_given(ctx, options))
    try:
        speak(adapted, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        adapted.close()


def _given(ctx: click.Context, options: dict) -> dict:
    """The options that were asked for: what was not is for the engine to choose."""
    return {name: value for name, value in options.items() if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}


def _require_log_structured(disk: Disk, command: str) -> None:
    if disk.geometry.engine != DEFAULT:
        raise Unsupported(f"only the engine {DEFAULT} has the command {command}; this disk is of the engine {disk.geometry.engine}")


def _cached(disk: Disk) -> CachedDisk:
    if not isinstance(disk, CachedDisk):
        raise Unsupported("the disk has no read cache: create it with --cache-bytes")
    return disk


@contextmanager
def _opened(path: Path, no_sync: bool = False) -> Iterator[Disk]:
    if (served := control.held.get()) is not None:
        yield served
        return
    disk = open_disk(path, sync=not no_sync)
    try:
        yield disk
    except BaseException:
        disk.abandon()
        raise
    disk.close()


def explained(error: Exception) -> tuple[str, int]:
    """The line and the exit status that an error gets."""
    if isinstance(error, DiskError):
        return f"{error.code}: {error}", DAMAGED if isinstance(error, DataLost) else REFUSED
    return str(error), BUSY if isinstance(error, DiskBusy) else REFUSED


def _fail(message: str, status: int) -> None:
    click.echo(f"refmodel: {message}", err=True)
    sys.exit(status)
