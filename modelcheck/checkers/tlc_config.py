"""TLC's config files: read them, change one setting, and find why they may leave states out."""

import re
from collections.abc import Iterator
from pathlib import Path

CHECKED = ("INVARIANT", "INVARIANTS", "PROPERTY", "PROPERTIES")
REDUCING = (
    "SYMMETRY",
    "VIEW",
    "CONSTRAINT",
    "CONSTRAINTS",
    "ACTION_CONSTRAINT",
    "ACTION_CONSTRAINTS",
)
OTHERS = ("SPECIFICATION", "INIT", "NEXT", "CONSTANT", "CONSTANTS", "CHECK_DEADLOCK")


def sections(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each line, its section ("" before the first one), and its words.

    The word that begins a section is not among them."""
    section = ""
    for line in text.splitlines():
        words = line.split("\\*")[0].split()
        if words and words[0] in CHECKED + REDUCING + OTHERS:
            section, words = words[0], words[1:]
        yield line, section, words


def named(text: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the operators that the sections of these kinds name."""
    return [word for _, section, words in sections(text) if section in kinds for word in words]


def only(text: str, checked: str) -> str:
    """Return the config with no property but `checked` ("Deadlock" is one too).

    Raises ValueError if the config does not check it."""
    kept, kind = [], None
    for line, section, words in sections(text):
        if section not in CHECKED or not words and not line.strip():
            kept.append(line)
        elif checked in words:
            kind = section
    if kind is None and checked != "Deadlock":
        raise ValueError(f"it does not check {checked}")
    if kind is not None:
        kept.append(f"{'INVARIANT' if kind.startswith('INV') else 'PROPERTY'} {checked}")
    return "\n".join(kept) + "\n"


def without_properties(text: str) -> str:
    """Return the config with nothing to check and nothing that leaves states out."""
    dropped = (*CHECKED, *REDUCING)
    kept = [line for line, section, _ in sections(text) if section not in dropped]
    return "\n".join(kept) + "\n"


def unjustified(config: Path, module: Path) -> list[str]:
    """Return the symmetries, views and constraints of a config that have no reason.

    The reason is a comment right above the definition or on its first line."""
    texts = [path.read_text() for path in extended(module)]
    return [
        name
        for name in named(config.read_text(), REDUCING)
        if not any(_commented(text, name) for text in texts)
    ]


def extended(module: Path) -> Iterator[Path]:
    """Yield the module and those of its folder that it extends, directly or not."""
    todo, seen = [module], set()
    while todo:
        path = todo.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        yield path
        for extends in re.findall(r"^EXTENDS\s+(.+)$", path.read_text(), re.M):
            todo += [path.parent / f"{name.strip()}.tla" for name in extends.split(",")]


def _commented(text: str, name: str) -> bool:
    found = re.search(rf"^(.*)\n{name} ==(.*)$", text, re.M)
    return found is not None and (
        found[1].rstrip().endswith("*)") or found[1].startswith("\\*") or "\\*" in found[2]
    )
