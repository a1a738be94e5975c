"""Finds the statements of a Trace module that traces reach. Each reports when TLC evaluates it.

TLC's own coverage leaves out names, literals and what it never evaluates.
"""

import re
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from modelcheck.checkers.tlc import SPECS
from modelcheck.mutation import planted, syntax
from modelcheck.mutation.syntax import Node
from modelcheck.runs import traces
from modelcheck.runs.models import BadList

REASONS = SPECS / "unreached.toml"
ROOTS = ("TraceInit", "TraceNext", "Progress")
REPLACED = re.compile(
    r"^\s*(\w+)\s*<-\s*(\w+)\s*$", re.M
)  # in a config, the operators that others take the place of
HITS = """---- MODULE Hits ----
LOCAL INSTANCE TLC
LOCAL INSTANCE Integers
ASSUME \\A n \\in 1 .. {count} : TLCSet(n, FALSE)
Hit(n) == IF TLCGet(n) THEN TRUE ELSE PrintT(<<"Hit", n>>) /\\ TLCSet(n, TRUE)
====
"""


@dataclass(frozen=True)
class Statement:
    """A conjunct, a disjunct, an arm of a CASE or a branch of an IF, with none of these inside.

    An operator that has none of them is a statement too."""

    module: str
    line: int
    text: str


@dataclass(frozen=True)
class Coverage:
    """The statements that a trace could reach, those that none reached, and mistakes in the list of
    reasons."""

    statements: list[Statement]
    unreached: dict[Statement, str]  # why it cannot be reached, "" where nobody says
    stale: list[str]  # parts that have a reason, but are reached

    def share(self, module: str) -> float:
        """Return how much of a module is reached, of 1."""
        every = [statement for statement in self.statements if statement.module == module]
        return 1 - sum(statement.module == module for statement in self.unreached) / len(every)


def coverage(
    batches: Sequence[tuple[str, Sequence[traces.Lines]]], module: str, below: str
) -> Coverage:
    """Return what traces reach of a Trace module and of the module that it extends, with its parts.

    A batch is a config with its traces. Raises BadList, traces.Inconclusive, tlc.Unavailable, and
    ValueError where a trace is not accepted."""
    modules = (module, *_parts_of(below))
    with tempfile.TemporaryDirectory(prefix="reached-") as folder:
        statements = _instrument(Path(folder), modules, _replaced(config for config, _ in batches))
        reached: set[int] = set()
        for config, batch in batches:
            result = traces.run(batch, module, config, folder=Path(folder))
            for trace, events in zip(batch, traces.reached_in(result, len(batch)), strict=True):
                if events < len(trace) - 1:
                    raise ValueError(
                        f"{module} does not accept event {events + 1} of a trace:"
                        f" {trace[events + 1]}"
                    )
            reached |= {
                int(number) for number in re.findall(r'^<<"Hit", (\d+)>>', result.output, re.M)
            }
    reasons = _reasons()
    unreached = {
        statement: reasons.get((statement.module, statement.text), "")
        for number, statement in enumerate(statements, 1)
        if number not in reached
    }
    said = {(statement.module, statement.text) for statement in unreached}
    return Coverage(
        statements,
        unreached,
        [text for name, text in reasons if name in modules and (name, text) not in said],
    )


def _parts_of(spec: str) -> list[str]:
    """Return the spec and the modules that it extends whose names begin with its name."""
    return sorted(name for name in planted.needed(spec) if name.startswith(spec))


def _replaced(configs: Iterable[str]) -> dict[str, str]:
    """Operator -> the one that takes its place, in any of the configs."""
    return {
        name: other
        for config in configs
        for name, other in REPLACED.findall((SPECS / f"{config}.cfg").read_text())
    }


def _instrument(folder: Path, modules: Sequence[str], replaced: dict[str, str]) -> list[Statement]:
    """Write the modules into the folder, with statements that report when they are reached.

    Returns the statements by number, from 1."""
    sources = {module: (SPECS / f"{module}.tla").read_bytes() for module in modules}
    defined = {
        name: node
        for source in reversed(sources.values())
        for name, node in syntax.definitions(source).items()
        if name not in replaced
    }
    used = syntax.closure((*ROOTS, *replaced.values()), defined)
    found: list[Statement] = []
    for module, source in sources.items():
        nodes = _statements(source, used)
        text = source
        for number, node in reversed(list(enumerate(nodes, len(found) + 1))):
            said = text[node.start_byte : node.end_byte]
            hit = b"(IF Hit(%d) THEN %b ELSE %b)" % (number, said, said)
            text = text[: node.start_byte] + hit + text[node.end_byte :]
        (folder / f"{module}.tla").write_bytes(
            re.sub(rb"^EXTENDS ", b"EXTENDS Hits, ", text, count=1, flags=re.M)
        )
        found += [Statement(module, node.start_point[0] + 1, _short(node)) for node in nodes]
    (folder / "Hits.tla").write_text(HITS.format(count=len(found)))
    return found


def _statements(source: bytes, used: set[str]) -> list[Node]:
    found = []
    for name, definition in syntax.definitions(source).items():
        if name in used and not _plain(definition.children[-1]):
            parts = [part for node in syntax.within(definition) for part in _parts(node)] or [
                definition.children[-1]
            ]
            found += [node for node in parts if not any(_inside(other, node) for other in parts)]
    return sorted(found, key=lambda node: node.start_byte)


def _plain(body: Node) -> bool:
    """Return whether TLC must see it as it is: a tuple of variables, or a constant's number."""
    return body.type == "tuple_literal" or not any(
        node.type == "identifier_ref" for node in syntax.within(body)
    )


def _parts(node: Node) -> list[Node]:
    """Return the nodes below a node that may be statements."""
    children = [child for child in node.children if not child.type.endswith("comment")]
    if node.type in ("conj_item", "disj_item", "case_arm", "other_arm"):
        return [children[-1]]
    if node.type == "if_then_else":
        return [children[3], children[5]]
    return []


def _inside(inner: Node, outer: Node) -> bool:
    return (
        inner != outer and outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
    )


def _short(node: Node) -> str:
    return " ".join(line.split("\\*")[0].strip() for line in syntax.text(node).splitlines())


def _reasons() -> dict[tuple[str, str], str]:
    try:
        listed = tomllib.loads(REASONS.read_text()).get("statement", [])
        return {(entry["module"], entry["text"]): entry["why"] for entry in listed}
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise BadList(f"{REASONS.name}: {error}") from None
