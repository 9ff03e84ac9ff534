from __future__ import annotations

import asyncio
import math

import click
import pytest
from click.testing import CliRunner

from evalmeta.cli.jobs import going_on, job_options, seconds_of, wait_option
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
def test_a_wait_is_none_without_end_or_so_many_minutes(words: list[str], said: str) -> None:
    assert call(waiting, *words) == (0, f"{said}\n")


@pytest.mark.parametrize("minutes", ["0", "x", "nan", "inf", "1e9", ""])
def test_what_is_no_number_of_minutes_is_refused(minutes: str) -> None:
    code, said = call(waiting, "--wait", minutes)
    assert (code, "is no number of minutes" in said) == (2, True)


@pytest.mark.parametrize(("wait", "seconds"), [(None, 7), (math.inf, None), (5.0, 5.0)])
def test_seconds_are_what_the_client_takes(wait: float | None, seconds: float | None) -> None:
    assert seconds_of(wait, otherwise=7) == seconds


def test_a_job_is_named_or_the_most_recent_one() -> None:
    assert (call(chosen, "-i", "4KB"), call(chosen, "-r")) == ((0, "'4KB'\n"), (0, "None\n"))
    assert (call(chosen)[0], call(chosen, "-i", "4KB", "-r")[0]) == (2, 2)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), OrgUnreachable("gone")])
def test_whoever_stops_waiting_is_told_how_to_go_on(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(error)), going_on("0Af1", "Go on: evalmeta"):
        raise error
    assert "  Go on: evalmeta\n" in capsys.readouterr().err


def test_a_wait_that_ran_out_has_the_ways_on_as_actions() -> None:
    with pytest.raises(WaitRanOut) as raised, going_on("0Af1", "Go on: evalmeta"):
        raise WaitRanOut("over", job_id="0Af1")
    assert (raised.value.actions, raised.value.job_id) == (("Go on: evalmeta",), "0Af1")
