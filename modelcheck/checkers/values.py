"""TLA+ values as TLC prints them: read, shorten and compare them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# A record, a function or a sequence is a dict; the keys of a sequence are 1, 2, ... A set is a Set,
# a string a Text, a model value a str.

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|-?\d+\.\.-?\d+|-?\d+|\w+|<<|>>|\|->|:>|@@|[\[\]{}(),])')
PLAIN = re.compile(r"[\w.-]+")


class Text(str):
    """A TLA+ string."""


@dataclass(frozen=True)
class Set:
    """A set. Its elements are in TLC's order, which is the same for equal sets."""

    elements: tuple[Any, ...]


class Sequence(dict[Any, Any]):
    """A tuple or a sequence: 1, 2, ... -> element."""


class Key(str):
    """A tuple, a record or a set as the argument of a function, written short."""


class Unreadable(Exception):
    """Raised for text that is not a value that TLC prints. The message is one line."""


def read(text: str) -> Any:
    """Return the value that the text says. Raises Unreadable."""
    tokens, at = [], 0
    while match := TOKEN.match(text, at):
        tokens.append(match[1])
        at = match.end()
    if text[at:].strip():
        raise Unreadable(f"no TLA+ value: {text[at:].strip()[:60]}")
    tokens.reverse()
    try:
        value = _value(tokens)
    except IndexError:
        raise Unreadable(f"the value ends too early: {text[-60:]}") from None
    if tokens:
        raise Unreadable(f"no TLA+ value: {text[:60]}")
    return value


def _value(tokens: list[str]) -> Any:
    token = tokens.pop()
    if token == "{":
        return Set(tuple(_list(tokens, "}")))
    if token == "<<":
        return Sequence(enumerate(_list(tokens, ">>"), 1))
    if token == "[":
        return dict(_pairs(tokens, "|->", ",", "]"))
    if token == "(":
        return dict(_pairs(tokens, ":>", "@@", ")"))
    if token[0] == '"':
        return Text(token[1:-1])
    if ".." in token:
        return token
    return int(token) if re.fullmatch(r"-?\d+", token) else token


def _list(tokens: list[str], end: str) -> Iterator[Any]:
    while tokens[-1] != end:
        yield _value(tokens)
        if tokens[-1] == ",":
            tokens.pop()
    tokens.pop()


def _pairs(tokens: list[str], to: str, between: str, end: str) -> Iterator[tuple[Any, Any]]:
    while tokens[-1] != end:
        key = _value(tokens)
        if tokens.pop() != to:
            raise Unreadable(f"no {to} behind {short(key)}")
        yield key if isinstance(key, (str, int)) else Key(short(key)), _value(tokens)
        if tokens[-1] == between:
            tokens.pop()
    tokens.pop()


def short(value: Any) -> str:
    """Return the value as short text: {a, b}, <<1, 2>>, and [k: v] for a record or a function."""
    if isinstance(value, Set):
        return "{" + ", ".join(map(short, value.elements)) + "}"
    if isinstance(value, Sequence):
        return "<<" + ", ".join(map(short, value.values())) + ">>"
    if isinstance(value, dict):
        return "[" + ", ".join(f"{short(key)}: {short(held)}" for key, held in value.items()) + "]"
    if isinstance(value, Text) and not PLAIN.fullmatch(value):
        return f'"{value}"'
    return str(value)


def changes(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield each change from `old` to `new`: "live[0]: 1", "+snaps.s: ...", "-{2}"."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, Set) and isinstance(new, Set):
        gone = [element for element in old.elements if element not in new.elements]
        come = [element for element in new.elements if element not in old.elements]
        if len(gone) == len(come) == 1 and isinstance(gone[0], dict) and len(old.elements) == 1:
            yield from changes(gone[0], come[0], path)
            return
        for sign, elements in (("-", gone), ("+", come)):
            if elements:
                yield f"{path}{': ' if path else ''}{sign}{short(Set(tuple(elements)))}"
    elif (
        isinstance(old, dict)
        and isinstance(new, dict)
        and (set(old) & set(new) or not old or not new)
    ):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = path + _step(key, path)
            if key not in new:
                yield f"-{inner}"
            elif key not in old:
                yield f"+{inner}: {short(new[key])}"
            else:
                yield from changes(old[key], new[key], inner)
    else:
        yield f"{path}{': ' if path else ''}{short(new)}"


def _step(key: Any, path: str) -> str:
    if isinstance(key, (int, Key)) or not PLAIN.fullmatch(key):
        return f"[{short(key)}]"
    return f".{key}" if path else str(key)
