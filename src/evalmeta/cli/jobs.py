"""What commands about jobs share: how long to wait, which job, what to say when it goes on without them."""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import click

from evalmeta import limits
from evalmeta.cli.output import note
from evalmeta.errors import OrgError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["going_on", "job_options", "seconds_of", "wait_option"]

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
