"""Writes the generated parts of README.md and docs/ again: real output of real commands.

    python docs/generate.py           write them
    python docs/generate.py --check   exit 1 if anything would change
    python docs/generate.py PAGE...   only these pages

A part stands between two comments. `<!-- run FOLDER: COMMAND -->` shows what a command
prints in a copy of that folder; commands of one page share the copy. The folder `shop`
starts empty: the code blocks of the page that have a title are its files. `<!-- start shop:
COMMAND -->` starts a server on port 8000, here another free port, until the end of the page.
The progress of runs is left out: its lines come in any order.
`<!-- picture FOLDER: COMMAND -->` draws the output in colour as docs/report.svg.
`<!-- help commands: SECTION -->` is the help of the commands of a section, without one that of evalmeta itself.
`<!-- rules -->`, `<!-- checks -->`, `<!-- adapters -->`, `<!-- settings -->` and `<!-- api -->` are references, and
`<!-- metrics SYSTEM: CELLS -->` is the table of a system's judged metrics under these cells.
The JSON Schema of test specs gets its properties of checks, too. The pages of validation rules get their
beginning, and tests/validation/invalid_samples.txt what validation reports about the sample of each rule.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.main import cli
from evalmeta.engine import metrics
from evalmeta.formats.short_forms import published_schema, with_checks
from evalmeta.model.checks import CHECKS
from evalmeta.validation.rules import find_rule, list_rules
from picture import draw
from reference import describe_adapters, describe_api, describe_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.engine.metrics import Metric

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(
    r"(<!-- (run|picture|start|help|rules|checks|adapters|settings|api|metrics)(?: ([\w./-]+): (.+?))? -->\n)"
    r"(.*?)(<!-- end -->)"
    r'|^```\w+ title="([\w./-]+)"\n(.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
RULE_PAGES = ROOT / "src/evalmeta/validation/pages"
SAMPLES = ROOT / "tests/validation/invalid_samples.txt"
SCHEMA = "src/evalmeta/formats/schemas/testspec.schema.json"
LEFT_OUT = re.compile(r"EVALMETA_HOME|FORCE_COLOR|CI|GITHUB_.*|SF_.*")
NEW = "shop"
SYSTEMS = {"adk": metrics.ADK, "databricks": metrics.DATABRICKS}
PORT = "8000"
HELP_WIDTH = 88
PROGRESS = re.compile(r"^.+ \(run \w+\): (?:started|finished), .*\n", re.MULTILINE)
TIMES = (
    (re.compile(r"took [\d.]+ s"), "took 0.01 s"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "2026-11-20 12:00:00"),
)


def main() -> int:
    """Writes or checks every page and gives the exit code."""
    if not _is_check():
        (ROOT / SCHEMA).write_text(with_checks(published_schema(), CHECKS.values()), encoding="utf-8")
    named = [Path(each).resolve() for each in sys.argv[1:] if each != "--check"]
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(RULE_PAGES.iterdir()), SAMPLES]
    pages = named or every
    stale = [page for page in pages if _refresh(page)]
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'stale, run `make docs`' if _is_check() else 'written'}")
    return 1 if stale and _is_check() else 0


def _is_check() -> bool:
    return "--check" in sys.argv[1:]


def _refresh(page: Path) -> bool:
    before = page.read_text(encoding="utf-8")
    if page == SAMPLES:
        after = _problems_of_samples()
    elif page.parent == RULE_PAGES:
        after = _rule_page(page.stem, before)
    else:
        with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as servers:
            folders = Folders(Path(work), servers)
            after = PART.sub(lambda part: _content(part, folders), before)
    if not _is_check():
        page.write_text(after, encoding="utf-8")
    return after != before


def _problems_of_samples() -> str:
    sys.path.append(str(ROOT / "tests"))
    from validation.samples import snapshot

    return snapshot()


def _rule_page(code: str, before: str) -> str:
    """Gives the page of a rule, which people write from "Why" on."""
    rule = find_rule(code)
    severity = f"Severity: {rule.orgs} under `orgs`, {rule.documented} under `documented`."
    return f"# {code}\n\n{rule.demand}\n\n{severity}\n\n**Why.** {before.partition('**Why.** ')[2]}"


def _content(part: re.Match[str], folders: Folders) -> str:
    match part[2]:
        case None:
            folders.write(part[7], part[8])
            return part[0]
        case "run":
            text = f"```console\n$ {part[4]}\n{folders.output(part[3], part[4])}```\n"
        case "picture":
            text = part[5]
            output = folders.output(part[3], part[4], stderr=subprocess.DEVNULL, FORCE_COLOR="1", COLUMNS="100")
            if not _is_check():
                draw(output, command=part[4])
        case "start":
            folders.start(part[3], part[4])
            text = f"```console\n$ {part[4]}\n```\n"
        case "help":
            text = "".join(_help_of_section(part[4]))
        case "metrics":
            text = "".join(_metrics(SYSTEMS[part[3]], part[4]))
        case name:
            references = {"rules": _rules, "checks": _checks, "adapters": describe_adapters, "api": describe_api}
            text = "".join(references.get(name, describe_settings)())
    return part[1] + text + part[6]


class Folders:
    """The folders in which the commands of a page run, and its servers."""

    def __init__(self, work: Path, servers: contextlib.ExitStack) -> None:
        self._work, self._servers = work, servers
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])

    def write(self, name: str, text: str) -> None:
        """Write a file of the new folder."""
        file = self._work / NEW / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(PORT, self._port), encoding="utf-8")

    def output(self, folder: str, command: str, *, stderr: int = subprocess.STDOUT, **environment: str) -> str:
        """Run a command in a folder and return what it prints."""
        done = subprocess.run(
            self._program(command),
            cwd=self._folder(folder),
            env=_environment() | environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            check=False,
        )
        text = PROGRESS.sub("", done.stdout.replace(self._port, PORT))
        for pattern, fixed in TIMES:
            text = pattern.sub(fixed, text)
        return text

    def start(self, folder: str, command: str) -> None:
        """Start a server, wait until it accepts connections, and stop it at the end of the page."""
        server = subprocess.Popen(
            self._program(command),
            cwd=self._folder(folder),
            env=_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._servers.callback(lambda: (server.kill(), server.wait()))
        while True:
            try:
                socket.create_connection(("127.0.0.1", int(self._port))).close()
            except OSError:
                if server.poll() is not None:
                    raise RuntimeError(f"`{command}` ended with exit code {server.returncode}") from None
                time.sleep(0.05)
            else:
                return

    def _program(self, command: str) -> list[str]:
        program, *arguments = shlex.split(command.replace(PORT, self._port))
        return [str(Path(sys.executable).parent / program), *arguments]

    def _folder(self, name: str) -> Path:
        folder = self._work / name
        if name == NEW:
            folder.mkdir(exist_ok=True)
        elif not folder.exists():
            ignored = shutil.ignore_patterns(".evalmeta", "__pycache__")
            shutil.copytree(ROOT / name, folder, ignore=ignored, dirs_exist_ok=True)
        return folder


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not LEFT_OUT.fullmatch(name)}


def _help_of_section(section: str | None) -> Iterator[str]:
    context = click.Context(cli, info_name="evalmeta", help_option_names=["-h", "--help"], terminal_width=HELP_WIDTH)
    if section is None:
        yield f"## evalmeta\n\n```text\n{cli.get_help(context)}\n```\n\n"
        return
    for name in cli.sections[section]:
        if command := cli.get_command(context, name):
            yield from _help(command, f"evalmeta {name}", context)


def _help(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, parent, info_name=name.rpartition(" ")[2], terminal_width=HELP_WIDTH)
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n\n"
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            if sub := command.get_command(context, word):
                yield from _help(sub, f"{name} {word}", context)


def _rules() -> Iterator[str]:
    yield "| code | orgs | documented | what it demands |\n|---|---|---|---|\n"
    for rule in list_rules():
        if not rule.is_fixed:
            yield f"| {_link(rule.code)} | {rule.orgs} | {rule.documented} | {rule.demand} |\n"
    yield "\nNo profile and no setting changes these:\n\n| code | severity | what it demands |\n|---|---|---|\n"
    for rule in list_rules():
        if rule.is_fixed:
            yield f"| {_link(rule.code)} | {rule.documented} | {rule.demand} |\n"


def _checks() -> Iterator[str]:
    yield "| key | the check passes if | example |\n|---|---|---|\n"
    for check in CHECKS.values():
        yield f"| `{check.name}` | {check.passes} | `{check.name}: {check.example}` |\n"


def _metrics(rows: Mapping[str, Metric], head: str) -> Iterator[str]:
    yield f"| {head} |\n{'|---' * len(head.split('|'))}|\n"
    # Metrics that say the same share a row.
    for docs in dict.fromkeys(metric.docs for metric in rows.values()):
        names = ", ".join(f"`{name}`" for name, metric in rows.items() if metric.docs == docs)
        yield " ".join(("|", names, "|", *(f"{cell} |".lstrip() for cell in docs))) + "\n"


def _link(code: str) -> str:
    return f"[`{code}`](../src/evalmeta/validation/pages/{code}.md)"


if __name__ == "__main__":
    sys.exit(main())
