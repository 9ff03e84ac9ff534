"""`evalmeta package` and `evalmeta manifest`: write the zip of a deployment, and manifests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.options import FOLDER, PATH, api_version_option, selection_options, target_org_option, zip_name
from evalmeta.cli.orgs import choose_target, run_in_target
from evalmeta.cli.output import json_option, print_json, print_warnings, warn
from evalmeta.package.files import shown
from evalmeta.package.project import find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.selection import Selection


_NAMES: Final = {
    "package": "package.xml",
    "pre": "destructiveChangesPre.xml",
    "post": "destructiveChangesPost.xml",
    "destroy": "destructiveChanges.xml",
}
_output_dir_option = click.option(
    "-r",
    "--output-dir",
    type=FOLDER,
    default=".",
    help="The folder to write it to; it is created if needed.  [default: the current folder]",
)


@click.group(cls=FullHelpGroup)
def package() -> None:
    """Build packages for the Metadata API."""


@package.command()
@selection_options()
@click.option(
    "-z", "--zip-file-name", default="package.zip", show_default=True, help="The zip's name; .zip is added if needed."
)
@_output_dir_option
@click.option("--pre-destructive-changes", "pre", type=PATH, help="Manifest of what to delete first; needs --manifest.")
@click.option(
    "--post-destructive-changes", "post", type=PATH, help="Manifest of what to delete last; needs --manifest."
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
    """Write the zip of a deployment, by default of the whole project.

    The build is reproducible: the same files always result in the same bytes. Destructive
    changes beside the manifest are included, while `deploy` sends only those that options
    name. Contents are not checked: `evalmeta validate` does that.

    \b
    evalmeta package build
    evalmeta package build --manifest manifest/package.xml --output-dir dist
    evalmeta package build --source-dir force-app/orders --zip-file-name orders
    """
    path = output_dir / zip_name(zip_file_name, folder_option="--output-dir")
    destructive = api.packages.find_destructive(selection.manifest, pre=pre, post=post)
    project = find_project(Path.cwd())
    built = api.packages.build_package(project, selection, path, destructive=destructive, api_version=api_version)
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
    print_warnings(built.warnings)
    for message in built.messages:
        warn(message)
    contents = ", ".join((count(built.components, "component"), *built.destructive))
    click.echo(f"{built.state} {shown(built.path)}: {contents}, {built.size:,} bytes.")
    click.echo(f"sha256 {built.sha256}")


@click.group(cls=FullHelpGroup)
def manifest() -> None:
    """Write manifests: package.xml and destructive changes."""


@manifest.command()
@selection_options(source_dir=("-d", "-p"))
@click.option("--from-org", is_flag=True, help="List what the org has instead of what the project has.")
@click.option("-n", "--name", help="The file's name.  [default: package.xml]")
@click.option("-t", "--type", "kind", type=click.Choice(list(_NAMES)), help="The kind of manifest; sets its name.")
@_output_dir_option
@api_version_option
@target_org_option
@json_option
def generate(
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
    """Write a sorted manifest of a selection, by default of the whole project.

    --type pre, post and destroy write destructive changes, which list each component to
    delete. Their components need not exist in the project if --metadata names them. An
    existing file is replaced.

    \b
    evalmeta manifest generate --source-dir force-app --output-dir manifest
    evalmeta manifest generate --metadata 'AiEvaluationDefinition:Order_*'
    evalmeta manifest generate --from-org --name all.xml
    evalmeta manifest generate --type post --metadata AiEvaluationDefinition:Old_Tests
    """
    path = output_dir / _file_name(name, kind)
    project = find_project(Path.cwd())
    if from_org:
        made = run_in_target(
            project,
            choose_target(project, target_org),
            lambda connection: api.packages.manifest_from_org(connection, project, selection, api_version=api_version),
            api_version=api_version,
        )
    else:
        deletes = kind not in {None, "package"}
        made = api.packages.manifest_from_project(project, selection, deletes=deletes, api_version=api_version)
    state = api.packages.save_manifest(made, path)
    members = sum(len(block.members) for block in made.types)
    if as_json:
        print_json({"name": path.name, "path": str(path), "state": state, "members": members, "version": made.version})
    else:
        click.echo(f"{state} {shown(path)} ({count(members, 'member')}, API version {made.version}).")


def _file_name(name: str | None, kind: str | None) -> str:
    if name is None:
        return _NAMES[kind or "package"]
    if kind is not None:
        raise click.UsageError("--name and --type cannot be combined.")
    if Path(name).name != name:
        raise click.UsageError("--name must be a file name; its folder is --output-dir.")
    return name if name.endswith(".xml") else f"{name}.xml"
