"""`evalmeta test accept`: make an answer of a run the new expectation of its test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.jobs import job_options
from evalmeta.cli.options import IntRange, target_org_option
from evalmeta.cli.output import json_option, print_json, print_styled
from evalmeta.errors import UsageError
from evalmeta.package.files import shown
from evalmeta.package.project import find_project
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.api.judging.acceptance import Proposal

_COLOURS: Final = {"-": "red", "+": "green", "@": "cyan"}


@click.command()
@job_options("run")
@click.option("--case", "number", type=IntRange(1), required=True, help="The number of the case.")
@click.option("--expectation", metavar="NAME", help="The expectation.  [default: the one that did not pass]")
@click.option("--turn", type=IntRange(1), help="The turn of the result, if the expectation is judged in several.")
@click.option("--iteration", type=IntRange(1), help="The iteration, if iterations have different answers.")
@click.option("--dry-run", is_flag=True, help="Show the change without writing it.")
@click.option("--yes", is_flag=True, help="Write the change without asking.")
@target_org_option
@json_option
def accept(
    *,
    job_id: str | None,
    number: int,
    expectation: str | None,
    turn: int | None,
    iteration: int | None,
    dry_run: bool,
    yes: bool,
    target_org: str | None,
    as_json: bool,
) -> None:
    """Make an answer of a run the new expectation of its test.

    The answer, topic or actions of one result replace the expected value in the definition
    or test spec. The command shows the change and asks before it writes. No other byte of
    the file changes. Results of earlier runs do not change either: run the test again.

    \b
    evalmeta test accept --job-id latest --case 3
    evalmeta test accept --job-id latest --case 3 --expectation topic_sequence_match --yes
    """
    run = api.runs.reruns.find_run(Path.cwd(), job_id, named=target_org)
    proposal = api.judging.acceptance.propose(
        find_project(Path.cwd()),
        run.id,
        number,
        expectation=expectation,
        turn=turn,
        iteration=iteration,
        org_url=run.remote.org_url if run.remote else "",
    )
    if not as_json:
        click.echo(f"{proposal.what}:")
        print_styled(((line[:1], line) for line in clean(proposal.diff).splitlines()), _COLOURS)
    if not dry_run:
        _confirm(proposal, yes=yes)
        api.judging.acceptance.write(proposal)
    if as_json:
        what = {"change": proposal.what, "diff": proposal.diff}
        print_json({"file": shown(proposal.path), "written": not dry_run, **what})
    elif not dry_run:
        click.echo(f"Changed {shown(proposal.path)}.")


def _confirm(proposal: Proposal, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "the change must be confirmed in a terminal; nothing was written",
            actions=["To write it without confirmation, add --yes."],
        )
    click.confirm(f"Write this to {shown(proposal.path)}?", abort=True, err=True)
