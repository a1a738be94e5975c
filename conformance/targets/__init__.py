"""Targets by name: what `--target` accepts.

`resolve` turns a name into a factory. A factory called with options opens a target, and its `knobs`
(option -> values) are what each trace may choose.
"""

import importlib
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.contract.source import Source
from conformance.contract.trace import IMPOSSIBLE, check_hello
from conformance.targets.base import RAISED, Target, Unusable, named
from conformance.targets.printing import prints_to_stderr
from conformance.targets.time_limit import SECONDS, TimeLimited, TooLate, limit

KINDS = {
    "refmodel[:ENGINE][:KEY=VALUE,...]": "the engines of this project, in process: all of them, or "
    "the ENGINE named; log-structured if there are options only",
    "exec:COMMAND": "another process that speaks the dialogue on stdin and stdout",
    "FILE.toml": "a hooks file: a block device, and a shell command for each control operation",
    "python:MODULE:FACTORY": "a Python callable that takes a dict of options and returns a target",
    "qcow2[:KEY=VALUE,...]": "qcow2 with internal snapshots, in qemu-storage-daemon",
    "chain[:format=qcow2|vmdk,...]": "a chain of qcow2 or VMDK files (redo logs), in "
    "qemu-storage-daemon",
    "redb[:durability=immediate|eventual|none]": "redb, a copy-on-write B-tree store, as a disk of "
    "blocks",
    "lmdb[:KEY=VALUE,...]": "LMDB as a disk of blocks, its read views as snapshots, on a file "
    "whose power the kit can cut",
    "sqlite[:KEY=VALUE,...]": "SQLite as a disk of blocks, on files whose power the kit can cut",
    "kernel:DRIVER[:KEY=VALUE,...]": "snapshots of a Linux driver in a guest of user-mode "
    "Linux: dm-thin, dm-snapshot, nilfs2, btrfs",
    "model[:ack|prefix|block]": "the contract itself, which is always right, for trying the kit",
}
# The engines of other projects: kind -> module and class, below conformance.targets.engines.
ENGINES = {
    "qcow2": ("qemu.qcow2", "Qcow2Target"),
    "chain": ("qemu.chain", "ChainTarget"),
    "redb": ("redb", "RedbTarget"),
    "lmdb": ("lmdb", "LmdbTarget"),
    "sqlite": ("sqlite", "SqliteTarget"),
}
IN_PROCESS = frozenset(["refmodel", "python", "lmdb", "sqlite"])  # the kit limits their time
MEMBERS = ("hello", "request", "close")  # of a target in process
OPENING = 60.0  # CPU seconds that a target in process may take to open

Build = Callable[[dict[str, Any]], Target]


class NoSuchTarget(Exception):
    """The name names no target. The message is one line."""


