"""Targets by name: what `--target` accepts.

`resolve` turns a name into a factory: called with options it gives a target, and its `knobs` (option -> values)
are what each trace may choose.
"""

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.targets.base import Target

KINDS = {
    "refmodel[:ENGINE][:KEY=VALUE,...]": "an engine of this project, in process: log-structured unless named, redo-se, in-place-raid5, ...",
    "exec:COMMAND": "another process that speaks the dialogue on stdin and stdout",
    "FILE.toml": "a block device and a shell command for each control operation: a hooks file",
    "python:MODULE:FACTORY": "a Python callable that takes a dict of options and returns a target",
    "qcow2[:KEY=VALUE,...]": "qcow2 with internal snapshots, in qemu-storage-daemon",
    "chain[:format=qcow2|vmdk,...]": "a chain of qcow2 or VMDK files, the redo-log design, in qemu-storage-daemon",
    "redb[:durability=immediate|eventual|none]": "redb, a copy-on-write B-tree store, as a disk of blocks",
    "lmdb[:KEY=VALUE,...]": "LMDB as a disk of blocks, its read views as snapshots, on a file that the kit cuts the power of",
    "sqlite[:KEY=VALUE,...]": "SQLite as a disk of blocks, on files that the kit cuts the power of",
    "kernel:DRIVER[:KEY=VALUE,...]": "snapshots of a Linux driver in a guest of user-mode Linux: dm-thin, ...",
    "model[:ack|prefix|block]": "the contract itself, which is always right: to try the kit on",
}


class NoSuchTarget(Exception):
    """The name names no target. One line."""


@dataclass(frozen=True)
class Factory:
    """Opens targets. `fixed` options hold for all of them; `knobs` are those that a trace may choose.

    `without` are capabilities that are not asked for though the target has them."""

    name: str
    build: Callable[[dict[str, Any]], Target]
    fixed: dict[str, Any] = field(default_factory=dict)
    knobs: dict[str, list[Any]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    @property
    def first(self) -> dict[str, Any]:
        """The first of all ways to set the knobs."""
        return {knob: values[0] for knob, values in self.knobs.items()}

    def __call__(self, options: dict[str, Any]) -> Target:
        target = self.build({**options, **self.fixed})
        if self.without:
            kept = [name for name in target.hello["capabilities"] if name not in self.without]
            target.hello = {**target.hello, "capabilities": kept}
        return target


def resolve(name: str) -> Factory:
    """The factory of the targets so named. Raises NoSuchTarget."""
    kind, _, rest = name.partition(":")
    if name.endswith(".toml"):
        return _hooked(Path(name))
    match kind:
        case "refmodel":
            try:
                module = importlib.import_module("conformance.targets.reference")
            except ImportError as error:
                raise NoSuchTarget(f"the target refmodel cannot be loaded: {error}") from None
            options = _of_engine(rest, module.KNOBS)
            return _factory(
                name,
                module.ReferenceTarget,
                options,
                module.KNOBS[options.get("engine", module.DEFAULT)],
            )
        case "qcow2":
            from conformance.targets.engines.qcow2 import Qcow2Target

            return _factory(name, Qcow2Target, _options(rest))
        case "chain":
            from conformance.targets.engines.chain import ChainTarget

            return _factory(name, ChainTarget, _options(rest))
        case "redb":
            from conformance.targets.engines.redb import RedbTarget

            return _factory(name, RedbTarget, _options(rest))
        case "lmdb":
            from conformance.targets.engines.lmdb import LmdbTarget

            return _factory(name, LmdbTarget, _options(rest))
        case "sqlite":
            from conformance.targets.engines.sqlite import SqliteTarget

            return _factory(name, SqliteTarget, _options(rest))
        case "kernel":
            from conformance.targets.engines.kernel import DRIVERS

            driver, _, more = rest.partition(":")
            if driver not in DRIVERS:
                raise NoSuchTarget(f"there is no driver '{driver}': it is one of {', '.join(DRIVERS)}")
            return _factory(name, DRIVERS[driver], _options(more))
        case "exec" if rest.strip():
            from conformance.targets.process import ProcessTarget

            return _factory(name, lambda options: ProcessTarget(rest), {})
        case "exec":
            raise NoSuchTarget("exec: names no command, such as exec:./my-engine --adapter")
        case "model":
            from conformance.targets.model import ModelTarget

            if rest not in ("", "ack", "prefix", "block"):
                raise NoSuchTarget(
                    f"there is no profile '{rest}': model:ack, model:prefix or model:block"
                )
            return _factory(name, ModelTarget, {"profile": rest} if rest else {})
        case "python":
            return _factory(name, _imported(rest), {})
    raise NoSuchTarget(f"there is no target '{name}': it is one of {', '.join(KINDS)}")


def _hooked(path: Path) -> Factory:
    from conformance.targets import hooks

    try:
        hooks.read(path)
    except hooks.BadHooks as error:
        raise NoSuchTarget(str(error)) from None
    return Factory(str(path), lambda options: hooks.HooksTarget(path))


def _of_engine(text: str, engines: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `ENGINE`, `KEY=VALUE,...` or `ENGINE:KEY=VALUE,...`."""
    first, _, rest = text.partition(":")
    options = {**_options(rest), "engine": first} if first and "=" not in first else _options(text)
    if options.get("engine", next(iter(engines))) not in engines:
        raise NoSuchTarget(
            f"there is no engine '{options['engine']}': it is one of {', '.join(engines)}"
        )
    return options


def _factory(
    name: str,
    build: Callable[[dict[str, Any]], Target],
    fixed: dict[str, Any],
    choices: Mapping[str, list[Any]] | None = None,
) -> Factory:
    choices = getattr(build, "knobs", {}) if choices is None else choices
    knobs = {key: values for key, values in choices.items() if key not in fixed}
    return Factory(name, build, fixed, knobs)


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise NoSuchTarget(f"'{part}' is no option: write refmodel:key=value,key=value")
        options[key.strip().replace("-", "_")] = _value(value.strip())
    return options


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def _imported(path: str) -> Callable[[dict[str, Any]], Target]:
    module, _, attribute = path.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # where the user's own module most likely is
    try:
        factory = (
            getattr(importlib.import_module(module), attribute) if module and attribute else None
        )
    except (ImportError, AttributeError, ValueError) as error:
        raise NoSuchTarget(f"python:{path}: {error}") from None
    if not callable(factory):
        raise NoSuchTarget(f"python:{path} names no callable: write python:package.module:factory")
    return factory
