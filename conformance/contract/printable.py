"""Text of a target, made safe to print: control characters are escaped."""

from typing import Any

SHOWN = 80  # characters of a name


def printable(text: str, kept: str = "\n\t") -> str:
    """Return the text with control characters and invisible characters written as escapes.

    Characters in `kept` stay: a newline and a tab by default, none for text that must be one
    line."""
    return "".join(c if c.isprintable() or c in kept else _escape(c) for c in text)


def one_word(value: Any) -> str:
    """Return a value as one word of a listing: quoted and escaped where it is not a plain word."""
    text = str(value)
    plain = text.isprintable() and text and not set(text) & set("\"' :\\")
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return short if plain else '"' + printable(short, "").replace('"', '\\"') + '"'


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
