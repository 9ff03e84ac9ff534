"""Measure and print the tables of docs/performance.md.

    python run.py [--tiny | --list] [--update-docs] [WORD ...]

Without words, all rows but those of the section `scale` are measured; otherwise those whose names contain a word, or of
the sections `public`, `engine`, `other` and `scale`. `--list` prints the names of the rows. `--update-docs` writes the
tables into docs/performance.md. `--tiny` measures next to nothing: it shows that each row still works.
"""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import deploy
import engine
import evaluations
import package
import pages
import programs
import remote
import report_memory
import rouge
import scale
import startup
import suites
import traces
import validate
import worst
from evaluations import peer_version
from machine import Load, describe, others_since
from rows import FAILED, HOLDS, MISSED, Row, Section, heading

if TYPE_CHECKING:
    from collections.abc import Iterator

SECTIONS = (
    Section(
        "public", "What users run", (*suites.ROWS, *evaluations.ROWS, *programs.ROWS, *report_memory.ROWS, *pages.ROWS)
    ),
    Section("engine", "The engine alone", engine.ROWS),
    Section(
        "other",
        "Starting, validating, packaging, deploying",
        (*startup.ROWS, *validate.ROWS, *worst.ROWS, *package.ROWS, *rouge.ROWS, *deploy.ROWS, *traces.ROWS),
    ),
    Section("scale", "Large suites, stores and clusters", (*scale.ROWS, *remote.ROWS), is_apart=True),
)
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
PART = re.compile(r"(<!-- make bench -->\n).*?(<!-- end -->)", re.DOTALL)


OPTIONS = {"--tiny", "--list", "--update-docs"}


def main(arguments: list[str]) -> int:
    options = OPTIONS & set(arguments)
    words = [argument for argument in arguments if argument not in options]
    chosen = [(section.title, section.select(words)) for section in SECTIONS]
    if words and "--update-docs" in options:
        print("--update-docs measures all rows, because the page shows one measurement", file=sys.stderr)
        return 2
    if not any(rows for _, rows in chosen):
        print(
            f"no row's name contains {' or '.join(words)}; `make bench ROWS=--list` prints the names", file=sys.stderr
        )
        return 2
    if "--list" in options:
        print(*(row.name for _, rows in chosen for row in rows), sep="\n")
        return 0
    lines = []
    for line in measure(chosen, tiny="--tiny" in options):
        print(line, flush=True)
        lines.append(line)
    if "--update-docs" in options:
        page = PART.sub(lambda part: "\n".join((part[1], *lines, "", part[2])), PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(page, encoding="utf-8")
    return 1 if any(line.endswith(f"| {FAILED} |") for line in lines) else 0


def measure(chosen: list[tuple[str, list[Row]]], *, tiny: bool) -> Iterator[str]:
    """Return the lines of the tables, each when it was measured."""
    before, lines = Load.now(), list[str]()
    for title, rows in chosen:
        if rows:
            yield from (f"### {title}", "", heading())
            for row in rows:
                lines.append(_run(row, tiny=tiny))
                yield lines[-1]
            yield ""
    report_memory.close()
    pages.close()
    remote.close()
    yield f"Measured on {describe()}; {peer_version()}. {others_since(before)}".rstrip()
    holding, missed = (sum(line.endswith(f"| {verdict} |") for line in lines) for verdict in (HOLDS, MISSED))
    yield f"{holding} of {holding + missed} goals hold."


def _run(row: Row, *, tiny: bool) -> str:
    """Measure a row; one that fails does not end a run of ten minutes."""
    try:
        return row.run(tiny=tiny)
    except AssertionError as error:
        print(f"{row.name}: {error or traceback.format_exc()}", file=sys.stderr)
        return f"| `{row.name}` | {FAILED} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
