"""F: comparison with theory. Snapshots cost nothing to make, deleting costs what it frees, full
stripes cost their parity, cleaning costs what Desnoyers calculated.
"""

from experiments.chapter import Chapter, Settings
from experiments.measure import snapshot_cost
from refmodel.array.layout import LAYOUTS
from refmodel.bench import cleaning_theory, runner
from refmodel.bench.clients import Tally

IN_PLACE = {"in-place-raid5": (4, "4 I/Os"), "in-place-raid6": (6, "6 I/Os")}


def run(settings: Settings) -> Chapter:
    """Compare what snapshots, full stripes and cleaning cost with theory."""
    chapter = Chapter(
        "F",
        "What theory says that snapshots cost",
        "Creating a snapshot is O(1), and so is the foreground part of deleting one. Deletion "
        "frees exactly what only the snapshot held, in time proportional to that. Bytes written "
        "to devices per user byte: 2 or 3 on a mirror; 1.5 on full stripes of 2+1, 1.25 of 4+1, "
        "1.5 of 4+2. A small write takes 4 I/Os on in-place RAID-5 and 6 on RAID-6; a log never "
        "needs that. Cleaning: the analysis of Desnoyers.",
        "Disks of 64 MiB to 1 TiB in sparse files, 1 to 200 snapshots. All figures are counts, "
        "the same on any machine. CPU time is shown, but not judged.",
    )
    snapshot_cost.snapshots(chapter, settings)
    snapshot_cost.reclaim(chapter, settings)
    snapshot_cost.pinning(chapter, settings)
    _stripes(chapter, settings)
    _in_place(chapter, settings)
    _cleaning(chapter, settings)
    return chapter


def _stripes(chapter: Chapter, settings: Settings) -> None:
    settings.say("bytes written to devices per user byte, by layout")
    for layout, (k, m) in LAYOUTS.items():
        result = runner.run(
            "hcibench-32k-write", layout=layout, blocks=4096, operations=1024, seed=settings.seed
        )
        part = Tally.of(window.devices for window in result.windows)
        user = sum(phase.user_bytes_written for phase in result.phases)
        bound, found = (k + m) / k, part.bytes_written["destage"] / user
        log = part.bytes_written["foreground"] / user
        chapter.judge(
            f"Full stripes, {layout}: {bound:g} bytes to the capacity leg per user byte, plus the "
            "mirrored log",
            f"{found:.4f} to the capacity leg; to the log {log:.4f}, {m + 1} mirrors with "
            f"{log / (m + 1) - 1:.1%} of headers; bytes read for them: "
            f"{part.bytes_read['destage']} bytes",
            abs(found / bound - 1) <= 0.02 and part.bytes_read["destage"] == 0,
            "A difference of 2 % is allowed: data of the last segment may still be in the bank.",
        )


def _in_place(chapter: Chapter, settings: Settings) -> None:
    """Measure the classic small write on the baselines."""
    for engine, (ios, name) in IN_PLACE.items():
        claim = (
            f"A small write of {engine.replace('in-place-raid', 'in-place RAID-')} takes {name}: "
            "old data and parity are read, new are written"
        )
        settings.say(f"small writes of {engine}")
        result = runner.run(
            "4k-random-write",
            engine=engine,
            blocks=4096,
            operations=1000,
            depth=1,
            seed=settings.seed,
        )
        found = result.devices.ios["foreground"] / result.operations
        journal = result.devices.ios["journal"] / result.operations
        chapter.judge(
            claim,
            f"{found:.3f} device I/Os per 4 KiB write, and {journal:.3f} for the journal that "
            "closes the write hole",
            abs(found - ios) < 0.01,
        )


def _cleaning(chapter: Chapter, settings: Settings) -> None:
    for live in (0.5, 0.7, 0.8):
        settings.say(f"cleaning at a live fraction of {live}")
        found = cleaning_theory.measure(
            cleaning_theory.UNIFORM, "greedy", live, 16, slots=2400, seed=settings.seed
        )
        chapter.judge(
            f"Greedy cleaning, uniformly random writes, live fraction {live}, 16 blocks per "
            "segment: the analysis of Desnoyers",
            f"{found.amplification:.3f} chunks written per new chunk at a live fraction of "
            f"{found.live:.3f}; theory {found.theory:.3f}, ratio {found.ratio:.3f}",
            abs(found.ratio - 1) <= 0.05,
        )
