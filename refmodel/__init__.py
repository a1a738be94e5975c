"""The reference engine: a log-structured virtual disk with snapshots, on real files.

`create`, `open_disk` and `plan` are those of the log-structured engine; refmodel.registry has the
other engines. They are imported when they are first used, so that the package itself loads at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"
__all__ = ["Geometry", "LogStructuredDisk", "__version__", "create", "open_disk", "plan"]

if TYPE_CHECKING:
    from refmodel.log_structured.disk import LogStructuredDisk, create, open_disk
    from refmodel.log_structured.geometry import Geometry, plan
else:

    def __getattr__(name: str) -> Any:
        """Return what the engine has under this name. Raises AttributeError."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "geometry" if name in ("Geometry", "plan") else "disk"
        return getattr(import_module(f"refmodel.log_structured.{module}"), name)
