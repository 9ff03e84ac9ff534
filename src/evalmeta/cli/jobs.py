"""What commands about jobs share: how long to wait, which job, what to say when it goes on without them.

What the deploy commands share: following a deployment, and printing what became of it.

Running a coroutine from a command.
"""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import click

from evalmeta import limits
from evalmeta.cli.output import console, note, print_json, print_problems, print_table
from evalmeta.errors import EXIT_PARTIAL, EXIT_PASSED, OrgError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence

    from evalmeta.api.deployments import Deployment
    from evalmeta.model.json_value import JsonObject
    from evalmeta.protocol.metadata_api import DeployResult


_T = TypeVar("_T")
_Command: TypeAlias = "Callable[..., _T]"  # type: ignore[explicit-any]
_WITHOUT_END = "until it is done"


def _read_wait(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    if text is None or text == _WITHOUT_END:
        return None if text is None else math.inf
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= limits.MAX_WAIT_MINUTES:
        raise click.BadParameter(f"{text!r} is no number of minutes, above 0 and up to {limits.MAX_WAIT_MINUTES:,}")
    return minutes * 60


def wait_option(default: str) -> Callable[[_Command[_T]], _Command[_T]]:
    """Adds -w, --wait [MINUTES], as `wait` in seconds: None when it is not given, infinite without minutes."""
    return click.option(
        "-w",
        "--wait",
        is_flag=False,
        flag_value=_WITHOUT_END,
        callback=_read_wait,
        metavar="[MINUTES]",
        help=f"Minutes to wait; until it is done without a number.  [default: {default}]",
    )


def seconds_of(wait: float | None, *, otherwise: float | None) -> float | None:
    """Gives the seconds to wait, None for without end; `otherwise` where --wait is not given."""
    if wait is None:
        return otherwise
    return None if wait == math.inf else wait


def job_options(what: str) -> Callable[[_Command[_T]], _Command[_T]]:
    """Adds -i, --job-id and -r, --use-most-recent, and gives the command `job_id`: None is the most recent one.

    Args:
        what: the job, as help calls it.
    """
    options = (
        click.option("-i", "--job-id", metavar="ID", help=f"The {what}'s id, as it was printed."),
        click.option("-r", "--use-most-recent", is_flag=True, help=f"Take this project's most recent {what} there."),
    )

    def decorate(command: _Command[_T]) -> _Command[_T]:
        @wraps(command)
        def run(*, job_id: str | None, use_most_recent: bool, **others: object) -> _T:
            if use_most_recent == (job_id is not None):
                raise click.UsageError("Give one of --job-id and --use-most-recent.")
            return command(job_id=job_id, **others)

        decorated: _Command[_T] = run
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


@contextmanager
def going_on(job_id: str, *ways: str) -> Iterator[None]:
    """Says how to find a job again that goes on when whoever waits for it is interrupted, or has waited too long.

    Raises:
        WaitRanOut: with the ways on, which are sentences.
    """
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    try:
        yield
    except CancelledError:
        note(f"\nJob {job_id} goes on in the org.")
        _tell(ways)
        raise
    except WaitRanOut as over:
        raise WaitRanOut(str(over), job_id=job_id, actions=ways) from None
    except OrgError:
        note(f"What became of job {job_id} is not known here; it may go on in the org.")
        _tell(ways)
        raise


def _tell(ways: Sequence[str]) -> None:
    for way in ways:
        note(f"  {way}")


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
    from evalmeta.report.progress import JobProgress  # noqa: PLC0415 - not needed for --help

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
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - not needed for --help

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


def run_async(work: Coroutine[None, None, _T]) -> _T:
    """Runs a coroutine to its end; Ctrl-C, or SIGTERM, cancels it and lets it tidy up.

    Raises:
        KeyboardInterrupt: it was cancelled so.
    """
    import asyncio  # noqa: PLC0415 - 47 ms, not needed for --help

    from evalmeta.engine.event_loop import run_to_end  # noqa: PLC0415 - likewise

    try:
        return run_to_end(_interruptible(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except KeyboardInterrupt:
        work.close()
        raise


async def _interruptible(work: Coroutine[None, None, _T]) -> _T:
    import asyncio  # noqa: PLC0415 - as above
    import signal  # noqa: PLC0415 - as above

    task = asyncio.current_task()
    if task is not None:
        # Windows has no such signal.
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work
