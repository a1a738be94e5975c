"""The arguments of the actions in a counterexample. TLC does not print them, so it is asked again.

A module is made whose states are those of the counterexample, and whose steps are the calls of its
actions in Next, under the quantifiers that bind their arguments. Each call that leads from one
state to the next one prints its arguments."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from modelcheck.checkers import tlc, tlc_config, values
from modelcheck.checkers.tlc import Result, State
from modelcheck.mutation import syntax
from modelcheck.mutation.syntax import Node, text

PRINTED = re.compile(r'^<<"argument", (\d+), (.*)>>$', re.M)
CONSTANT = re.compile(r"^\s*(?:CONSTANTS?\b)?\s*(\w+)\s*=\s*(.+?)\s*$", re.M)
LONGEST = 120.0  # seconds


def labelled(result: Result, module: Path, config: str) -> Result:
    """Return the result with arguments in the names of its actions: "Write(0, 1)".

    `config` is the text of the config. An action whose arguments cannot be found stays as it is."""
    if len(result.trace) < 2:
        return result
    definitions: dict[str, Node] = {}
    for path in tlc_config.extended(module):
        definitions |= syntax.definitions(path.read_bytes())
    calls = {state.action: sorted(set(_calls(state.action, definitions))) for state in result.trace}
    with tempfile.TemporaryDirectory(prefix="arguments-") as scratch:
        if module.parent != tlc.SPECS:
            for beside in module.parent.glob("*.tla"):
                shutil.copy(beside, scratch)
        asked = Path(scratch) / "Arguments.tla"
        asked.write_text(_module(result.trace, module, config, calls))
        kept = tlc_config.without_properties(config)
        kept += "".join(f"CONSTANT {name} = {name}\n" for name in _model_values(config))
        kept = re.sub(r"^(SPECIFICATION|INIT|NEXT)\b.*$", "", kept, flags=re.M)
        found = tlc.run(
            asked,
            kept + "INIT ArgumentsInit\nNEXT ArgumentsNext\n",
            short=True,
            timeout=LONGEST,
        )
    said = {int(step): arguments for step, arguments in PRINTED.findall(found.output)}
    trace = [_named(state, said.get(at)) for at, state in enumerate(result.trace)]
    return replace(result, trace=trace)


def _named(state: State, said: str | None) -> State:
    if said is None:
        return state
    try:
        arguments = values.read(f"<<{said}>>").values()
    except values.Unreadable:
        return state
    return replace(state, action=f"{state.action}({', '.join(map(values.short, arguments))})")


def _module(
    trace: list[State], module: Path, config: str, calls: dict[str, list[tuple[str, str, str]]]
) -> str:
    """Return the module that is asked: the states by their number, from 0, and the steps between
    them.
    """
    constants = _model_values(config)
    declared = f"CONSTANTS {', '.join(constants)}\n" if constants else ""
    begins, steps = [], []
    for at, (state, after) in enumerate(zip(trace, trace[1:], strict=False)):
        begins.append(f"    \\/ argument = {at}{_conjuncts(state, '')}")
        for quantifiers, call, arguments in calls[after.action]:
            reached = f"argument' = -1{_conjuncts(after, chr(39))}"
            say = f'PrintT(<<"argument", {at + 1}, {arguments}>>)'
            steps.append(
                f"    \\/ argument = {at} /\\ {quantifiers} ({call} /\\ {reached} /\\ {say})"
            )
    return (
        f"---- MODULE Arguments ----\nEXTENDS {module.stem}, TLC\n{declared}VARIABLE argument\n"
        + "ArgumentsInit ==\n"
        + "\n".join(begins)
        + "\nArgumentsNext ==\n    \\/ argument < 0 /\\ FALSE\n"
        + "\n".join(steps)
        + "\n====\n"
    )


def _conjuncts(state: State, prime: str) -> str:
    return "".join(f" /\\ {name}{prime} = {value}" for name, value in state.values.items())


def _calls(action: str, definitions: dict[str, Node]) -> Iterator[tuple[str, str, str]]:
    """Yield the calls of an action with arguments: the quantifiers around it, itself, its
    arguments.
    """
    for definition in definitions.values():
        for node in syntax.within(definition):
            if node.type != "bound_op" or text(node.children[0]) != action:
                continue
            arguments = [text(child) for child in node.children[2:-1] if child.type != ","]
            quantifiers: list[str] = []
            above = node.parent
            while above is not None and above != definition:
                if above.type == "bounded_quantification" and text(above.children[0]) == "\\E":
                    body = above.children[-1].start_byte - above.start_byte
                    quantifiers.insert(0, text(above).encode()[:body].decode().strip())
                above = above.parent
            if quantifiers:
                flat = re.sub(r"\s+", " ", " ".join(quantifiers))
                yield flat, text(node), ", ".join(arguments)


def _model_values(config: str) -> list[str]:
    """Return the model values that a config names, but for those that are constants of the module
    too.
    """
    assigned = CONSTANT.findall(config)
    values = [value for _, value in assigned if re.fullmatch(r"\{?[\w\s,]*\}?", value)]
    words = {word for value in values for word in re.findall(r"\b[A-Za-z]\w*", value)}
    return sorted(words - {"TRUE", "FALSE"} - {name for name, _ in assigned})
