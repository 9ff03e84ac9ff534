from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from api.runs.test_comparisons import keep, run
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

PASS, FAILURE, ERROR = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evalmeta.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    verdicts = ([PASS, PASS], [ERROR, ERROR], [PASS, FAILURE], [PASS, FAILURE], [PASS, PASS])
    runs = [run(number, *verdict) for number, verdict in enumerate(verdicts, 1)]
    others = run(6, FAILURE, name="Returns"), run(7, PASS, ended=None, status=RunStatus.TERMINATED)
    keep(find_project(tmp_path), *runs, *others)


def test_runs_are_listed_with_their_trend_the_latest_last(evalmeta: Program) -> None:
    head, *lines = evalmeta("test", "history").out.splitlines()
    assert head.split()[:2] == ["Run", "Test"]
    assert lines[0].startswith(f"{run(1).id}  Orders   1970-01-01 00:00:01  COMPLETED   ok             dev  2 ")
    assert [line[head.index("Pass rate") :].strip() for line in lines] == [
        "100 %",
        "",
        "50 %       down 50",
        "50 %       same",
        "100 %      up 50",
        "0 %",
        "100 %",
    ]


def test_runs_of_a_part_and_runs_judged_again_are_marked_and_have_no_trend(evalmeta: Program, tmp_path: Path) -> None:
    part = run(8, PASS, options=RunOptions(cases=(1,)))
    again = run(9, FAILURE, answers_of=part.id, options=part.options)
    keep(find_project(tmp_path), part, again, run(10, PASS, FAILURE))
    head, *lines = evalmeta("test", "history", "-n", "Orders", "--limit", "4").out.splitlines()
    kinds = [line[head.index("Kind") : head.index("Org")].strip() for line in lines]
    trends = [line[head.index("Trend") :].strip() for line in lines]
    assert (kinds, trends) == (["", "part", "part, rescored", ""], ["", "", "", ""])
    assert evalmeta("test", "history").out.splitlines()[-1].endswith("down 50")
    found = json.loads(evalmeta("test", "history", "--json").out)["result"][-2]
    assert (found["partial"], found["answersOf"]) == (True, part.id)


def test_the_latest_runs_of_a_test_are_listed_alone(evalmeta: Program) -> None:
    _, *lines = evalmeta("test", "history", "-n", "orders", "--limit", "2").out.splitlines()
    assert [line.split()[0] for line in lines] == [run(5).id, run(7).id]


def test_history_is_printed_as_json(evalmeta: Program) -> None:
    first, last = json.loads(evalmeta("test", "history", "--limit", "2", "--json").out)["result"]
    assert first == {
        "runId": run(6).id,
        "definition": "Returns",
        "orgUrl": "https://dev.example",
        "orgName": "dev",
        "status": "COMPLETED",
        "startTime": "1970-01-01T00:00:06.000Z",
        "endTime": "1970-01-01T00:00:07.000Z",
        "total": 1,
        "verdict": "FAILURE",
        "passed": 0,
        "partlyJudged": 0,
        "failed": 1,
        "errors": 0,
        "undecided": 0,
        "quarantined": 0,
        "passRate": 0.0,
        "partial": False,
        "stopped": False,
        "answersOf": None,
    }
    assert (last["status"], last["endTime"]) == ("TERMINATED", None)


def test_a_history_without_runs_says_so(
    evalmeta: Program, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evalmeta("test", "history", "-n", "Nobody").out == "There are no runs of Nobody here.\n"
    empty = tmp_path_factory.mktemp("empty")
    (empty / "evalmeta.toml").write_text("")
    monkeypatch.chdir(empty)
    assert evalmeta("test", "history").out == "There are no runs here.\n"
