"""`evalmeta test mark|marks|accept`: people judge the verdicts of results, and make answers expectations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import click

from evalmeta import api
from evalmeta.cli.completions import complete_runs
from evalmeta.cli.jobs import job_options
from evalmeta.cli.options import FILE, IntRange, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_styled, print_table
from evalmeta.errors import NotFound, Suggestion, UsageError
from evalmeta.model.expectations import OUTCOME
from evalmeta.model.login import ADMIN
from evalmeta.package.files import put_file, shown
from evalmeta.package.project import find_project
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.text import clean, count, one_line
from evalmeta.store.database import open_database
from evalmeta.store.judgements import Judgement, ResultPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.judging.acceptance import Proposal
    from evalmeta.api.judging.marks import MarkedResult
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.model.json_value import JsonObject


@click.command()
@click.argument("judgement", required=False, type=click.Choice(get_args(Judgement)))
@job_options("run")
@click.option("--case", "number", type=IntRange(1), required=True, help="The number of the case.")
@click.option("--expectation", metavar="NAME", help="The expectation.  [default: the only one]")
@click.option("--turn", type=IntRange(1), help="The turn of the result, if the expectation is judged in several.")
@click.option("--iteration", type=IntRange(1), help="The iteration, if the run has several.")
@click.option("--note", "text", default="", metavar="TEXT", help="The reason for your judgement.")
@click.option("--remove", is_flag=True, help="Remove your judgement.")
@target_org_option
@json_option
def mark(
    *,
    judgement: Judgement | None,
    job_id: str | None,
    number: int,
    expectation: str | None,
    turn: int | None,
    iteration: int | None,
    text: str,
    remove: bool,
    target_org: str | None,
    as_json: bool,
) -> None:
    """Say whether the verdict of a result is right or wrong.

    If the result is undecided, say what it should be: pass or fail. A judgement never
    changes a verdict. The latest one of a person counts. Use the judgements to measure a
    rater: evalmeta test marks --export FILE

    \b
    evalmeta test mark wrong --job-id latest --case 3 --note "Tuesday is right, too."
    evalmeta test mark pass --job-id latest --case 4
    evalmeta test mark --remove --job-id latest --case 3
    """
    if remove == (judgement is not None):
        raise click.UsageError("Give one of right, wrong, pass, fail and --remove.")
    run = api.runs.reruns.find_run(Path.cwd(), job_id, named=target_org)
    project = run.project
    where = {"turn": turn, "iteration": iteration}
    place = api.judging.marks.find_place(
        project, run.id, number, expectation=expectation, org_url=_address(run), **where
    )
    with open_database(project.store) as database:
        api.judging.marks.mark_result(project, database, place, ADMIN, judgement, note=text)
    if as_json:
        print_json({**_place_json(place), "judgement": judgement})
        return
    done = f"Marked {place.name} of case {number} as {judgement}." if judgement else "Removed your judgement."
    click.echo(one_line(done))


@click.command()
@click.option("-i", "--job-id", metavar="ID", shell_complete=complete_runs, help="Only judgements of this run.")
@click.option("--export", "file", type=FILE, help="Write labelled pairs for `evalmeta rater check` to this file.")
@click.option("--metric", default=OUTCOME, show_default=True, help="The expectation whose results are exported.")
@target_org_option
@json_option
def marks(*, job_id: str | None, file: Path | None, metric: str, target_org: str | None, as_json: bool) -> None:
    """List what people said of results, or export it to check raters.

    With --export, these judged results become labelled pairs in JSON Lines: those that a rater
    decided, and undecided ones that should pass or fail.

    \b
    evalmeta test marks --job-id latest
    evalmeta test marks --export pairs.jsonl
    evalmeta rater check pairs.jsonl --rater judge
    """
    project = find_project(Path.cwd())
    run = api.runs.reruns.find_run(Path.cwd(), job_id, named=target_org) if job_id else None
    run_id, org_url = (run.id, _address(run)) if run else (None, "")
    with open_database(project.store) as database:
        found = api.judging.marks.marked_results(project, database, run_id=run_id, org_url=org_url)
    if file is not None:
        _export(found, file, metric, as_json=as_json)
        return
    right, decided = api.judging.marks.agreement(found)
    if as_json:
        print_json(
            {"agreed": right, "decided": decided, "marks": [_mark_json(marked_result) for marked_result in found]}
        )
        return
    print_table(
        ["Run", "Case", "Result", "Verdict", "Judgement", "By", "Note"],
        [_row(marked_result) for marked_result in found],
    )
    if not found:
        click.echo("Nobody has judged a result here.")
    elif decided:
        click.echo(f"\nPeople agreed with {right:,} of {count(decided, 'decided result')}.")
    for pair in api.judging.marks.agreement_of_people(marked_result.mark for marked_result in found):
        alike = f"agree about {pair.agreed:,} of {count(pair.results, 'result')}"
        click.echo(one_line(f"{' and '.join(pair.names)} {alike} that both judged."))


def _export(found: Sequence[MarkedResult], file: Path, metric: str, *, as_json: bool) -> None:
    pairs, skipped = api.judging.marks.labelled_pairs(found, metric=metric)
    reasons = [f"{count(number, 'result')} skipped: it {reason}" for reason, number in skipped.items()]
    if not pairs:
        judge = Suggestion("Judge a rated result first", "test", "mark", "--help")
        raise NotFound(f"a judgement of a result of {metric} cannot be found", actions=[*reasons, judge])
    state = put_file(file, api.judging.marks.pairs_text(pairs).encode())
    if as_json:
        print_json({"file": str(file), "state": state, "pairs": len(pairs), "skipped": dict(skipped)})
        return
    for text in reasons:
        note(text)
    click.echo(f"{state} {file}: {count(len(pairs), 'labelled pair')}.")
    note(Suggestion("Measure a rater with them", "rater", "check", str(file)))


def _address(run: RunHandle) -> str:
    return run.remote.org_url if run.remote else ""


def _row(marked: MarkedResult) -> list[str]:
    mark, _, result = marked
    verdict = result.verdict.value if result else "missing"
    place = mark.place
    name = f"{place.name} ({result.label})" if result and result.label else place.name
    texts = (place.run_id, str(place.number), name, verdict, mark.words, mark.user_name, mark.note)
    return [one_line(text) for text in texts]


def _place_json(place: ResultPlace) -> JsonObject:
    return {
        "runId": place.run_id,
        "orgUrl": place.org_url or None,
        "case": place.number,
        "iteration": place.iteration,
        "expectation": place.name,
        "turn": place.turn or None,
    }


def _mark_json(marked: MarkedResult) -> JsonObject:
    mark, _, result = marked
    return {
        **_place_json(mark.place),
        "judgement": mark.judgement,
        "verdict": result.verdict.value if result else None,
        "note": mark.note,
        "user": mark.user_name,
        "time": to_timestamp(mark.at),
    }


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
    run = api.runs.reruns.find_run_of_case(Path.cwd(), job_id, number, named=target_org)
    proposal = api.judging.acceptance.propose(
        find_project(Path.cwd()),
        run.id,
        number,
        expectation=expectation,
        turn=turn,
        iteration=iteration,
        org_url=run.stored_at,
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
