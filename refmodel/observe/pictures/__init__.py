"""Pictures of the inside of a disk, as SVG: segments on devices, views as trees, and the log.

One page of HTML shows all three.
"""

from typing import Any

import jinja2

from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.observe.describe import size
from refmodel.observe.pictures import log, segments, views

PICTURES = {"segments": segments.picture, "views": views.picture, "log": log.picture}


def svg(disk: LogStructuredDisk, name: str) -> str:
    """Return one of PICTURES as an SVG document."""
    return _template(f"{name}.svg.j2").render(picture=PICTURES[name](disk))


def page(disk: LogStructuredDisk) -> str:
    """Return a page of HTML with all pictures. It needs no other file."""
    shape = disk.geometry
    blocks = f"{shape.blocks:,} blocks of {size(shape.block_bytes)}"
    facts: dict[str, Any] = {
        "what": f"{blocks}, layout {shape.layout}, {shape.devices} devices",
        "snapshots": [view.name for view in disk.state.views.in_order()],
        "svg": {name: svg(disk, name) for name in PICTURES},
    }
    return _template("page.html.j2").render(shape=shape, **facts)


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("refmodel.observe", "pictures"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
