from __future__ import annotations

import asyncio
import math

import click
import pytest
from click.testing import CliRunner

from evalmeta.cli.jobs import job_continues, job_options, wait_option, wait_seconds
from evalmeta.errors import OrgUnreachable, WaitRanOut


@click.command()
@wait_option("33")
def waiting(wait: float | None) -> None:
    click.echo(repr(wait))


@click.command()
@job_options("run")
def chosen(job_id: str | None) -> None:
    click.echo(repr(job_id))


def call(command: click.Command, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, words)
    return done.exit_code, done.output


@pytest.mark.parametrize(("words", "said"), [([], "None"), (["--wait"], "inf"), (["-w", "5"], "300.0")])
def test_wait_is_none_infinite_or_a_number_of_minutes(words: list[str], said: str) -> None:
    assert call(waiting, *words) == (0, f"{said}\n")


@pytest.mark.parametrize("minutes", ["0", "x", "nan", "inf", "1e9", ""])
def test_an_invalid_number_of_minutes_is_refused(minutes: str) -> None:
    code, said = call(waiting, "--wait", minutes)
    assert (code, "is not a valid number of minutes" in said) == (2, True)


@pytest.mark.parametrize(("wait", "seconds"), [(None, 7), (math.inf, None), (5.0, 5.0)])
def test_an_infinite_wait_has_no_limit_in_seconds(wait: float | None, seconds: float | None) -> None:
    assert wait_seconds(wait, default=7) == seconds


def test_a_job_is_given_by_id_or_as_the_most_recent_one() -> None:
    assert (call(chosen, "-i", "4KB"), call(chosen, "-r")) == ((0, "'4KB'\n"), (0, "None\n"))
    assert (call(chosen)[0], call(chosen, "-i", "4KB", "-r")[0]) == (2, 2)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), OrgUnreachable("gone")])
def test_an_interrupted_wait_prints_suggestions(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(error)), job_continues("0Af1", ["Resume: evalmeta"]):
        raise error
    assert "  Resume: evalmeta\n" in capsys.readouterr().err


def test_a_timed_out_wait_has_the_suggestions_as_actions() -> None:
    with pytest.raises(WaitRanOut) as raised, job_continues("0Af1", ["Resume: evalmeta"]):
        raise WaitRanOut("over", job_id="0Af1")
    assert (raised.value.actions, raised.value.job_id) == (("Resume: evalmeta",), "0Af1")
