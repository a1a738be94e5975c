"""Small mechanical changes to a spec.

A guard is dropped or negated, an update forgotten, a bound moved, an EXCEPT dropped.

Only what a spec does is changed, which is what Init and Next use, not what it promises. The kinds
are those of the mutation testing of programs (DeMillo, Lipton, Sayward:
Hints on test data selection, 1978), for actions in place of statements.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modelcheck.mutation import syntax
from modelcheck.mutation.syntax import Node, parent, text, within

SWAPPED = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "=": "#",
    "#": "=",
    "\\in": "\\notin",
    "\\notin": "\\in",
}
ROOTS = ("Init", "Next")


@dataclass(frozen=True)
class Edit:
    """One change: the bytes from `start` to `end` become `new`."""

    operator: str  # the operator that contains the change
    line: int
    kind: str
    old: str
    new: str
    start: int
    end: int
    nth: int = 0  # number among the changes with the same text

    @property
    def name(self) -> str:
        """A name that is unique in the module, and independent of changes elsewhere in it."""
        became = f" -> {self.new}" if self.new else ""
        return f"{self.operator}: {self.kind}: {self.old}{became}" + (
            f" ({self.nth + 1})" if self.nth else ""
        )

    def apply(self, source: bytes) -> bytes:
        """Return the module with this change."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def edits(source: bytes, below: Sequence[bytes] = ()) -> list[Edit]:
    """Return all changes to a module, in the order of its text.

    `below` are the modules that it extends.

    A module without Init and Next is a part of a spec: all that it defines is used."""
    definitions = syntax.definitions(source)
    every = {name: node for text in below for name, node in syntax.definitions(text).items()}
    every |= definitions
    variables = {name for text in (source, *below) for name in syntax.variables(text)}
    used = syntax.closure(ROOTS, definitions) or set(definitions)
    acting = {
        name
        for name in every
        if any(_primes(every[each]) for each in syntax.closure([name], every))
    }
    found: list[Edit] = []
    for name in sorted(used - {*ROOTS, "vars"}, key=lambda name: definitions[name].start_byte):
        for node in within(definitions[name]):
            for kind, start, end, new in _changes(node, acting, variables):
                old = re.sub(r"\s+", " ", source[start:end].decode()).strip()
                nth = sum(
                    1
                    for edit in found
                    if (edit.operator, edit.kind, edit.old, edit.new) == (name, kind, old, new)
                )
                found.append(Edit(name, node.start_point[0] + 1, kind, old, new, start, end, nth))
    return found


def sample(
    module: str, source: bytes, count: int, seed: int, below: Sequence[bytes] = ()
) -> list[Edit]:
    """Return `count` of the edits, drawn by the seed.

    The draw depends on an edit's name only, so a change elsewhere does not alter it."""

    def order(edit: Edit) -> bytes:
        return hashlib.sha256(f"{seed} {module} {edit.name}".encode()).digest()

    return sorted(
        sorted(edits(source, below), key=order)[:count],
        key=lambda edit: (edit.start, edit.end, edit.name),
    )


def _changes(
    node: Node, acting: set[str], variables: set[str]
) -> Iterator[tuple[str, int, int, str]]:
    """Yield the changes that begin at a node: kind, first byte, end, new text."""
    act = _acts(node, acting)
    if node.type == "conj_item" and not act and len(parent(node).children) > 1:
        yield "drop conjunct", node.start_byte, node.end_byte, ""
        guard = node.children[-1]
        if guard.start_point[0] == guard.end_point[0]:
            yield "negate", guard.start_byte, guard.end_byte, f"~({text(guard)})"
    elif node.type == "disj_item" and not act and len(parent(node).children) > 1:
        yield "drop disjunct", node.start_byte, node.end_byte, ""
    elif node.type == "if_then_else" and not _acts(node.children[1], acting):
        test = node.children[1]
        if test.start_point[0] == test.end_point[0]:
            yield "negate", test.start_byte, test.end_byte, f"~({text(test)})"
    elif node.type == "except_update" and len(parent(parent(node)).children):
        yield from _without_update(node)
    elif node.type == "bounded_quantification" and not act:
        which = node.children[0]
        yield (
            "swap quantifier",
            which.start_byte,
            which.end_byte,
            "\\E" if text(which) == "\\A" else "\\A",
        )
    elif node.type == "bound_infix_op":
        yield from _infix(node, act, variables)


def _infix(node: Node, act: bool, variables: set[str]) -> Iterator[tuple[str, int, int, str]]:
    left, operator, right = node.children[0], node.children[1], node.children[-1]
    sign = text(operator)
    if sign == "=" and left.type == "bound_postfix_op" and text(left)[:-1] in variables:
        if text(right) != text(left)[:-1]:
            yield "forget update", right.start_byte, right.end_byte, text(left)[:-1]
    elif act:
        return
    elif sign in SWAPPED:
        yield "change relation", operator.start_byte, operator.end_byte, SWAPPED[sign]
    elif sign in ("/\\", "\\/"):
        kind = "drop conjunct" if sign == "/\\" else "drop disjunct"
        yield kind, left.end_byte, right.end_byte, ""
        yield kind, left.start_byte, right.start_byte, ""
    elif sign in ("\\union", "\\cup", "\\intersect", "\\cap", "\\", "+", "-"):
        yield "drop operand", left.end_byte, right.end_byte, ""
    elif sign == "..":
        yield "move bound", left.start_byte, left.end_byte, f"{text(left)} + 1"
        yield "move bound", right.start_byte, right.end_byte, f"{text(right)} - 1"


def _without_update(node: Node) -> Iterator[tuple[str, int, int, str]]:
    """Yield an EXCEPT without one of its updates.

    Without its only one, it is the function itself.
    """
    whole = parent(node)
    updates = [child for child in whole.children if child.type == "except_update"]
    if len(updates) == 1:
        function = next(child for child in whole.children if child.is_named)
        yield "drop EXCEPT", whole.start_byte, whole.end_byte, text(function)
        return
    at = updates.index(node)
    start, end = (
        (updates[at - 1].end_byte, node.end_byte)
        if at
        else (node.start_byte, updates[1].start_byte)
    )
    yield "drop EXCEPT", start, end, ""


def _primes(node: Node) -> bool:
    return any(inner.type in ("prime", "unchanged") for inner in within(node))


def _acts(node: Node, acting: set[str]) -> bool:
    """Return whether it says anything of the next state."""
    return any(
        inner.type in ("prime", "unchanged")
        or inner.type == "identifier_ref"
        and text(inner) in acting
        for inner in within(node)
    )
