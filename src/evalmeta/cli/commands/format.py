"""`evalmeta format`: format definitions and manifests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.output import json_option, note, print_json, print_problems
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED
from evalmeta.report.problems import problem_json
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.api.files import Formatting


@click.command("format")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--check", is_flag=True, help="List the files that would change without writing; exit with 1 if any.")
@json_option
def format_(paths: tuple[Path, ...], *, check: bool, as_json: bool) -> int:
    """Format definitions and manifests as an org writes them.

    Sets order, indentation and escaping. Comments stay with their elements, and texts
    never change. PATH is a definition, a manifest or a folder to search. By default, the
    project's definitions and manifests are formatted. Files with problems are not
    changed, and the exit code is then 1.

    \b
    evalmeta format
    evalmeta format --check force-app manifest/package.xml
    """
    done = api.files.format_files(paths, check=check)
    status = EXIT_FAILED if done.problems or (check and done.changed) else EXIT_PASSED
    if as_json:
        problems = [problem_json(each) for each in done.problems]
        print_json({"files": done.files, "changed": [*done.changed], "problems": problems}, status=status)
        return status
    if done.problems:
        print_problems(done.problems, files=done.files, err=True)
    for file in done.changed:
        click.echo(file)
    note(_last_line(done, check=check))
    return status


def _last_line(done: Formatting, *, check: bool) -> str:

    if not done.changed:
        return f"{count(done.files - len({each.location.path for each in done.problems}), 'file')} already formatted."
    return f"{'Would format' if check else 'Formatted'} {len(done.changed):,} of {count(done.files, 'file')}."
