"""`evalmeta format`: write definitions and manifests in one form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.output import json_option, note, print_json, print_problems
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED

if TYPE_CHECKING:
    from evalmeta.api.files import Formatting


@click.command("format")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Write nothing; list what would change and exit 1 if anything would.")
@json_option
def format_(paths: tuple[Path, ...], *, check: bool, as_json: bool) -> int:
    """Write definitions and manifests as an org hands them out: order, indentation, escaping.

    Comments stay with the elements they belong to, and texts never change. PATH is a
    definition, a manifest or a folder, which is searched through. Without one, the
    project's definitions and its manifests are formatted. Files with problems are left
    alone; then the exit code is 1.

    \b
    evalmeta format
    evalmeta format --check force-app manifest/package.xml
    """
    from evalmeta.api import files  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - likewise

    done = files.format_files(paths, check=check)
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
    from evalmeta.report.text import count  # noqa: PLC0415 - not needed for --help

    if not done.changed:
        return f"{count(done.files - len({each.location.path for each in done.problems}), 'file')} formatted already."
    return f"{'Would format' if check else 'Formatted'} {len(done.changed):,} of {count(done.files, 'file')}."
