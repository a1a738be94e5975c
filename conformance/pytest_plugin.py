"""A plugin of pytest: `pytest --conformance-target TARGET` tests a target against the contract.

It adds one test for each class of properties of the contract. They are ordinary tests of
Hypothesis in an ordinary file, .conformance/test_conformance_kit.py, which the plugin writes. So
the options of pytest (ids, `--lf`, `-k`, `--collect-only`, `-n`) and of Hypothesis (its seed, its
example database) work as usual.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionRepr

from conformance.targets import Factory, NoSuchTarget, resolve

# Below the root folder of pytest. In its usual mode of import pytest takes one module of a name, so
# this is one that no suite of a user is likely to have.
TESTS = Path(".conformance", "test_conformance_kit.py")
SOURCE = """# Written by the pytest plugin of the conformance kit; it can be removed.
from conformance.property_tests import test_contract

__all__ = ["test_contract"]
"""
TRACES, OPS = 50, 30
# Exceptions that say it all: the failure of a trace, and why the target is unusable.
SHOWN_ALONE = ("conformance.strategies.Broken: ", "conformance.targets.base.Unusable: ")


@dataclass(frozen=True)
class Chosen:
    """The options that the user chose, on the command line or in the ini file."""

    factory: Factory
    traces: int
    ops: int


_chosen: list[Chosen] = []  # one at most: property_tests.py is imported after it is known


def chosen() -> Chosen:
    """Return what the user chose. Skips the whole module if no target was named."""
    if not _chosen:
        pytest.skip("no --conformance-target", allow_module_level=True)
    return _chosen[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, each of which is also an ini option."""
    group = parser.getgroup("conformance", "a virtual disk against the contract")
    options = {
        "target": ("TARGET", "test this target: see `conformance targets`"),
        "traces": ("N", f"traces per class of properties ({TRACES} by default)"),
        "ops": ("N", f"about how many operations per trace ({OPS} by default)"),
    }
    for name, (value, text) in options.items():
        group.addoption(f"--conformance-{name}", metavar=value, help=text)
        parser.addini(f"conformance_{name}", text, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Add the tests to what is collected if a target is named. Raises UsageError."""
    name = _option(config, "target")
    _chosen.clear()
    if not name:
        return
    from conformance.programs.generate import MOST_OPS  # it takes long to load

    try:
        factory = resolve(name)
    except NoSuchTarget as error:
        raise pytest.UsageError(f"--conformance-target: {error}") from None
    _chosen.append(
        Chosen(factory, _number(config, "traces", TRACES), _number(config, "ops", OPS, MOST_OPS))
    )
    if not any(TESTS.name in argument for argument in config.args):
        config.args.append(str(_written(config.rootpath / TESTS)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect the added file, though pytest passes over folders with a dot before their names."""
    return False if _chosen and collection_path == config.rootpath / TESTS.parent else None


def _written(path: Path) -> Path:
    """Write the file with the tests unless it is there. Raises UsageError."""
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != SOURCE:
            path.parent.mkdir(exist_ok=True)
            (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
            path.write_text(SOURCE, encoding="utf-8")
    except OSError as error:
        raise pytest.UsageError(f"cannot write {path}: {error.strerror}") from None
    return path


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Show what is wrong with the target, and not the source of the test."""
    outcome = yield
    report = outcome.get_result()
    if (
        item.path.name == TESTS.name
        and report.failed
        and isinstance(report.longrepr, ExceptionRepr)
    ):
        crash = report.longrepr.reprcrash
        if crash is not None and crash.message.startswith(SHOWN_ALONE):
            report.longrepr = crash.message.partition(": ")[2]


def _option(config: pytest.Config, name: str) -> str:
    """Return the value of an option.

    An option on the command line goes before one in the ini file.
    """
    given: str | None = config.getoption(f"--conformance-{name}")
    return given if given is not None else str(config.getini(f"conformance_{name}"))


def _number(config: pytest.Config, name: str, default: int, most: int | None = None) -> int:
    text = _option(config, name)
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise pytest.UsageError(f"--conformance-{name}: '{text}' is no number of at least 1")
    if most is not None and int(text) > most:
        raise pytest.UsageError(f"--conformance-{name}: {text} is more than {most}")
    return int(text)
