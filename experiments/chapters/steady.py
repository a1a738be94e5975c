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
RIPPLE = 0.02  # of device I/Os: chance, in how many reads are of what a device held
SLOWER = 2  # times the latency; at a constant rate a little more work is a queue
SIZES = (4, 8, 64, 128)  # KiB
STEPS_COLOURS = ("#08306b", "#2171b5", "#6baed6", "#bdd7e7")


def run(settings: Settings) -> Chapter:
    chapter = Chapter(
        "B", "A steady load, through snapshots and failures",
        "Net One, vSAN ESA, four hosts, RAID-5: eight virtual machines at 5,000 IOPS each. Taking and holding "
        "snapshots: no change. Deleting: at most +0.05 ms for 10 s. One path of two cut: none; path back: 10 s "
        "of ripple. "
        "A disk unmounted: absent, no change; after the repair timer, 3 minutes there, it is rebuilt, with "
        "higher latency until that is done. A disk known to be dead is rebuilt at once.",
        f"Profile {PROFILE} at scale {settings.scale:g} on RAID-5 4+1 with a spare: eight clients at a quarter of "
        "what the disk can do, whatever happens to it; latency from the moment a request was due. There is no "
        "network: "
        "a path that flaps is a device that is absent for a moment. The repair timer runs by a clock of its own, "
        "which the profile moves on.",
    )  # fmt: skip
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
            result, control, name="steady-through-faults", title="Eight clients at a constant rate, while devices fail and come back", log_latency=True,
            caption=(
                "Net One's test on the log-structured engine. Resync and rebuild are causes of their own, and "
                "hold clients up while they last; at the moment of a fault nothing happens to a write. "
                "While a device of RAID-5 is gone, what it held is read from the four others: that is the layout's "
                "price, and the same with any engine."
            ),
        )
    )  # fmt: skip
    _steps(chapter, settings)
    return chapter


def _snapshots(chapter: Chapter, result: Result, control: Result) -> None:
    for name, claim in (
        ("4 snapshots", "Taking snapshots changes nothing"),
        ("hold", "Holding them changes nothing"),
        ("delete all", "Deleting them changes nothing"),
    ):
        chapter.judge(
            f"{claim}: in what an operation waits for at the devices",
            f"with snapshots to without: {twins.ratios(result, control, name)}",
            twins.alike(result.part(name), control.part(name)),
        )
    for names, claim, why in (
        (
            ("4 snapshots", "hold"),
            "Taking and holding snapshots: no change of latency",
            "What is written first after a snapshot has its leaf of the map copied, in the clients' thread.",
        ),
        (
            ("delete all",),
            "Deleting them: at most 0.05 ms more, for 10 s",
            "Reclaim takes a step before each write, in the clients' thread, and uses what the clients leave idle: what "
            "arrives meanwhile waits for it. In the published set-up it has cores of its own.",
        ),
    ):
        pairs = [(result.part(name), control.part(name)) for name in names]
        chapter.judge(
            f"{claim}: by processor time",
            "half of all latencies within "
            + "; ".join(
                f"{_latency(part)}, without snapshots {_latency(twin)} ({part.name})"
                for part, twin in pairs
            ),
            all(part.latency(50) < SLOWER * twin.latency(50) for part, twin in pairs),
            f"Up to {SLOWER} times counts as none. {why}",
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
            f"{part.foreground:.3f} device I/Os in the foreground of an operation, {twin.foreground:.3f} without "
            f"the fault; resync and rebuild: {repair}. A write takes {f'{mirrors} less' if mirrors else 'as many'} "
            f"({writes:,} device writes, {before:,} without), a read of what the device held {k} in place of 1: "
            f"{expected:.3f}",
            writes * (m + 1) == before * (m + 1 - mirrors)
            and part.foreground <= expected * (1 + RIPPLE)
            and not repair,
            "That a lost piece is read from the others is the layout's price, not the fault's: it lasts until "
            "the piece is back, and with mirrors there is none.",
        )
    for name, cause, claim in (
        ("path back", "resync", "The path is back: a ripple, while what was missed is copied"),
        (
            "timer: rebuild",
            "rebuild",
            "The repair timer runs out: the device is rebuilt elsewhere, latency is up until that is done",
        ),
        ("dead: rebuild", "rebuild", "A device known to be dead is rebuilt at once"),
    ):
        part, twin = result.part(name), control.part(name)
        during = [number for number, window in enumerate(part.windows) if window.devices.ios[cause]]
        done = bool(during) and during[-1] < len(part.windows) - 1
        writes = part.devices.bytes_written[cause] / 2**20
        chapter.judge(
            claim,
            f"{part.devices.ios[cause]} device I/Os of {cause}, {writes:.1f} MiB written, in the first "
            f"{len(during)} of {len(part.windows)} intervals; {part.foreground:.3f} device I/Os in the foreground "
            "of an operation, "
            f"{twin.foreground:.3f} without; half of all latencies within {_latency(part)}, without "
            f"{_latency(twin)}",
            bool(during) and during[0] == 0 and done,
            "" if done else "It did not end within its phase.",
        )
    before = [part for part in result.phases if part.name in ("steady", "hold", "absent")]
    chapter.judge(
        "Before the repair timer runs out nothing is rebuilt",
        f"{sum(part.devices.ios['rebuild'] for part in before)} device I/Os of rebuild before it, "
        f"{result.part('timer: rebuild').devices.ios['rebuild']} after",
        not any(part.devices.ios["rebuild"] for part in before)
        and result.part("timer: rebuild").devices.ios["rebuild"] > 0,
    )


def _layouts(chapter: Chapter, raid5: Result, mirror: Result) -> None:
    ratio = raid5.foreground / mirror.foreground
    speed = raid5.part("maximum").iops / mirror.part("maximum").iops
    chapter.judge(
        "RAID-1 and RAID-5 are alike",
        f"{ratio:.3f} times the device I/Os in the foreground, the same writes to the byte; {speed:.2f} times the "
        "operations a second of processor time",
        twins.same(raid5, mirror) and abs(ratio - 1) <= RIPPLE,
        "Processor time differs by the parity that is calculated.",
    )


def _steps(chapter: Chapter, settings: Settings) -> None:
    """Latency against load, for four sizes."""
    drawing, (axis,) = panels(1, width=7.5, height=3.2)
    flat = True
    found = []
    for size, marker, line in zip(SIZES, MARKERS, STEPS_COLOURS):
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
            f"{size} KiB {result.part('maximum').iops:,.0f} IOPS, {median[0]:.0f} to {median[-1]:.0f} us"
        )
    axis.set(xlabel="load, in percent of the maximum", ylabel="latency, us\n(99 % dotted)")
    logarithmic(axis)
    axis.legend(fontsize=8.5)
    caption = (
        "Requests arrive at a constant rate, one at a time; latency from the moment each was due. The maximum is "
        "measured with eight in flight, which share records of the log."
    )
    chapter.figures.append(
        Figure("load-steps", "Load in steps, 70 % read", caption, svg(drawing, "load-steps"))
    )
    chapter.judge(
        "Latency stays low until the load comes near the maximum, at every size",
        f"maximum, and half of all latencies from 20 % to 80 % load: {'; '.join(found)}",
        flat,
        "Judged by the step from 20 to 40 %: by a factor below 4. These are times: another process on the machine shows.",
        must=False,
    )


def _latency(part: Part) -> str:
    return f"{part.latency(50):,.0f} us"
