"""B: steady load through snapshots and failures, and load in steps (Net One's test of vSAN ESA)."""

from experiments.chapter import Chapter, Figure, Settings
from experiments.figures.plots import MARKERS, logarithmic, panels, svg
from experiments.measure import twins
from experiments.measure.timeline import timeline
from refmodel.array.layout import LAYOUTS
from refmodel.bench import runner
from refmodel.bench.results import Part, Result
from refmodel.bench.workloads.profiles import PROFILES

PROFILE = "netone-steady"
RIPPLE = 0.02  # allowed difference of device I/Os: by chance more reads are of the lost device
SLOWER = 2  # allowed factor of latency: at a constant rate a little more work makes a queue
SIZES = (4, 8, 64, 128)  # KiB
STEPS_COLOURS = ("#08306b", "#2171b5", "#6baed6", "#bdd7e7")


def run(settings: Settings) -> Chapter:
    """Measure a steady load through snapshots and failures, as in Net One's test."""
    chapter = Chapter(
        "B",
        "A steady load, through snapshots and failures",
        "Net One, vSAN ESA, four hosts, RAID-5: eight virtual machines at 5,000 IOPS each. "
        "Taking and holding snapshots changes nothing. Deleting them adds at most 0.05 ms for 10 "
        "s. One of two paths fails: no change; when it is back, latency varies for 10 s. A disk "
        "is unmounted: it is absent, without a change; after the repair timer (3 minutes) it is "
        "rebuilt, with higher latency until that is done. A disk known to be dead is rebuilt at "
        "once.",
        f"Profile {PROFILE} at scale {settings.scale:g} on RAID-5 4+1 with a spare: eight clients "
        "at a quarter of the rate that the disk can do. Latency counts from the moment at which "
        "a request was due. There is no network: a path that fails is a device that is absent "
        "for a moment. The repair timer has a clock of its own, which the profile moves.",
    )
    settings.say(f"{PROFILE}, with faults and without, on RAID-5 and on a mirror")
    result, control = (
        runner.run(PROFILE, scale=settings.scale, seed=settings.seed, still=still)
        for still in (False, True)
    )
    mirror = runner.run(
        PROFILE, scale=settings.scale / 2, seed=settings.seed, layout="mirror", still=True
    )
    raid5 = runner.run(PROFILE, scale=settings.scale / 2, seed=settings.seed, still=True)
    _snapshots(chapter, result, control)
    _faults(chapter, result, control)
    _layouts(chapter, raid5, mirror)
    chapter.figures.append(
        timeline(
            result,
            control,
            name="steady-through-faults",
            title="Eight clients at a constant rate, while devices fail and come back",
            log_latency=True,
            caption=(
                "Net One's test on the log-structured engine. Resync and rebuild are causes of "
                "their own; clients wait longer while they last. At the moment of a fault "
                "nothing changes for a write. While a device of RAID-5 is gone, its data is read "
                "from the four others: that is the cost of the layout, with any engine."
            ),
        )
    )
    _steps(chapter, settings)
    return chapter


def _snapshots(chapter: Chapter, result: Result, control: Result) -> None:
    for name, claim in (
        ("4 snapshots", "Taking snapshots changes nothing"),
        ("hold", "Holding them changes nothing"),
        ("delete all", "Deleting them changes nothing"),
    ):
        chapter.judge(
            f"{claim}: device I/Os that an operation waits for",
            f"ratios of with to without snapshots: {twins.ratios(result, control, name)}",
            twins.alike(result.part(name), control.part(name)),
        )
    for names, claim, why in (
        (
            ("4 snapshots", "hold"),
            "Taking and holding snapshots: no change of latency",
            "The first write to a leaf of the map after a snapshot copies the leaf, in the "
            "clients' thread.",
        ),
        (
            ("delete all",),
            "Deleting them: at most 0.05 ms more, for 10 s",
            "Reclaim takes a step before each write, in the clients' thread, and uses their idle "
            "time: requests that arrive meanwhile wait. In the published set-up it has cores of "
            "its own.",
        ),
    ):
        pairs = [(result.part(name), control.part(name)) for name in names]
        chapter.judge(
            f"{claim}: CPU time",
            "median latency "
            + "; ".join(
                f"{_latency(part)}, without snapshots {_latency(twin)} ({part.name})"
                for part, twin in pairs
            ),
            all(part.latency(50) < SLOWER * twin.latency(50) for part, twin in pairs),
            f"A latency up to {SLOWER} times as long counts as no change. {why}",
            must=False,
        )


