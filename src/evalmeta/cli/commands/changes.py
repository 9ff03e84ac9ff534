"""`evalmeta changes`: what broke since an earlier state of the tests, why, and by whose fault."""

from __future__ import annotations

import time
from pathlib import Path

import click

from evalmeta import api
from evalmeta.cli.completions import complete_tests
from evalmeta.cli.groups import run_hint
from evalmeta.cli.output import json_option, print_json, print_styled
from evalmeta.cli.runs.baselines import COLOURS
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_PASSED, NotFound
from evalmeta.package.project import find_project
from evalmeta.report.changes import change_lines, changes_json, headline


@click.command()
@click.argument("test", required=False, metavar="[TEST]", shell_complete=complete_tests)
@click.option(
    "--since",
    default="",
    metavar="WHEN|RUN|BRANCH",
    help="What to compare with: yesterday, previous, green (the last run that passed), branch (the same), main, 3d, "
    "2026-11-25, a run's id, a branch or a baseline file.  [default: yesterday, or else previous]",
)
@click.option(
    "--branch",
    default="",
    metavar="BRANCH",
    help="Look at the newest results of this branch.  [default: the newest of any branch]",
)
@json_option
def changes(*, test: str | None, since: str, branch: str, as_json: bool) -> int:
    """Show which cases broke, why, by whose fault, and since which commit.

    The newest state of each test is compared with an earlier one: the last run of all its
    cases, and the results of later runs of some cases (--case, --last-failed). Failures with
    the same cause are one entry. Suspect cases, which chance may explain, are listed apart.
    With `yesterday`, that is the state before the day (UTC) of the newest run.

    \b
    evalmeta changes
    evalmeta changes --since 3d
    evalmeta changes --since main tests/orders.yaml

    The exit code is 100 if a case broke, and 0 if none did. If there is nothing to compare
    with, it is 2.
    """
    project, now = find_project(Path.cwd(), or_folder=True), time.time()
    found = api.runs.recent_changes.read_changes(project, since, test=test or "", branch=branch)
    if not found.compared:
        actions = [run_hint(project), "See the runs: evalmeta test history"]
        why = next((reason for _, reason in found.not_compared), "")
        text = headline(found, now)
        text = text[0].lower() + text[1:]
        raise NotFound(f"{text}: {why}" if why else text, actions=actions)
    code = EXIT_EXPECTATION_FAILED if found.broken else EXIT_PASSED
    if as_json:
        print_json(changes_json(found), status=code)
    else:
        print_styled(change_lines(found, now), COLOURS)
    return code
