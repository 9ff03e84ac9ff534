"""`evalmeta validate`: check definitions and manifests without an org."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.options import selection_options
from evalmeta.cli.output import json_option, print_json, print_problems
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED
from evalmeta.report.problems import FORMATS, render

if TYPE_CHECKING:
    from evalmeta.api.files import Validation
    from evalmeta.package.selection import Selection


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@selection_options()
@click.option("--result-format", type=click.Choice(FORMATS), default="human", show_default=True, help="How to report.")
@json_option
def validate(paths: tuple[Path, ...], *, selection: Selection, result_format: str, as_json: bool) -> int:
    """Check definitions and manifests; exit 1 when something is wrong.

    PATH is a definition, a package.xml, destructive changes or a folder, which is
    searched through. Without one, and without a selection, the project's definitions and
    its manifests are checked. --manifest checks the manifest and what it names.

    \b
    evalmeta validate
    evalmeta validate force-app manifest/package.xml
    evalmeta validate --manifest manifest/package.xml
    evalmeta validate --result-format sarif > evalmeta.sarif

    `evalmeta rule CODE` explains the rule behind a problem.
    """
    if paths and not selection.is_everything:
        raise click.UsageError("PATH excludes --source-dir, --manifest and --metadata.")
    from evalmeta.api import files  # noqa: PLC0415 - not needed for --help

    found = files.validate(paths) if selection.is_everything else _validate_selection(selection)
    status = EXIT_PASSED if found.is_valid else EXIT_FAILED
    if as_json:
        _print_envelope(found, status)
    elif result_format == "human":
        print_problems(found.problems, files=found.files)
    else:
        click.echo(render(result_format, found.problems, files=found.files), nl=False)
    return status


def _print_envelope(found: Validation, status: int) -> None:
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - not needed for --help

    print_json({"files": found.files, "problems": [problem_json(each) for each in found.problems]}, status=status)


def _validate_selection(selection: Selection) -> Validation:
    from evalmeta.api.selections import validate_selection  # noqa: PLC0415 - not needed for --help

    return validate_selection(selection)
