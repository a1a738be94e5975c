"""The reference engine: a log-structured virtual disk with snapshots, on real files.

`create`, `open_disk` and `plan` are those of the log-structured engine; refmodel.registry has the
other engines.
"""

from refmodel.log_structured.disk import LogStructuredDisk, create, open_disk
from refmodel.log_structured.geometry import Geometry, plan

__version__ = "0.2.0"
__all__ = ["Geometry", "LogStructuredDisk", "__version__", "create", "open_disk", "plan"]
