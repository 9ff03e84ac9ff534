"""`evalmeta manifest`: package.xml and destructive changes, made from files or from an org."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.jobs import run_async
from evalmeta.cli.options import api_version_option, choose_target, connected, selection_options, target_org_option
from evalmeta.cli.output import json_option, print_json

if TYPE_CHECKING:
    from evalmeta.api.org_targets import Target
    from evalmeta.model.component import Manifest
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project
    from evalmeta.package.selection import Selection


_NAMES: Final = {
    "package": "package.xml",
    "pre": "destructiveChangesPre.xml",
    "post": "destructiveChangesPost.xml",
    "destroy": "destructiveChanges.xml",
}


@click.group()
def manifest() -> None:
    """Make manifests: package.xml and destructive changes."""


@manifest.command()
@selection_options(source_dir=("-d", "-p"))
@click.option("--from-org", is_flag=True, help="Name what the org has, not what the project has.")
@click.option("-n", "--name", help="The file's name.  [default: package.xml]")
@click.option("-t", "--type", "kind", type=click.Choice(list(_NAMES)), help="A manifest of this kind, by its own name.")
@click.option(
    "-r",
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="The folder to write it to, made when missing.  [default: the current one]",
)
@api_version_option
@target_org_option
@json_option
def generate(  # noqa: PLR0913 - one parameter for each option
    selection: Selection,
    *,
    from_org: bool,
    name: str | None,
    kind: str | None,
    output_dir: Path,
    api_version: ApiVersion | None,
    target_org: str | None,
    as_json: bool,
) -> None:
    """Write a manifest that names a selection, sorted; without one, all that the project has.

    --type pre, post and destroy make destructive changes: they name what is to be
    deleted, each component by itself; what --metadata names need not be in the
    project any more. A file that is there already is replaced.

    \b
    evalmeta manifest generate --source-dir force-app --output-dir manifest
    evalmeta manifest generate --metadata 'AiEvaluationDefinition:Order_*'
    evalmeta manifest generate --from-org --name all.xml
    evalmeta manifest generate --type post --metadata AiEvaluationDefinition:Old_Tests
    """
    from evalmeta.api import packages  # noqa: PLC0415 - not needed for --help
    from evalmeta.api.files import shown  # noqa: PLC0415 - likewise
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    path = output_dir / _file_name(name, kind)
    project = find_project(Path.cwd())
    if from_org:
        target = choose_target(project, target_org)
        made = run_async(_from_org(project, target, selection, api_version))
    else:
        deletes = kind not in {None, "package"}
        made = packages.manifest_from_project(project, selection, deletes=deletes, api_version=api_version)
    state = packages.save_manifest(made, path)
    count = sum(len(block.members) for block in made.types)
    if as_json:
        print_json({"name": path.name, "path": str(path), "state": state, "members": count, "version": made.version})
        return
    members = "member" if count == 1 else "members"
    click.echo(f"{state} {shown(path)} ({count} {members}, API version {made.version}).")


def _file_name(name: str | None, kind: str | None) -> str:
    if name is None:
        return _NAMES[kind or "package"]
    if kind is not None:
        raise click.UsageError("--name and --type exclude each other.")
    if Path(name).name != name:
        raise click.UsageError("--name takes the name of a file; its folder is --output-dir.")
    return name if name.endswith(".xml") else f"{name}.xml"


async def _from_org(
    project: Project, target: Target | None, selection: Selection, api_version: ApiVersion | None
) -> Manifest:
    from evalmeta.api import packages  # noqa: PLC0415 - not needed for --help

    async with connected(project, target, api_version=api_version) as connection:
        return await packages.manifest_from_org(connection, project, selection, api_version=api_version)
