"""`evalmeta view`: look at tests, runs, comparisons and trends in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api, limits
from evalmeta.cli.options import IntRange
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.errors import EvalmetaError, Interrupted, UsageError
from evalmeta.package.project import Project, find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.viewer.server import Start


@click.command()
@click.argument("archive", required=False, metavar="[ARCHIVE]")
@click.option("--port", type=IntRange(0, 65535), help="0 uses any free port.  [default: 8161, or a free one]")
@click.option("--no-open", is_flag=True, help="Print the address and the code without opening a browser.")
@click.option(
    "--export", "folder", type=click.Path(path_type=Path, file_okay=False), help="Write the pages as two files."
)
@click.option(
    "--store",
    metavar="URL",
    help="Show another store: a URL without password, shared (that of EVALMETA_STORE) or local.",
)
@json_option
def view(
    *, archive: str | None, port: int | None, no_open: bool, folder: Path | None, store: str | None, as_json: bool
) -> None:
    """Look at tests, runs, cases, comparisons and trends in a browser.

    The pages show the project's store, also while tests run. Only this machine can reach them. In a terminal,
    the command opens a browser that is logged in; other browsers need the code that is printed, which logs
    in once. Ctrl-C stops the server. ARCHIVE is the folder or the address of runs that `evalmeta test archive` wrote,
    which are then shown instead. With --store, the pages show the store of a team, without a project too. With
    --export, they are written as two files that open from disk and that CI can publish.

    \b
    evalmeta view
    evalmeta view --port 9000 --no-open
    evalmeta view archives/2026-11-25
    evalmeta view --store postgresql://ada@db.example.com/team
    evalmeta view --export build/evaluations
    """
    project = find_project(Path.cwd(), or_folder=True)
    if store is not None:
        if archive is not None:
            raise UsageError("an archive is not in a store", actions=["Leave out ARCHIVE or --store."])
        project = api.stores.with_store(project, store)
    if archive is not None:
        project = api.runs.archives.open_archive(project, archive, on_progress=_show_results).project
    if folder is not None:
        if port is not None or no_open:
            raise UsageError("--export serves nothing", actions=["Leave out --port and --no-open."])
        _export(project, folder, as_json=as_json)
        return
    from evalmeta.viewer.server import serve_view

    def show(start: Start) -> None:
        if as_json:
            print_json({"url": start.url, "code": start.code})
        else:
            minutes = f"{limits.VIEW_CODE_SECONDS / 60:.0f} minutes"
            click.echo(f"Open {start.url}\nCode {start.code} (logs in once, within {minutes})\nStop it: Ctrl-C")
        sys.stdout.flush()
        if not no_open and not as_json and sys.stdout.isatty():
            try:
                start.open_browser()
            except EvalmetaError as error:
                note(f"No browser was opened: {error}")

    run_async(serve_view(project, port=port, on_start=show))
    note("Stopped.")


def _export(project: Project, folder: Path, *, as_json: bool) -> None:
    from evalmeta.viewer.export import export

    try:
        written = export(project, folder)
    except KeyboardInterrupt:
        raise Interrupted(f"the export was interrupted; nothing in {folder} has changed") from None
    runs, cases = written.left_out_runs, written.left_out_cases
    if as_json:
        print_json({"folder": str(folder), "pages": written.pages, "leftOut": {"runs": runs, "cases": cases}})
        return
    click.echo(f"Wrote {count(written.pages, 'page')} into {folder}: open {folder / 'index.html'}")
    if runs or cases:
        left_out = f"{count(runs, 'older run')}, {count(cases, 'case result')}"
        note(f"Not written, to keep it small: {left_out}. `evalmeta view` shows all.")


def _show_results(results: int) -> None:
    note(f"{results:,} results so far")
