"""Runs that were executed together are resumed, extended, rescored, compared and confirmed like any other."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from stores import store_in
from suites import make_suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from suites import Suite

    Program = Callable[..., Outcome]


@pytest.fixture
def suite(evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A deployed suite of five definitions that ran together; one case of Test_01 failed."""
    made = make_suite(tmp_path / "project", tests=5, wanted=0)
    monkeypatch.chdir(made.root)
    made.write("wrong", "01 02")
    assert evalmeta("deploy").code == 0
    assert evalmeta("test", "run", "--wait").code == 100
    made.forget()
    return made


def run_ids(suite: Suite) -> dict[str, str]:
    """Return the run of each definition that was started last."""
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return dict(database.query("SELECT definition, id FROM run ORDER BY id"))


def test_a_run_that_is_over_is_not_asked_again(evalmeta: Program, suite: Suite) -> None:
    ids = run_ids(suite)
    words = [word for run_id in ids.values() for word in ("--job-id", run_id)]
    assert evalmeta("test", "resume", *words).code == 100
    assert suite.asked() == []


def test_a_run_is_extended_by_itself(evalmeta: Program, suite: Suite) -> None:
    done = evalmeta("test", "run", "--extend", run_ids(suite)["Test_02"], "--iterations", "3", "--wait", "--json")
    [result] = json.loads(done.out)["result"]
    assert (done.code, result["evalmeta"]["definition"], len(result["testCases"])) == (0, "Test_02", 9)
    assert Counter(suite.asked()) == {f"Question 02 0{case}": 2 for case in (1, 2, 3)}


def test_a_run_is_rescored_without_asking(evalmeta: Program, suite: Suite) -> None:
    first = run_ids(suite)["Test_01"]
    done = evalmeta("test", "rescore", first, "--min-pass-rate", "0.5")
    assert (done.code, suite.asked()) == (0, [])
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        again = Runs(database).get(run_ids(suite)["Test_01"])
    assert again
    assert again.answers_of == first


@pytest.mark.slow
def test_the_runs_of_two_suites_are_compared_and_what_changed_is_asked_again(evalmeta: Program, suite: Suite) -> None:
    assert evalmeta("test", "baseline", "-o", "baseline.json").code == 0
    assert len(json.loads((suite.root / "baseline.json").read_text())["tests"]) == 5
    same = evalmeta("test", "run", "--wait", "--baseline", "baseline.json")
    assert same.code == 0
    assert "1 failure is already in baseline.json" in same.out

    suite.forget()
    suite.write("wrong", "01 02", "03 03")
    before = run_ids(suite)["Test_03"]
    worse = evalmeta("test", "run", "--wait", "--baseline", "baseline.json")
    assert worse.code == 100
    asked = Counter(suite.asked())
    assert asked.pop("Question 03 03") >= 1 + 3
    assert asked == dict.fromkeys((question for question in suite.questions if question != "Question 03 03"), 1)
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        [(new,)] = database.query(
            "SELECT id FROM run WHERE definition = 'Test_03' AND id > ? ORDER BY id LIMIT 1", (before,)
        )
    compared = evalmeta("test", "compare", before, new)
    assert "Question 03 03" in compared.out


def test_each_run_has_its_own_times_and_results_in_the_order_of_its_definition(evalmeta: Program, suite: Suite) -> None:
    for name, run_id in run_ids(suite).items():
        result = json.loads(evalmeta("test", "results", "--job-id", run_id, "--json").out)["result"]
        [result] = result if isinstance(result, list) else [result]
        assert [each["inputs"]["utterance"] for each in result["testCases"]] == [
            f"Question {name[-2:]} 0{case}" for case in (1, 2, 3)
        ]
        assert result["status"] == "COMPLETED"


@pytest.mark.slow
def test_the_runs_of_all_shards_are_one_baseline_of_the_whole_suite(evalmeta: Program, suite: Suite) -> None:
    whole = run_ids(suite)
    for shard in ("1/3", "2/3", "3/3"):
        assert evalmeta("test", "run", "--wait", "--shard", shard).code in {0, 100}
    assert sorted(suite.asked()) == suite.questions
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        shards = [
            run_id for (run_id,) in database.query("SELECT id FROM run ORDER BY id") if run_id not in whole.values()
        ]
    assert evalmeta("test", "baseline", "-o", "shards.json", *shards).code == 0
    assert evalmeta("test", "baseline", "-o", "whole.json", *whole.values()).code == 0
    counts = [
        {
            name: {number: (case["passed"], case["failed"]) for number, case in test["cases"].items()}
            for name, test in json.loads((suite.root / file).read_text())["tests"].items()
        }
        for file in ("shards.json", "whole.json")
    ]
    assert counts[0] == counts[1]
    done = evalmeta("test", "run", "--wait", "--baseline", "shards.json")
    assert (done.code, "1 failure is already in shards.json" in done.out) == (0, True)
