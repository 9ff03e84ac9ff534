"""`evalmeta retrieve`, `status` and `diff`: retrieve the org's components, and compare them with the project's."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api, limits
from evalmeta.cli.jobs import wait_option, wait_seconds
from evalmeta.cli.options import FOLDER, api_version_option, selection_options, target_org_option, zip_name
from evalmeta.cli.orgs import choose_target, run_in_org, run_in_target
from evalmeta.cli.output import console, json_option, note, print_json, print_problems, print_styled, print_table, warn
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, Suggestion, WaitRanOut
from evalmeta.package.project import find_project
from evalmeta.report.comparison import difference_json, difference_lines
from evalmeta.report.problems import problem_json
from evalmeta.report.progress import JobProgress
from evalmeta.report.text import attributes_json, count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.retrievals import PackageFile, Retrieval, RetrievedPackage
    from evalmeta.client.connection import Connection
    from evalmeta.model.difference import Difference
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.selection import Selection
    from evalmeta.protocol.metadata_api import RetrieveResult


@click.command()
@click.argument("start", type=click.Choice(["start"]), required=False, expose_value=False, metavar="[start]")
@selection_options()
@click.option("-c", "--ignore-conflicts", is_flag=True, help="Overwrite files that were changed in the project.")
@click.option(
    "-t",
    "--target-metadata-dir",
    "folder",
    type=FOLDER,
    help="Save the org's zip in this folder, and leave the project's files unchanged.",
)
@click.option("--zip-file-name", help="The zip's name there; .zip is added if needed.  [default: unpackaged.zip]")
@click.option("-z", "--unzip", is_flag=True, help="Also unpack the zip, beside it.")
@click.option("--single-package", is_flag=True, help="Leave out the folder 'unpackaged' in the zip.")
@wait_option("33")
@api_version_option
@target_org_option
@json_option
def retrieve(
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
    """Retrieve components from the org into the project.

    Without a selection, everything in the org is retrieved; --source-dir selects the
    components that it contains now. Files with the same content are not touched. If a
    file was changed in the project, nothing is written.

    \b
    evalmeta retrieve
    evalmeta retrieve --manifest package.xml
    evalmeta retrieve --metadata 'AiEvaluationDefinition:Order_*'
    evalmeta retrieve --target-metadata-dir backup --unzip
    """
    file = _package_file(folder, zip_file_name, unzip=unzip, single_package=single_package)
    project = find_project(Path.cwd())
    target = choose_target(project, target_org)
    seconds = wait_seconds(wait, default=limits.RETRIEVE_WAIT_SECONDS)

    async def fetch(connection: Connection) -> int:
        manifest = await api.packages.manifest_to_retrieve(connection, project, selection, api_version=api_version)
        with JobProgress(console(err=True), "Retrieve", enabled=not as_json) as progress:

            def show(now: RetrieveResult) -> None:
                progress.update(now.status)

            if file is None:
                done = await api.retrievals.retrieve(
                    connection, project, manifest, ignore_conflicts=ignore_conflicts, wait=seconds, on_progress=show
                )
                return _print_files(done, as_json=as_json)
            saved = await api.retrievals.retrieve_package(
                connection, project, manifest, file=file, wait=seconds, on_progress=show
            )
            return _print_package(saved, as_json=as_json)

    try:
        return run_in_target(project, target, fetch, api_version=api_version)
    except WaitRanOut as timed_out:
        way_out = Suggestion("Nothing was written. To wait longer, run", "retrieve", "--wait", "MINUTES")
        raise WaitRanOut(str(timed_out), job_id=timed_out.job_id, actions=[way_out]) from None


def _package_file(folder: Path | None, name: str | None, *, unzip: bool, single_package: bool) -> PackageFile | None:
    if folder is None:
        if name is not None or unzip or single_package:
            raise click.UsageError("--zip-file-name, --unzip and --single-package need --target-metadata-dir.")
        return None
    path = folder / zip_name("unpackaged.zip" if name is None else name, folder_option="--target-metadata-dir")
    return api.retrievals.PackageFile(path, unzip=unzip, single_package=single_package)


def _print_files(done: Retrieval, *, as_json: bool) -> int:
    if as_json:
        files = [asdict(component) for component in done.components]
        print_json({"id": done.id, "status": "Succeeded", "files": files}, warnings=done.messages)
        return EXIT_PASSED
    for message in done.messages:
        warn(message)
    click.echo(f"Retrieved {count(len(done.components), 'component')}.")
    ordered = sorted(done.components, key=lambda component: component.full_name.casefold())
    print_table(["State", "Name", "File"], [(file.state, file.full_name, file.file) for file in ordered])
    return EXIT_PASSED


def _print_package(saved: RetrievedPackage, *, as_json: bool) -> int:
    folder = None if saved.folder is None else str(saved.folder)
    if as_json:
        result: JsonObject = {"id": saved.id, "status": "Succeeded", "zipFilePath": str(saved.file), "folder": folder}
        print_json({**result, "files": saved.entries}, warnings=saved.messages)
        return EXIT_PASSED
    for message in saved.messages:
        warn(message)
    unpacked = f", unpacked to {folder}" if folder else ""
    click.echo(f"{saved.state} {saved.file}: {count(len(saved.entries), 'file')}{unpacked}.")
    return EXIT_PASSED


@click.command()
@target_org_option
@json_option
def status(*, target_org: str | None, as_json: bool) -> None:
    """List what changed in the project or in the org since the last deploy or retrieve.

    In a conflict, both sides changed, or they differ and this project never deployed or
    retrieved the component.

    \b
    evalmeta status
    """
    found = run_in_org(target_org, api.changes.status)
    if as_json:
        components: list[JsonValue] = [
            {**attributes_json(component, "state", "type", "full_name"), "file": component.file or None}
            for component in found.components
        ]
        print_json({"components": components, "total": found.total})
        return
    rows = [(component.state.value, component.full_name, component.file) for component in found.components]
    print_table(["State", "Name", "File"], rows)
    if found.components:
        verb = "differs" if found.total == 1 else "differ"
        differing = f"{len(found.components):,} of {count(found.total, 'component')} {verb}"
        note(Suggestion(f"{differing}. See how", "diff"))
    else:
        click.echo(f"Project and org are the same ({count(found.total, 'component')}).")


_COLOURS: Final = {"old": "red", "new": "green"}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]... | FILE FILE")
@target_org_option
@json_option
def diff(names: tuple[str, ...], *, target_org: str | None, as_json: bool) -> int:
    """Show how components differ between the project and the org.

    NAME is a component's full name; without one, all that differ are shown: definitions by
    test case and expectation, bundles by file. Lines of the org are marked -, lines of the
    project +. Two files are compared with each other.

    \b
    evalmeta diff
    evalmeta diff Order_Desk
    evalmeta diff old/Order_Desk.aiEvaluationDefinition Order_Desk.aiEvaluationDefinition
    """
    files = [Path(name) for name in names]
    if len(files) == 2 and all(file.is_file() for file in files):  # noqa: PLR2004 - FILE FILE
        difference = api.changes.diff_files(*files)
        found = [difference] if difference else []
    else:
        found = run_in_org(target_org, lambda connection, project: api.changes.diff(connection, project, names))
    return _report(found, as_json=as_json)


def _report(found: Sequence[Difference], *, as_json: bool) -> int:
    problems = [problem for difference in found for problem in difference.problems]
    status = EXIT_FAILED if problems else EXIT_PASSED
    if as_json:
        comparable = [difference_json(difference) for difference in found if not difference.problems]
        print_json({"differences": comparable, "problems": [*map(problem_json, problems)]}, status=status)
        return status
    for difference in found:
        if not difference.problems:
            print_styled(difference_lines(difference), _COLOURS)
    if problems:
        print_problems(problems, err=True)
    if not found:
        click.echo("No differences.")
    return status
