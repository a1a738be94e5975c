"""The name of the property that failed, if TLC prints only its place, or not even that."""

import re
from collections.abc import Callable
from pathlib import Path

from modelcheck.checkers import tlc_config
from modelcheck.checkers.tlc import SPECS, UNNAMED, Result

PROPERTIES = ("PROPERTY", "PROPERTIES")
HEAD = re.compile(r"^(\w+)(?:\([^)]*\))?\s*==", re.M)


def named(result: Result, module: Path, config: str, again: Callable[[str], Result]) -> str:
    """Return the name of the property that failed.

    `config` is the text of the config that was checked; `again` checks another one, and is called
    for one property after the other where what TLC printed fits several."""
    if result.violated != UNNAMED:
        return result.violated
    names = tlc_config.named(config, PROPERTIES)
    texts = "\n".join(path.read_text() for path in tlc_config.extended(module))
    fitting = [name for name in names if _fits(result, name, texts, module.parent)] or names
    if len(fitting) == 1:
        return fitting[0]
    for name in fitting:
        if again(tlc_config.only(config, name)).violated in (UNNAMED, name):
            return name
    return UNNAMED


def _fits(result: Result, name: str, texts: str, folder: Path) -> bool:
    """Return whether the property may be the one that is stated where TLC says."""
    if result.stated is None:
        return True
    module, line = result.stated
    beside = folder / f"{module}.tla"
    stated = _operator(beside if beside.exists() else SPECS / beside.name, line)
    return name == stated or re.search(rf"!{stated}\b", _definition(texts, name)) is not None


def _operator(path: Path, line: int) -> str:
    """Return the operator in whose definition a line is."""
    heads = "\n".join(path.read_text().splitlines()[:line])
    return ([match[1] for match in HEAD.finditer(heads)] or [""])[-1]


def _definition(texts: str, name: str) -> str:
    """Return the text of a definition, up to the next one."""
    found = re.search(rf"^{name}\s*==(.*?)(?=^\w+(?:\([^)]*\))?\s*==|\Z)", texts, re.M | re.S)
    return found[1] if found else ""
