"""Plants one change in one module before it is imported. As a pytest plugin it reads
$ENGINE_MUTANT: MODULE:NUMBER.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from crosscheck.engine_mutation.changes import REACHED, changed

VARIABLE = "ENGINE_MUTANT"


class Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the module `name` with the change. `reached` says whether the changed statement
    ran.
    """

    def __init__(self, name: str, number: int) -> None:
        if name in sys.modules:
            raise ValueError(f"{name} is imported already")
        self.reached = False
        self._name, self._number = name, number

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the module that is changed, and no other."""
        if name != self._name:
            return None
        file = source_of(name)
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed module."""
        file = source_of(self._name)
        setattr(module, REACHED, self._reach)
        exec(compile(changed(file.read_text(), self._number), file, "exec"), module.__dict__)

    def _reach(self) -> None:
        self.reached = True


def source_of(name: str) -> Path:
    """Return the file of a module of this project."""
    return Path(__file__).parents[2] / Path(*name.split(".")).with_suffix(".py")


def plant(name: str, number: int) -> Planted:
    """Have the module of this name imported with the change of this number."""
    planted = Planted(name, number)
    sys.meta_path.insert(0, planted)
    return planted


if os.environ.get(VARIABLE):
    _module, _, _number = os.environ[VARIABLE].partition(":")
    plant(_module, int(_number))