@dataclass(frozen=True)
class Factory:
    """Opens targets. `fixed` options hold for all of them; `knobs` are those that a trace chooses.

    If there are `families`, a trace first chooses one of them, which adds its knobs: an engine, for
    example. `impossible` are options that have to be refused, because of the one that IMPOSSIBLE
    names. `without` are capabilities that are not asked for though the target has them. `seconds`
    is the time limit of an answer; None for a target that has its own. `asks`: the knobs are known
    once a target was opened, because its hello lists them; `take_options` then gives it others."""

    name: str
    build: Build
    fixed: dict[str, Any] = field(default_factory=dict)
    knobs: dict[str, list[Any]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    families: tuple[Mapping[str, list[Any]], ...] = ()
    impossible: tuple[Mapping[str, Any], ...] = ()
    seconds: float | None = None
    asks: bool = False

    @property
    def first(self) -> dict[str, Any]:
        """The first value of each knob, of the first family."""
        family = self.families[0] if self.families else {}
        return {knob: values[0] for knob, values in {**self.knobs, **family}.items()}

    def draw(self, choose: Source) -> dict[str, Any]:
        """Return options for one trace: a value of each knob."""
        family = self.families[choose.randrange(len(self.families))] if self.families else {}
        knobs = sorted({**self.knobs, **family}.items())
        return {knob: values[choose.randrange(len(values))] for knob, values in knobs}

    def __call__(self, options: dict[str, Any]) -> Target:
        """Return a target with these options. Raises Unusable, and what the target raises."""
        if IMPOSSIBLE in options and not self.impossible:
            raise Unusable(f"{self.name} is not asked to refuse options: replay on another target")
        target = self._open({**options, **self.fixed})
        if self.without:
            if wrong := check_hello(target.hello):
                target.close()
                raise Unusable(f"invalid answer to hello: {wrong}")
            kept = [name for name in target.hello["capabilities"] if name not in self.without]
            target.hello = {**target.hello, "capabilities": kept}
        return target

    def _open(self, options: dict[str, Any]) -> Target:
        if self.seconds is None:
            return self.build(options)
        try:
            with prints_to_stderr(), limit(OPENING):
                target = self.build(options)
                if missing := [name for name in MEMBERS if not hasattr(target, name)]:
                    raise Unusable(f"{self.name} makes no target: it has no {missing[0]}")
                return TimeLimited(target, self.seconds)
        except TooLate as late:
            text = f"{self.name} did not open within {late.after(OPENING)}"
            raise Unusable(text, late.stack) from None


def resolve(name: str) -> Factory:
    """Return the factory of the targets with this name. Raises NoSuchTarget."""
    kind, _, rest = name.partition(":")
    if name.endswith(".toml"):
        return _hooked(Path(name))
    if kind in ENGINES:
        module, attribute = ENGINES[kind]
        engine = importlib.import_module(f"conformance.targets.engines.{module}")
        return _engine(name, getattr(engine, attribute), _options(rest))
    match kind:
        case "refmodel":
            return _reference(name, rest)
        case "kernel":
            return _kernel(name, rest)
        case "exec":
            return _process(name, rest)
        case "model":
            return _model(name, rest)
        case "python":
            return _factory(name, _imported(rest), {})
    if os.path.isfile(name) and os.access(name, os.X_OK):
        raise NoSuchTarget(f"there is no target '{name}': to start this program, give exec:{name}")
    raise NoSuchTarget(f"there is no target '{name}' (see conformance targets)")


def _engine(name: str, build: Any, options: dict[str, Any]) -> Factory:
    """Return the factory of an engine: `knobs` and `fixed_options` are all the options it has."""
    known = dict.fromkeys([*build.knobs, *build.fixed_options])
    for option in options:
        if option not in known:
            raise NoSuchTarget(f"{name}: there is no option {option}: use {', '.join(known)}")
    return _factory(name, build, options)


def _kernel(name: str, rest: str) -> Factory:
    from conformance.targets.engines.kernel import DRIVERS  # it needs qemu and a guest

    driver, _, options = rest.partition(":")
    if driver not in DRIVERS:
        raise NoSuchTarget(f"there is no driver '{driver}': use one of {', '.join(DRIVERS)}")
    build, chosen = DRIVERS[driver], _options(options)
    usual = {**build.fixed_options, **build.knobs}
    for option, value in chosen.items():
        _check_type(option, value, usual.get(option, ()))
        if isinstance(value, str) and value not in (usual.get(option) or [value]):
            values = ", ".join(dict.fromkeys(usual[option]))
            raise NoSuchTarget(f"{option}={value}: the value is one of {values}")
    return _engine(name, build, chosen)


def _reference(name: str, rest: str) -> Factory:
    try:
        module = importlib.import_module("conformance.targets.reference")
    except ImportError as error:
        raise NoSuchTarget(f"the target refmodel cannot be loaded: {error}") from None
    if not rest:
        return Factory(
            name,
            module.ReferenceTarget,
            families=module.FAMILIES,
            impossible=module.IMPOSSIBLE_OPTIONS,
            seconds=SECONDS,
        )
    options = _of_engine(rest, module.KNOBS)
    knobs = module.KNOBS[options.get("engine", module.DEFAULT)]
    for option, value in options.items():
        _check_type(option, value, knobs.get(option, ()))
    if wrong := module.wrong_option(options):
        raise NoSuchTarget(f"{name}: {wrong}")
    return _factory(name, module.ReferenceTarget, options, knobs)


def _process(name: str, command: str) -> Factory:
    from conformance.targets.process import ProcessTarget

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise NoSuchTarget(f"exec:{command} cannot be split into words: {error}") from None
    if not words:
        raise NoSuchTarget("exec: names no command, such as exec:./my-engine --adapter")
    knobs: dict[str, list[Any]] = {}

    def build(options: dict[str, Any]) -> Target:
        target = ProcessTarget(command)
        if check_hello(target.hello) is None:  # else it is unusable
            knobs.update(target.hello.get("knobs", {}))
            target.take_options(options)
        return target

    return Factory(name, build, knobs=knobs, asks=True)


def _model(name: str, profile: str) -> Factory:
    from conformance.targets.model import ModelTarget

    if profile not in ("", "ack", "prefix", "block"):
        raise NoSuchTarget(
            f"there is no profile '{profile}': model:ack, model:prefix or model:block"
        )
    return _factory(name, ModelTarget, {"profile": profile} if profile else {})


def _hooked(path: Path) -> Factory:
    from conformance.targets import hooks, hooks_file

    try:
        hooks_file.read(path)
    except hooks_file.BadHooks as error:
        raise NoSuchTarget(str(error)) from None
    return Factory(str(path), lambda options: hooks.HooksTarget(path))


def _of_engine(text: str, engines: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `ENGINE`, `KEY=VALUE,...` or `ENGINE:KEY=VALUE,...`."""
    first, _, rest = text.partition(":")
    named = bool(first) and "=" not in first
    options = _options(",".join([f"engine={first}", rest] if named else [text]))
    if options.get("engine", next(iter(engines))) not in engines:
        raise NoSuchTarget(
            f"there is no engine '{options['engine']}': it is one of {', '.join(engines)}"
        )
    return options


def _factory(
    name: str,
    build: Build,
    fixed: dict[str, Any],
    choices: Mapping[str, list[Any]] | None = None,
) -> Factory:
    choices = getattr(build, "knobs", {}) if choices is None else choices
    knobs = {key: values for key, values in choices.items() if key not in fixed}
    seconds = SECONDS if name.partition(":")[0] in IN_PROCESS else None
    return Factory(name, build, fixed, knobs, seconds=seconds)


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise NoSuchTarget(f"'{part}' is no option: write refmodel:key=value,key=value")
        option = key.strip().replace("-", "_")
        if option in options:
            raise NoSuchTarget(f"the option {option} is given twice")
        options[option] = _value(value.strip())
    return options


def _check_type(option: str, value: Any, usual: Iterable[Any]) -> None:
    """Raise NoSuchTarget if the usual values of the option are all of other types."""
    examples = [one for one in usual if one is not None]
    if examples and type(value) not in map(type, examples):
        raise NoSuchTarget(f"{option}={value}: the value is one such as {examples[0]}")


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        return text


def _imported(path: str) -> Build:
    module, _, attribute = path.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # the user's own module is most likely here
    try:
        with prints_to_stderr():
            factory: Build | None = (
                getattr(importlib.import_module(module), attribute)
                if module and attribute
                else None
            )
    except (ImportError, AttributeError, ValueError) as error:
        raise NoSuchTarget(f"python:{path}: {error}") from None
    except RAISED as error:  # code of the module
        raise NoSuchTarget(f"python:{path}: it raised {named(error)}") from None
    if factory is None or not callable(factory):
        raise NoSuchTarget(f"python:{path} names no callable: write python:package.module:factory")
    return factory
