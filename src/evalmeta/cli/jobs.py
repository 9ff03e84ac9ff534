"""What commands about jobs share: how long to wait, which job, and how to find it again."""

from __future__ import annotations

import math
from asyncio import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from evalmeta import limits
from evalmeta.cli.options import option_group
from evalmeta.cli.output import note
from evalmeta.errors import OrgError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.cli.options import Decorator

_UNTIL_DONE = "until it is done"


def _read_wait(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    if text is None or text == _UNTIL_DONE:
        return None if text is None else math.inf
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= limits.MAX_WAIT_MINUTES:
        raise click.BadParameter(
            f"{text!r} is not a valid number of minutes: it must be above 0 and at most {limits.MAX_WAIT_MINUTES:,}"
        )
    return minutes * 60


def wait_option(default: str) -> Decorator:
    """Add -w, --wait [MINUTES], as `wait` in seconds: None if it is not given, infinite without a number."""
    return click.option(
        "-w",
        "--wait",
        is_flag=False,
        flag_value=_UNTIL_DONE,
        callback=_read_wait,
        metavar="[MINUTES]",
        help=f"Minutes to wait; without a number, wait until it is done.  [default: {default}]",
    )


def wait_seconds(wait: float | None, *, default: float | None) -> float | None:
    """Return the seconds to wait, None for no limit; `default` if --wait is not given."""
    if wait is None:
        return default
    return None if wait == math.inf else wait


def job_options(what: str) -> Decorator:
    """Add -i, --job-id and -r, --use-most-recent, as the parameter `job_id`: None is the most recent job.

    Args:
        what: the job, as help calls it.
    """
    options: Sequence[Decorator] = (
        click.option("-i", "--job-id", metavar="ID", help=f"The {what}'s id, as it was printed."),
        click.option("-r", "--use-most-recent", is_flag=True, help=f"Use this project's most recent {what} there."),
    )
    return option_group("job_id", _job_id, options)


def _job_id(*, job_id: str | None, use_most_recent: bool) -> str | None:
    if use_most_recent == (job_id is not None):
        raise click.UsageError("Give either --job-id or --use-most-recent.")
    return job_id


@contextmanager
def job_continues(job_id: str, suggestions: Sequence[str]) -> Iterator[None]:
    """Print how to find a job that continues when waiting for it is interrupted, fails or times out.

    Raises:
        WaitRanOut: with the suggestions as its actions.
    """
    try:
        yield
    except CancelledError:
        note(f"\nJob {job_id} continues in the org.")
        print_suggestions(suggestions)
        raise
    except WaitRanOut as timed_out:
        raise WaitRanOut(str(timed_out), job_id=job_id, actions=suggestions) from None
    except OrgError:
        note(f"The state of job {job_id} is unknown; it may continue in the org.")
        print_suggestions(suggestions)
        raise


def print_suggestions(suggestions: Sequence[str]) -> None:
    """Print suggested commands, one a line."""
    for suggestion in suggestions:
        note(suggestion, indent="  ")
