"""Writes the report: a page of HTML that needs no other file, and Markdown with SVG files."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from experiments.chapter import Chapter, Settings, Verdict

DOCUMENTED = (
    "depth",
    "rates",
    "snapshots-over-time",
    "chain-over-time",
    "longest-write",
    "ladder-ios",
    "constant",
)  # figures of docs/what-snapshots-cost.md


def write(
    folder: Path,
    chapters: list[Chapter],
    settings: Settings,
    seconds: float,
    left: Sequence[str] = (),
) -> None:
    """Write report.html, report.md and a file of SVG per figure into a folder.

    `left` are the letters of the chapters that were not run, or not yet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in chapters:
        for figure in chapter.figures:
            (folder / f"{figure.name}.svg").write_text(figure.svg)
    facts = (
        f"Scale {settings.scale:g} (1: disks of 64 MiB), seed {settings.seed}, {seconds / 60:.1f} "
        "minutes "
        f"({', '.join(f'{chapter.letter} {chapter.seconds:.0f} s' for chapter in chapters)}), "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    )
    if left:
        facts += f" Not run, and in no figure of this page: chapters {', '.join(left)}."
    (folder / "report.html").write_text(page(chapters, facts))
    (folder / "report.md").write_text(markdown(chapters, facts))


def document(folder: Path, chapters: list[Chapter]) -> None:
    """Write the figures of docs/what-snapshots-cost.md as SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in chapters:
        for figure in chapter.figures:
            if figure.name in DOCUMENTED:
                (folder / f"{figure.name}.svg").write_text(figure.svg)


def page(chapters: list[Chapter], facts: str) -> str:
    """Return the report as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("experiments", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = Markup  # our own SVG
    missed = [
        (chapter, claim)
        for chapter in chapters
        for claim in chapter.claims
        if claim.verdict is not Verdict.REPRODUCED
    ]
    return environment.get_template("report.html.j2").render(
        chapters=chapters, facts=facts, counts=verdicts(chapters), missed=missed, Verdict=Verdict
    )


def markdown(chapters: list[Chapter], facts: str) -> str:
    """Return the report as Markdown."""
    lines = ["# The published experiments, reproduced", "", facts, "", summary(chapters), ""]
    for chapter in chapters:
        lines += [
            f"## {chapter.letter}. {chapter.title}",
            "",
            f"Published: {chapter.published}",
            "",
            f"Here: {chapter.here}",
            "",
        ]
        lines += [
            "| claim | measured here | verdict | remark |",
            "|---|---|---|---|",
        ]
        for claim in chapter.claims:
            cells = (
                claim.claim,
                claim.measured,
                f"**{claim.verdict}**"
                if claim.verdict is not Verdict.REPRODUCED
                else claim.verdict,
                claim.why,
            )
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
        for figure in chapter.figures:
            lines += [
                f"![{figure.title}]({figure.name}.svg)",
                "",
                f"{figure.title}. {figure.caption}",
                "",
            ]
    return "\n".join(lines)


def verdicts(chapters: list[Chapter]) -> Counter[Verdict]:
    """Return how many claims have each verdict."""
    return Counter(claim.verdict for chapter in chapters for claim in chapter.claims)


def summary(chapters: list[Chapter]) -> str:
    """Return how many claims have each verdict, as text."""
    counts = verdicts(chapters)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
