"""`evalmeta package`: the zip that a deployment would send."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.options import api_version_option, selection_options
from evalmeta.cli.output import json_option, note, print_json, print_problems

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.selection import Selection


@click.group()
def package() -> None:
    """Build packages for the Metadata API."""


@package.command()
@selection_options()
@click.option(
    "-z",
    "--zip-file-name",
    default="package.zip",
    show_default=True,
    help="The zip's name; .zip is added when missing.",
)
@click.option(
    "-r",
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="The folder to write it to, made when missing.  [default: the current one]",
)
@click.option(
    "--pre-destructive-changes",
    "pre",
    type=click.Path(path_type=Path),
    help="A manifest of what is to be deleted first; needs --manifest.",
)
@click.option(
    "--post-destructive-changes",
    "post",
    type=click.Path(path_type=Path),
    help="A manifest of what is to be deleted last; needs --manifest.",
)
@api_version_option
@json_option
def build(
    selection: Selection,
    *,
    zip_file_name: str,
    output_dir: Path,
    pre: Path | None,
    post: Path | None,
    api_version: ApiVersion | None,
    as_json: bool,
) -> None:
    """Write the zip of a deployment; without a selection, with all that the project has.

    The same files give the same bytes, on any machine and at any time. Destructive
    changes that stand beside the manifest go with it, while `deploy` sends only
    those that it is told to. Contents are not checked: `evalmeta validate` does that.

    \b
    evalmeta package build
    evalmeta package build --manifest manifest/package.xml --output-dir dist
    evalmeta package build --source-dir force-app/orders --zip-file-name orders
    """
    from evalmeta.api import packages  # noqa: PLC0415 - not needed for --help
    from evalmeta.api.files import shown  # noqa: PLC0415 - likewise
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    path = output_dir / _zip_name(zip_file_name)
    destructive = packages.find_destructive(selection.manifest, pre=pre, post=post)
    project = find_project(Path.cwd())
    built = packages.build_package(project, selection, path, destructive=destructive, api_version=api_version)
    if as_json:
        result: JsonValue = {
            "path": str(built.path),
            "state": built.state,
            "components": built.components,
            "destructiveChanges": list(built.destructive),
            "bytes": built.size,
            "sha256": built.sha256,
        }
        print_json(result, warnings=[*map(str, built.warnings), *built.messages])
        return
    if built.warnings:
        print_problems(built.warnings, err=True)
    for message in built.messages:
        note(f"Warning: {message}")
    count = f"{built.components:,} {'component' if built.components == 1 else 'components'}"
    click.echo(f"{built.state} {shown(built.path)}: {', '.join((count, *built.destructive))}, {built.size:,} bytes.")
    click.echo(f"sha256 {built.sha256}")


def _zip_name(name: str) -> str:
    if not name or Path(name).name != name:
        raise click.UsageError("--zip-file-name takes the name of a file; its folder is --output-dir.")
    return name if name.endswith(".zip") else f"{name}.zip"
