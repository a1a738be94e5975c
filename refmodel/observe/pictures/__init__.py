"""What a disk looks like inside, as pictures: the segments over the devices, the views as trees with shared nodes, the log. One page shows all three."""

from typing import Any

import jinja2

from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.observe.describe import size
from refmodel.observe.pictures import log, segments, views

PICTURES = {"segments": segments.picture, "views": views.picture, "log": log.picture}


def svg(disk: LogStructuredDisk, name: str) -> str:
    """One picture, as an SVG document of its own."""
    return _template(f"{name}.svg.j2").render(picture=PICTURES[name](disk))


def page(disk: LogStructuredDisk) -> str:
    """All pictures on a page of HTML that needs nothing else."""
    shape = disk.geometry
    facts: dict[str, Any] = {
        "what": f"{shape.blocks:,} blocks of {size(shape.block_bytes)}, layout {shape.layout}, {shape.devices} devices",
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
