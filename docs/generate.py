"""Writes the generated parts of README.md and docs/ again: real output of real commands.

    python docs/generate.py           write them
    python docs/generate.py --check   exit 1 if anything would change

A part stands between two comments. `<!-- run FOLDER: COMMAND -->` shows what a command
prints in a copy of that folder; commands of one page share the copy. `<!-- help -->` and
`<!-- rules -->` are the command reference and the rule table.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.main import cli
from evalmeta.validation.rules import list_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- (run|help|rules)(?: ([\w./-]+): (.+?))? -->\n).*?(<!-- end -->)", re.DOTALL)
LEFT_OUT = re.compile(r"EVALMETA_HOME|FORCE_COLOR|SF_.*")
TIMES = (
    (re.compile(r"took [\d.]+ s"), "took 0.01 s"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "2026-11-20 12:00:00"),
)


def main() -> int:
    """Writes or checks every page and gives the exit code."""
    stale = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if _refresh(page)]
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'stale, run `make docs`' if _is_check() else 'written'}")
    return 1 if stale and _is_check() else 0


def _is_check() -> bool:
    return "--check" in sys.argv[1:]


def _refresh(page: Path) -> bool:
    before = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        after = PART.sub(lambda part: part[1] + _content(part, Path(work)) + part[5], before)
    if not _is_check():
        page.write_text(after, encoding="utf-8")
    return after != before


def _content(part: re.Match[str], work: Path) -> str:
    match part[2]:
        case "run":
            return f"```console\n$ {part[4]}\n{_output(part[3], part[4], work)}```\n"
        case "help":
            return "".join(_help(cli, "evalmeta"))
        case _:
            return "".join(_rules())


def _output(folder: str, command: str, work: Path) -> str:
    copy = work / folder
    if not copy.exists():
        ignored = shutil.ignore_patterns(".evalmeta", "__pycache__")
        shutil.copytree(ROOT / folder, copy, ignore=ignored, dirs_exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not LEFT_OUT.fullmatch(name)}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "evalmeta"), *command.split()[1:]],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text = done.stdout
    for pattern, fixed in TIMES:
        text = pattern.sub(fixed, text)
    return text


def _help(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    settings = {"help_option_names": ["-h", "--help"], "terminal_width": 100}
    context = click.Context(command, parent, info_name=name.rpartition(" ")[2], **settings)
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            if found is not None:
                yield from _help(found, f"{name} {sub}", context)


def _rules() -> Iterator[str]:
    yield "| code | orgs | documented | what it demands |\n|---|---|---|---|\n"
    for rule in list_rules():
        if not rule.is_fixed:
            yield f"| {_link(rule.code)} | {rule.orgs} | {rule.documented} | {rule.demand} |\n"
    yield "\nNo profile and no setting changes these:\n\n| code | severity | what it demands |\n|---|---|---|\n"
    for rule in list_rules():
        if rule.is_fixed:
            yield f"| {_link(rule.code)} | {rule.documented} | {rule.demand} |\n"


def _link(code: str) -> str:
    return f"[`{code}`](../src/evalmeta/validation/pages/{code}.md)"


if __name__ == "__main__":
    sys.exit(main())
