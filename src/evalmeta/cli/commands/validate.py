"""`evalmeta validate`: check definitions and manifests without an org."""

from __future__ import annotations

from pathlib import Path

import click

from evalmeta.cli.output import json_option, print_json, print_problems
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED

__all__ = ["validate"]


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@json_option
def validate(paths: tuple[Path, ...], *, as_json: bool) -> int:
    """Check definitions and manifests; exit 1 when something is wrong.

    PATH is a definition, a package.xml or a folder, which is searched through.
    Without one, the project's definitions and its package.xml are checked.

    \b
    evalmeta validate
    evalmeta validate force-app manifest/package.xml
    """
    from evalmeta.api import metadata  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - likewise

    found = metadata.validate(paths)
    status = EXIT_PASSED if found.is_valid else EXIT_FAILED
    if as_json:
        print_json({"files": found.files, "problems": [problem_json(each) for each in found.problems]}, status=status)
    else:
        print_problems(found.problems, files=found.files)
    return status