def _faults(chapter: Chapter, result: Result, control: Result) -> None:
    layout = PROFILES[PROFILE].layout
    k, m = LAYOUTS[layout]
    for name, claim, mirrors in (
        ("path down", "One path is cut: no change at the moment of the fault", 1),
        ("absent", "A device is absent: no change at the moment of the fault", 0),
    ):
        part, twin = result.part(name), control.part(name)
        reads = sum(request.read for request in part.requests) / part.operations
        lost = reads / (k + m) * (k - 1)  # more reads, where the piece that is gone is asked for
        expected = (
            twin.foreground + lost - mirrors * (1 - reads)
        )  # and perhaps a mirror of the log less to write
        writes, before = twins.waited(part).writes, twins.waited(twin).writes
        repair = part.devices.ios["resync"] + part.devices.ios["rebuild"]
        chapter.judge(
            claim,
            f"{part.foreground:.3f} foreground device I/Os per operation, {twin.foreground:.3f} "
            f"without the fault; I/Os of resync and rebuild: {repair}. A write takes "
            f"{f'{mirrors} less' if mirrors else 'as many'} ({writes:,} device writes, {before:,} "
            f"without), a read of the device's data takes {k} in place of 1: {expected:.3f}",
            writes * (m + 1) == before * (m + 1 - mirrors)
            and part.foreground <= expected * (1 + RIPPLE)
            and not repair,
            "Reading a lost piece from the others is the cost of the layout. It lasts until the "
            "piece is back. Mirrors do not have it.",
        )
    for name, cause, claim in (
        ("path back", "resync", "The path is back: latency varies while what was missed is copied"),
        (
            "timer: rebuild",
            "rebuild",
            "The repair timer runs out: the device is rebuilt elsewhere, with higher latency "
            "until that is done",
        ),
        ("dead: rebuild", "rebuild", "A device known to be dead is rebuilt at once"),
    ):
        part, twin = result.part(name), control.part(name)
        during = [number for number, window in enumerate(part.windows) if window.devices.ios[cause]]
        done = bool(during) and during[-1] < len(part.windows) - 1
        mib = part.devices.bytes_written[cause] / 2**20
        chapter.judge(
            claim,
            f"{part.devices.ios[cause]} device I/Os of {cause}, {mib:.1f} MiB written, in the "
            f"first {len(during)} of {len(part.windows)} intervals; {part.foreground:.3f} "
            f"foreground device I/Os per operation, {twin.foreground:.3f} without; median latency "
            f"{_latency(part)}, without {_latency(twin)}",
            bool(during) and during[0] == 0 and done,
            "" if done else "It did not end in its phase.",
        )
    earlier = [part for part in result.phases if part.name in ("steady", "hold", "absent")]
    chapter.judge(
        "Before the repair timer runs out nothing is rebuilt",
        f"{sum(part.devices.ios['rebuild'] for part in earlier)} device I/Os of rebuild before "
        f"it, {result.part('timer: rebuild').devices.ios['rebuild']} after",
        not any(part.devices.ios["rebuild"] for part in earlier)
        and result.part("timer: rebuild").devices.ios["rebuild"] > 0,
    )


def _layouts(chapter: Chapter, raid5: Result, mirror: Result) -> None:
    ratio = raid5.foreground / mirror.foreground
    speed = raid5.part("maximum").iops / mirror.part("maximum").iops
    chapter.judge(
        "RAID-1 and RAID-5 perform alike",
        f"{ratio:.3f} times the foreground device I/Os, the same bytes written; {speed:.2f} times "
        "the operations per CPU second",
        twins.same(raid5, mirror) and abs(ratio - 1) <= RIPPLE,
        "CPU time differs because parity is computed.",
    )


def _steps(chapter: Chapter, settings: Settings) -> None:
    """Latency against load, for four sizes."""
    drawing, (axis,) = panels(1, width=7.5, height=3.2)
    flat = True
    found = []
    for size, marker, line in zip(SIZES, MARKERS[: len(SIZES)], STEPS_COLOURS, strict=True):
        settings.say(f"netone-steps-{size}k")
        result = runner.run(f"netone-steps-{size}k", scale=settings.scale, seed=settings.seed)
        steps = [part for part in result.phases if part.name != "maximum"]
        median = [part.latency(50) for part in steps]
        axis.plot(
            [part.name for part in steps], median, marker=marker, color=line, label=f"{size} KiB"
        )
        axis.plot(
            [part.name for part in steps],
            [part.latency(99) for part in steps],
            ":",
            marker=marker,
            color=line,
            markersize=4,
        )
        flat = flat and median[1] < 4 * median[0]
        found.append(
            f"{size} KiB {result.part('maximum').iops:,.0f} IOPS, {median[0]:.0f} to "
            f"{median[-1]:.0f} us"
        )
    axis.set(xlabel="load, in percent of the maximum", ylabel="latency, us\n(99 % dotted)")
    logarithmic(axis)
    axis.legend(fontsize=8.5)
    caption = (
        "Requests arrive at a constant rate, one at a time; latency counts from the moment "
        "at which each was due. The maximum is measured with eight in flight, which share "
        "log records."
    )
    chapter.figures.append(
        Figure("load-steps", "Load in steps, 70 % read", caption, svg(drawing, "load-steps"))
    )
    chapter.judge(
        "Latency stays low until the load comes near the maximum, at every size",
        f"maximum, and median latency at 20 % and at 80 % load: {'; '.join(found)}",
        flat,
        "The factor from 20 % to 40 % must be below 4. These are times: other work on the "
        "machine changes them.",
        must=False,
    )


def _latency(part: Part) -> str:
    return f"{part.latency(50):,.0f} us"
