"""`evalmeta retrieve`: fetch definitions from the org."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import limits
from evalmeta.cli.jobs import run_async, seconds_of, wait_option
from evalmeta.cli.options import api_version_option, choose_target, connected, selection_options, target_org_option
from evalmeta.cli.output import console, json_option, note, print_json, print_table
from evalmeta.errors import EXIT_PASSED, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from evalmeta.api.org_targets import Target
    from evalmeta.api.orgs import PackageFile, Retrieval, RetrievedPackage
    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Manifest
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project
    from evalmeta.package.selection import Selection
    from evalmeta.protocol.metadata_api import RetrieveResult

    _T = TypeVar("_T")
    _Show = Callable[[RetrieveResult], None]


@click.command()
@selection_options()
@click.option("-c", "--ignore-conflicts", is_flag=True, help="Overwrite files that were changed here.")
@click.option(
    "-t",
    "--target-metadata-dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the org's zip in this folder, and touch no file of the project.",
)
@click.option("--zip-file-name", help="The zip's name there; .zip is added when missing.  [default: unpackaged.zip]")
@click.option("-z", "--unzip", is_flag=True, help="Also unpack the zip, beside it.")
@click.option("--single-package", is_flag=True, help="Have no folder 'unpackaged' in the zip.")
@wait_option("33")
@api_version_option
@target_org_option
@json_option
def retrieve(  # noqa: PLR0913 - one parameter for each option
    selection: Selection,
    *,
    ignore_conflicts: bool,
    folder: Path | None,
    zip_file_name: str | None,
    unzip: bool,
    single_package: bool,
    wait: float | None,
    api_version: ApiVersion | None,
    target_org: str | None,
    as_json: bool,
) -> int:
    """Fetch definitions from the org and write the project's files.

    Without a selection everything in the org is fetched; --source-dir stands for the
    definitions that are there now. Files with the same content are not touched. Files
    that were changed here are not overwritten, and then nothing is written.

    \b
    evalmeta retrieve
    evalmeta retrieve --manifest package.xml
    evalmeta retrieve --metadata 'AiEvaluationDefinition:Order_*'
    evalmeta retrieve --target-metadata-dir backup --unzip
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    file = _package_file(folder, zip_file_name, unzip=unzip, single_package=single_package)
    project = find_project(Path.cwd())
    target = choose_target(project, target_org)
    seconds = seconds_of(wait, otherwise=limits.RETRIEVE_WAIT_SECONDS)

    async def fetch(connection: Connection, manifest: Manifest | None, show: _Show) -> int:
        from evalmeta.api import orgs  # noqa: PLC0415 - not needed for --help

        if file is None:
            done = await orgs.retrieve(
                connection, project, manifest, ignore_conflicts=ignore_conflicts, wait=seconds, on_progress=show
            )
            return _print_files(done, as_json=as_json)
        kept = await orgs.retrieve_package(connection, project, manifest, file=file, wait=seconds, on_progress=show)
        return _print_package(kept, as_json=as_json)

    return run_async(_retrieve(project, target, selection, fetch, api_version=api_version, shows=not as_json))


def _package_file(folder: Path | None, name: str | None, *, unzip: bool, single_package: bool) -> PackageFile | None:
    from evalmeta.api.orgs import PackageFile  # noqa: PLC0415 - not needed for --help

    if folder is None:
        if name is not None or unzip or single_package:
            raise click.UsageError("--zip-file-name, --unzip and --single-package need --target-metadata-dir.")
        return None
    name = "unpackaged.zip" if name is None else name
    if not name or Path(name).name != name:
        raise click.UsageError("--zip-file-name takes the name of a file; its folder is --target-metadata-dir.")
    path = folder / (name if name.endswith(".zip") else f"{name}.zip")
    return PackageFile(path, unzip=unzip, single_package=single_package)


async def _retrieve(
    project: Project,
    target: Target | None,
    selection: Selection,
    fetch: Callable[[Connection, Manifest | None, _Show], Awaitable[_T]],
    *,
    api_version: ApiVersion | None,
    shows: bool,
) -> _T:
    from evalmeta.api import packages  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.progress import JobProgress  # noqa: PLC0415 - likewise

    async with connected(project, target, api_version=api_version) as connection:
        manifest = await packages.manifest_to_retrieve(connection, project, selection, api_version=api_version)
        with JobProgress(console(err=True), "Retrieve", enabled=shows) as progress:
            try:
                return await fetch(connection, manifest, lambda now: progress.update(now.status))
            except WaitRanOut as over:
                way_out = "Nothing was written. Retrieve again, and wait longer: evalmeta retrieve --wait MINUTES"
                raise WaitRanOut(str(over), job_id=over.job_id, actions=[way_out]) from None


def _print_files(done: Retrieval, *, as_json: bool) -> int:
    if as_json:
        files = [asdict(component) for component in done.components]
        print_json({"id": done.id, "status": "Succeeded", "files": files}, warnings=done.messages)
        return EXIT_PASSED
    for message in done.messages:
        note(f"Warning: {message}")
    count = len(done.components)
    click.echo(f"Retrieved {count} {'component' if count == 1 else 'components'}.")
    ordered = sorted(done.components, key=lambda each: each.full_name.casefold())
    print_table(["State", "Name", "File"], [(each.state, each.full_name, each.file) for each in ordered])
    return EXIT_PASSED


def _print_package(kept: RetrievedPackage, *, as_json: bool) -> int:
    unpacked = None if kept.folder is None else str(kept.folder)
    if as_json:
        print_json(
            {
                "id": kept.id,
                "status": "Succeeded",
                "zipFilePath": str(kept.file),
                "folder": unpacked,
                "files": list(kept.entries),
            },
            warnings=kept.messages,
        )
        return EXIT_PASSED
    for message in kept.messages:
        note(f"Warning: {message}")
    count = f"{len(kept.entries):,} {'file' if len(kept.entries) == 1 else 'files'}"
    click.echo(f"{kept.state} {kept.file}: {count}{'' if unpacked is None else f', unpacked to {unpacked}'}.")
    return EXIT_PASSED
