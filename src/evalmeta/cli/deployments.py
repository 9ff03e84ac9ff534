"""What the deploy commands share: following a deployment, and printing what became of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.jobs import going_on
from evalmeta.cli.output import console, note, print_json, print_problems, print_table
from evalmeta.errors import EXIT_PARTIAL, EXIT_PASSED, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalmeta.api.outcomes import Deployment
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.wire.messages import DeployResult

__all__ = ["as_json_of", "follow", "print_going_on", "print_outcome", "ways_on"]

_PARTIAL: Final = "SucceededPartial"
_WOULD: Final = {"Created": "Would create", "Changed": "Would change", "Deleted": "Would delete"}


def ways_on(job_id: str) -> tuple[str, ...]:
    """Says what can be done about a deployment that goes on."""
    return (
        f"Wait for it: evalmeta deploy resume --job-id {job_id}",
        f"Look at it: evalmeta deploy report --job-id {job_id}",
        f"Cancel it: evalmeta deploy cancel --job-id {job_id}",
    )


async def follow(
    finish: Callable[[Callable[[DeployResult], None]], Awaitable[Deployment]], job_id: str, *, as_json: bool
) -> Deployment | None:
    """Shows a deployment going on until it is over.

    Gives None when the wait ran out and JSON is wanted, which is printed then.

    Raises:
        WaitRanOut: the deployment goes on.
        EvalmetaError: whatever else `finish` raises.
    """
    from evalmeta.report.jobprogress import JobProgress  # noqa: PLC0415 - not needed for --help

    label, ways = f"Deployment {job_id}", ways_on(job_id)
    with JobProgress(console(err=True), label, enabled=not as_json) as progress:

        def show(now: DeployResult) -> None:
            progress.update(now.status, now.number_components_deployed, now.number_components_total)

        try:
            with going_on(job_id, *ways):
                return await finish(show)
        except WaitRanOut as over:
            if not as_json:
                raise
            print_json({"id": job_id, "status": "InProgress", "files": []}, status=over.exit_code, warnings=[str(over)])
            return None


def print_going_on(job_id: str, what: str, *, as_json: bool) -> None:
    """Prints that a deployment was begun and goes on by itself."""
    if as_json:
        print_json({"id": job_id, "status": "Queued", "files": []})
        return
    click.echo(f"{what} {job_id} goes on in the org.")
    for way in ways_on(job_id):
        note(f"  {way}")


def print_outcome(outcome: Deployment, *, as_json: bool) -> int:
    """Prints a deployment that succeeded, wholly or in part, and gives the exit code."""
    code = EXIT_PARTIAL if outcome.status == _PARTIAL else EXIT_PASSED
    if as_json:
        warnings = [*map(str, outcome.warnings), *outcome.messages]
        print_json(as_json_of(outcome), status=code, warnings=warnings)
        return code
    if outcome.warnings:
        print_problems(outcome.warnings, err=True)
    for message in outcome.messages:
        note(f"Warning: {message}")
    click.echo(_headline(outcome))
    print_table(["State", "Name", "File"], _rows(outcome))
    if outcome.problems:
        click.echo("\nRefused")
        print_problems(outcome.problems)
    if outcome.result.check_only and outcome.status == "Succeeded":
        note(f"Deploy exactly this: evalmeta deploy quick --job-id {outcome.id}")
    return code


def _rows(outcome: Deployment) -> list[tuple[str, str, str]]:
    states = _WOULD if outcome.result.check_only else {}
    ordered = sorted(outcome.components, key=lambda each: each.full_name.casefold())
    return [(states.get(each.state, each.state), each.full_name, each.file) for each in ordered]


def as_json_of(outcome: Deployment) -> JsonObject:
    """Gives what `--json` says of a deployment."""
    from evalmeta.report.findings.json import problem_json  # noqa: PLC0415 - not needed for --help

    return {
        "id": outcome.id,
        "status": outcome.status,
        "checkOnly": outcome.result.check_only,
        "files": [asdict(each) for each in outcome.components],
        "failures": [problem_json(each) for each in outcome.problems],
    }


def _headline(outcome: Deployment) -> str:
    deleted = sum(each.state == "Deleted" for each in outcome.components)
    kept = len(outcome.components) - deleted
    done = f"{kept} {'component' if kept == 1 else 'components'}"
    if outcome.status == _PARTIAL:
        refused = len({each.component or each.location.path for each in outcome.problems})
        done = f"{kept} of {kept + refused} components"
    more = f", {'would delete' if outcome.result.check_only else 'deleted'} {deleted}" if deleted else ""
    if outcome.result.check_only:
        return f"Validated {done}{more}; the org was not changed (deploy id {outcome.id})."
    return f"Deployed {done}{more} (deploy id {outcome.id})."
