"""D: a host-side read cache (vFRC)."""

import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from experiments.chapter import Chapter, Figure, Settings
from experiments.figures.plots import MUTED, colour, panels, svg
from refmodel.bench import runner
from refmodel.bench.workloads.workload import BLOCK, DISK
from refmodel.cache.disk import CachedDisk
from refmodel.cache.settings import CacheSettings
from refmodel.registry import DEFAULT, create, open_disk, plan

CRYSTAL, SIZING = "vfrc-crystal", "vfrc-sizing"
SHARES = (
    0.02,
    0.05,
    0.1,
    6 / 32,
    12 / 32,
    0.6,
    1.0,
)  # share of the disk; 6 and 12 GB of 32 GB are the published ones
PUBLISHED = {6 / 32: 0.42, 12 / 32: 0.47}


def run(settings: Settings) -> Chapter:
    """Measure a host-side read cache, as in the study of vFRC."""
    chapter = Chapter(
        "D",
        "A read cache in the host",
        "vFRC: a disk of 32 GB, a cache of 6 GB with blocks of 4 KB, write-through. The rate of "
        "sequential reads rises 3.5 times, that of 4K queued random reads 5 times; hit rate 42 % "
        "with 6 GB and 47 % with 12 GB at a 50:50 mix. Resizing empties the cache; migration "
        "copies its contents or drops them.",
        f"Profiles {CRYSTAL} and {SIZING} at scale {settings.scale:g} on the log-structured "
        "engine behind a cache of 6/32 of the disk, and of other sizes. Cache and disk are files "
        "in the same memory, so the gain of a faster medium is not measured. The disk's device "
        "I/Os that the cache saves are counted.",
    )
    _crystal(chapter, settings)
    _sizing(chapter, settings)
    _moves(chapter, settings)
    return chapter


def _crystal(chapter: Chapter, settings: Settings) -> None:
    settings.say(f"{CRYSTAL}, without a cache and with one")
    without, cached = (
        runner.run(CRYSTAL, scale=settings.scale, seed=settings.seed, cache_bytes=size)
        for size in (0, _bytes(6 / 32, settings))
    )
    for name, claim in (
        (
            "sequential read",
            "The cache answers sequential reads (published: 3.5 times the rate)",
        ),
        (
            "4K queued read",
            "The cache answers 4K queued random reads (published: 5 times the rate)",
        ),
    ):
        part, twin = cached.part(name), without.part(name)
        chapter.judge(
            claim,
            f"{part.hit_rate:.1%} hits; {part.foreground:.3f} device I/Os of the disk per read, "
            f"{twin.foreground:.3f} without the cache",
            part.hit_rate > 0.9 and part.foreground < 0.1 * twin.foreground,
            "The published factors compare flash with a disk array. That is not measured here.",
        )
    written = [
        sum(
            run.part(name).devices.ios["foreground"]
            for name in ("sequential write", "4K queued write")
        )
        for run in (cached, without)
    ]
    chapter.judge(
        "The cache is write-through: every write reaches the disk",
        f"{written[0]:,} foreground device I/Os of the disk for the writes, {written[1]:,} "
        "without the cache",
        written[0] == written[1],
    )


def _sizing(chapter: Chapter, settings: Settings) -> None:
    rates = {}
    for share in SHARES:
        settings.say(f"{SIZING} with a cache of {share:.0%} of the disk")
        rates[share] = (
            runner.run(
                SIZING,
                scale=settings.scale,
                seed=settings.seed,
                cache_bytes=_bytes(share, settings),
            )
            .part("run")
            .hit_rate
        )
    small, large = (rates[share] for share in PUBLISHED)
    bends = (SHARES[0], *PUBLISHED, SHARES[-1])
    gains = [(rates[high] - rates[low]) / (high - low) for low, high in pairwise(bends)]
    chapter.judge(
        "The hit rate rises with the size of the cache, but ever more slowly: 5 points for twice "
        "the size",
        f"{small:.1%} of the reads with 6/32 of the disk, {large:.1%} with 12/32; of all requests "
        f"(half of them writes) {small / 2:.1%} and {large / 2:.1%}",
        small < large < 2 * small and all(first > second for first, second in pairwise(gains)),
        "The curve depends on the skew of the requests, which was not published. Here it is "
        "Zipf's law with exponent 0.9.",
    )
    drawing, (axis,) = panels(1, width=7.0, height=3.2)
    shares = [100 * share for share in SHARES]
    axis.plot(
        shares,
        [100 * rate for rate in rates.values()],
        marker="o",
        color=colour(DEFAULT),
        label="of reads",
    )
    axis.plot(
        shares,
        [50 * rate for rate in rates.values()],
        marker="o",
        color="#8fbcdb",
        label="of all requests (half of them writes)",
    )
    axis.plot(
        [100 * share for share in PUBLISHED],
        [100 * rate for rate in PUBLISHED.values()],
        "x",
        color=MUTED,
        markersize=8,
        markeredgewidth=2,
        label="published",
    )
    axis.set(
        xlabel="size of the cache, in percent of the disk",
        ylabel="hit rate, percent",
        ylim=(0, 105),
    )
    axis.legend(fontsize=8.5, loc="lower right")
    chapter.figures.append(
        Figure(
            "hit-rate",
            "Hit rate by the size of the cache",
            "4 KiB, half reads and half writes, Zipf's law with exponent 0.9, after a warm-up as "
            "long as the run.",
            svg(drawing, "hit-rate"),
        )
    )


def _moves(chapter: Chapter, settings: Settings) -> None:
    """Measure resizing and migration on a small disk."""
    settings.say("resizing the cache, and moving it")
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        path, shape = Path(folder) / "disk", plan(DEFAULT, 1024)
        create(path, shape, sync=False, cache=CacheSettings.of(shape, 256 * BLOCK))
        with closing(open_disk(path, sync=False)) as disk:
            assert isinstance(disk, CachedDisk)
            disk.read(0, 200)
            held = [disk.cache.used_slots]
            taken = disk.cache.migrate(contents=True)
            held.append(disk.cache.used_slots)
            disk.cache.migrate(contents=False)
            held.append(disk.cache.used_slots)
            disk.read(0, 200)
            disk.cache.resize(512 * BLOCK)
            held.append(disk.cache.used_slots)
    chapter.judge(
        "Migration copies the contents or drops them; resizing empties the cache",
        f"{held[0]} blocks held; {held[1]} after a migration that copied {taken}, {held[2]} after "
        f"one that copied none; {held[3]} after a resize",
        held == [200, 200, 0, 0],
    )


def _bytes(share: float, settings: Settings) -> int:
    return max(1, round(share * DISK * settings.scale)) * BLOCK
