"""`evalmeta changes`: what broke, why, by whose fault and since when."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from api.runs.test_origins import git
from evalmeta import limits
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project

_AGENT = """
import json, pathlib

def answer(utterance):
    days = json.loads(pathlib.Path("days.json").read_text())
    return {"topic": "Orders", "outcome": f"Order {utterance[-2:]} arrives on {days[utterance[-2:]]}."}
"""
_SPEC = "subjectType: AGENT\nsubjectName: Order_Agent\ntestCases:\n" + "".join(
    f"- input: Where is order {number}\n  contains: Friday\n" for number in range(10, 16)
)
_MOVED = _SPEC.replace("testCases:\n", "testCases:\n- input: Tell me about order 11\n  contains: Friday\n")
_SETTINGS = '[subjects.Order_Agent]\nadapter = "python"\ntarget = "order_agent:answer"\n'
GOOD = {str(number): "Friday" for number in range(10, 16)}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Gives a project with one test of six cases, in a repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_SHA", "")
    (tmp_path / "evalmeta.toml").write_text(_SETTINGS)
    (tmp_path / "order_agent.py").write_text(_AGENT)
    (tmp_path / "orders.yaml").write_text(_SPEC)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    return find_project(tmp_path)


@pytest.fixture
def run(shop: Project, evalmeta: Callable[..., object]) -> Callable[..., None]:
    """Runs the test with the days that the agent says, after a commit with this subject."""

    def start(*options: str, commit: str = "", **days: str) -> None:
        (shop.root / "days.json").write_text(json.dumps({**GOOD, **{key[1:]: value for key, value in days.items()}}))
        if commit:
            git(shop.root, "commit", "--quiet", "--allow-empty", "--message", commit)
        assert evalmeta("run", "orders.yaml", *options).code in {0, 1, 100}

    return start


def move(project: Project, *, days: float) -> None:
    """Make all runs older."""
    with open_database(project.store) as database:
        database.execute("UPDATE run SET created_at = created_at - ?1, started_at = started_at - ?1", (days * 86_400,))


def changes(evalmeta: Callable[..., object], *options: str, code: int = 100) -> JsonObject:
    outcome = evalmeta("changes", "--json", *options)
    assert outcome.code == code, outcome.out
    return json.loads(outcome.out)["result"]


def numbers(found: JsonObject, key: str) -> list[int]:
    return sorted(case["testNumber"] for cause in found[key] for case in cause["cases"])


CONFIRMED = ("--baseline", "previous")


def test_cases_that_broke_are_listed_with_cause_fault_and_commit(
    run: Callable[..., None], evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    run(*CONFIRMED, commit="Deliver later", _10="Monday", _11="Sunday")

    shown = evalmeta("changes")
    assert shown.code == 100
    assert re.match(r"2 cases broke since (?:today|yesterday) \d\d:\d\d\n", shown.out)
    assert "agent 2, infrastructure 0, judge 0, test 0" in shown.out
    assert 'agent: contains "Friday": the answer does not contain "Friday"' in shown.out
    assert re.search(r'orders.yaml cases 1-2\n +first in [0-9a-f]{7} "Deliver later"\n', shown.out)


@pytest.mark.parametrize("place", [1, 2])
def test_a_change_that_is_not_committed_is_not_blamed_on_the_commit(
    place: int, run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    git(shop.root, "add", "order_agent.py")
    for number, days in ((1, {}), (2, {"_10": "Monday", "_11": "Sunday"})):
        (shop.root / "order_agent.py").write_text(_AGENT + "# changed\n" * (number == place))
        run(*CONFIRMED * (number - 1), commit=f"Commit {number}", **days)

    assert re.search(r'first in [0-9a-f]{7} "Commit 2" or a change that was not committed\n', evalmeta("changes").out)
    [cause] = changes(evalmeta)["broken"]
    assert cause["onset"]["oneCommit"] is False


def test_what_chance_may_explain_is_apart_and_breaks_nothing(
    run: Callable[..., None], evalmeta: Callable[..., object]
) -> None:
    run()
    run(_10="Monday")

    found = changes(evalmeta, code=0)
    assert (numbers(found, "broken"), numbers(found, "suspects"), found["brokenCases"]) == ([], [1], 0)
    assert (found["suspects"][0]["fault"], sum(found["faults"].values())) == ("agent", 0)
    assert re.match(r"No case broke for certain since \w+ \d\d:\d\d; 1 is suspect\n", evalmeta("changes").out)
    assert "the commit of 1 run is not known" in evalmeta("changes").out


@pytest.mark.slow
def test_a_case_that_fails_in_each_run_since_the_base_is_no_chance(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    move(shop, days=3)
    run(commit="Deliver later", _10="Monday")
    for _ in range(25):
        run(_10="Monday")

    found = changes(evalmeta, "--since", "2d")
    [cause] = found["broken"]
    assert (numbers(found, "broken"), cause["onset"]["runs"], cause["onset"]["oneCommit"]) == ([1], 26, True)
    assert changes(evalmeta, "--since", "previous", code=0)["stillFailing"] == 1


def test_nothing_to_compare_with_is_an_error_and_not_a_green(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    assert "no test has run yet" in evalmeta("changes").err
    run(_10="Monday")
    outcome = evalmeta("changes")
    assert (outcome.code, outcome.out) == (2, "")
    assert "there is nothing to compare with: it did not run before" in outcome.err

    run()
    (shop.root / "others.yaml").write_text(_SPEC)
    assert evalmeta("run", "others.yaml", "--case", "2").code == 0
    assert "Not compared, because only some of its cases ran: others.yaml" in evalmeta("changes").out


def test_the_test_is_named_as_for_other_commands(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    run()
    (shop.root / "other").mkdir()
    monkeypatch.chdir(shop.root / "other")
    for name in ("orders.yaml", "../orders.yaml", "./../orders.yaml", str(shop.root / "orders.yaml")):
        assert changes(evalmeta, name, code=0)["compared"] == ["orders.yaml"]

    outcome = evalmeta("changes", "order.yaml")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no run of the test 'order.yaml' is known here" in outcome.err
    assert "Did you mean orders.yaml?" in outcome.err
    assert "Tests that have run: orders.yaml." in evalmeta("changes", "x").err


@pytest.mark.slow
def test_runs_of_some_cases_are_merged_into_the_newest_state(
    run: Callable[..., None], evalmeta: Callable[..., object]
) -> None:
    run()
    run(*CONFIRMED, _10="Monday", _11="Monday")
    run("--case", "1")
    found = changes(evalmeta, "--since", "green")
    assert numbers(found, "broken") == [2]

    run("--case", "2")
    assert changes(evalmeta, "--since", "green", code=0)["broken"] == []


@pytest.mark.slow
def test_an_edited_expectation_is_the_fault_of_the_test(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    (shop.root / "orders.yaml").write_text(_SPEC.replace("Friday", "Thursday", 1))
    run(*CONFIRMED, _11="Monday")
    found = changes(evalmeta)
    assert found["faults"] == {"agent": 1, "infrastructure": 0, "judge": 0, "test": 1}


@pytest.mark.slow
def test_an_agent_that_crashes_is_infrastructure_and_fixed_when_it_answers(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    (shop.root / "order_agent.py").write_text(_AGENT.replace("days[utterance[-2:]]", "days[utterance[-3:]]"))
    run()
    found = changes(evalmeta)
    [cause] = found["broken"]
    assert (cause["fault"], cause["kind"], len(cause["cases"])) == ("infrastructure", "agent crash", 6)

    (shop.root / "order_agent.py").write_text(f"{_AGENT}\n# mended\n")
    run()
    assert len(changes(evalmeta, "--since", "previous", code=0)["fixed"]) == 6


def test_a_new_case_that_fails_did_not_break(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    (shop.root / "orders.yaml").write_text(_SPEC + "- input: Where is order 10, please, of 11\n  contains: Sunday\n")
    run()
    found = changes(evalmeta, code=0)
    assert (found["newFailures"], [case["testNumber"] for case in found["firstNewFailures"]]) == (1, [7])


@pytest.mark.parametrize("case", ["- input: Where is order 99\n  contains: Friday\n", "- input: Order 15\n"])
def test_a_new_case_without_a_judgement_does_not_vanish(
    case: str, run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    (shop.root / "orders.yaml").write_text(_SPEC + case)
    run()
    found = changes(evalmeta, code=0)
    assert (found["newFailures"], [case["testNumber"] for case in found["firstNewFailures"]]) == (1, [7])
    shown = evalmeta("changes").out
    assert re.match(r"No case broke since \w+ \d\d:\d\d; 1 new case does not pass\n", shown)
    assert "1 new case not passing: orders.yaml case 7" in shown
    run()
    assert changes(evalmeta, "--since", "previous", code=0)["stillFailing"] == 1


def test_after_an_outage_cases_are_compared_with_the_last_run_that_judged_them(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(_12="Monday", _13="Monday")
    (shop.root / "order_agent.py").write_text("def answer(utterance):\n    raise OSError('down')\n")
    run()
    found = changes(evalmeta, "--since", "previous")
    assert (found["brokenCases"], found["stillFailing"], found["stillFailingOtherwise"]) == (4, 0, 2)
    assert "2 other cases not passing, for another reason than before" in evalmeta("changes").out

    (shop.root / "order_agent.py").write_text(f"{_AGENT}\n# mended\n")
    run(*CONFIRMED, _10="Monday", _12="Monday")
    found = changes(evalmeta, "--since", "previous", code=0)
    assert (found["newFailures"], numbers(found, "suspects"), found["stillFailing"]) == (0, [1], 1)
    assert len(found["fixed"]) == 4


@pytest.mark.parametrize(("base", "spec"), [("green", _SPEC), ("previous", _SPEC), ("previous", _MOVED)])
def test_a_commit_that_was_tested_during_an_outage_is_not_blamed(
    base: str, spec: str, run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    (shop.root / "order_agent.py").write_text("def answer(utterance):\n    raise OSError('down')\n")
    run(commit="Second")
    (shop.root / "order_agent.py").write_text(_AGENT)
    (shop.root / "orders.yaml").write_text(spec)
    run(commit="Third", _10="Monday")

    onset = changes(evalmeta, "--since", base, code=0)["suspects"][0]["onset"]
    assert (onset["first"]["subject"], onset["before"]["subject"]) == ("Third", "First")
    assert (onset["runs"], onset["oneCommit"]) == (1, False)


def test_an_outage_after_a_failure_begins_with_its_own_first_run(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    run(commit="Second", _10="Monday")
    (shop.root / "order_agent.py").write_text("def answer(utterance):\n    raise OSError('down')\n")
    run(commit="Third")

    [cause] = changes(evalmeta, "--since", "green")["broken"]
    onsets = [case["onset"] for case in cause["cases"]]
    assert {(onset["first"]["subject"], onset["runs"]) for onset in onsets} == {("Third", 1)}


def test_an_outage_that_lasts_is_not_as_before(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    (shop.root / "order_agent.py").write_text("def answer(utterance):\n    raise OSError('down')\n")
    run()
    run()
    found = changes(evalmeta, "--since", "previous")
    assert (found["brokenCases"], found["stillFailing"], found["newFailures"]) == (6, 0, 0)
    assert found["broken"][0]["onset"]["runs"] == 2


def test_a_run_of_some_cases_that_have_other_numbers_now_replaces_no_other_case(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    run(*CONFIRMED, _10="Monday")
    (shop.root / "orders.yaml").write_text(_MOVED)
    run("--case", "1")
    found = changes(evalmeta, "--since", "green")
    assert numbers(found, "broken") == [1]
    assert re.fullmatch(r"run \w+ of orders.yaml", found["notCompared"][0]["test"])


@pytest.mark.slow
def test_a_run_of_some_cases_after_a_case_was_added_at_the_end_is_merged(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    run(*CONFIRMED, _10="Monday")
    (shop.root / "orders.yaml").write_text(_SPEC + "- input: Tell me about order 11\n  contains: Sunday\n")
    run("--case", "7", "--case", "1")
    found = changes(evalmeta, "--since", "green", code=0)
    assert (found["broken"], found["newFailures"], found["notCompared"]) == ([], 1, [])


def test_a_case_that_moved_after_an_outage_is_not_new(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    (shop.root / "order_agent.py").write_text("def answer(utterance):\n    raise OSError('down')\n")
    run()
    (shop.root / "order_agent.py").write_text(f"{_AGENT}\n# mended\n")
    (shop.root / "orders.yaml").write_text(_MOVED)
    run(_10="Monday")
    found = changes(evalmeta, "--since", "previous", code=0)
    assert (found["newFailures"], numbers(found, "suspects")) == (0, [2])


@pytest.mark.slow
@pytest.mark.parametrize("base", ["yesterday", "3d", "main", "branch", "previous", "green", "baseline.json", "first"])
def test_the_base_can_be_chosen(
    base: str, run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    assert evalmeta("test", "baseline", "-o", "baseline.json").code == 0
    move(shop, days=4)
    run(*CONFIRMED, commit="Later", _10="Monday")
    wanted = "4KB000000000001GAA" if base == "first" else base
    found = changes(evalmeta, "--since", wanted)
    assert (numbers(found, "broken"), found["compared"]) == ([1], ["orders.yaml"])


def test_another_branch_is_not_what_a_branch_is_compared_with(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    git(shop.root, "checkout", "--quiet", "-b", "feature")
    run(_10="Monday")
    assert numbers(changes(evalmeta, "--since", "main", code=0), "suspects") == [1]
    assert "it did not run before on this branch" in evalmeta("changes", "--since", "branch").err


def test_what_is_no_base_is_one_error(run: Callable[..., None], evalmeta: Callable[..., object]) -> None:
    run()
    outcome = evalmeta("changes", "--since", "nonsense")
    assert outcome.code == 2
    assert "'nonsense' is not a word, a time, a run, a branch or a baseline to compare with" in outcome.err
    assert "run '4KB999999999999GAA' cannot be found" in evalmeta("changes", "--since", "4KB999999999999GAA").err


@pytest.mark.slow
def test_yesterday_is_the_state_before_the_day_of_the_newest_run(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run()
    move(shop, days=2)
    run(*CONFIRMED, _10="Monday")
    run(_10="Monday")
    assert numbers(changes(evalmeta), "broken") == [1]
    assert time.time() - 3 * 86_400 < time.mktime(time.strptime(changes(evalmeta)["since"][:10], "%Y-%m-%d"))


@pytest.mark.parametrize(("kind", "before"), [("markdown", "- "), ("html", "<li>")])
def test_reports_with_a_baseline_say_why_cases_broke(
    kind: str, before: str, run: Callable[..., None], shop: Project
) -> None:
    run()
    run(*CONFIRMED, "--result-format", kind, "--output-dir", "out", _10="Monday", _11="Sunday")
    [report] = (shop.root / "out").iterdir()
    assert f"{before}2 cases (1-2), agent: " in report.read_text()


def test_a_test_whose_file_is_gone_is_named_and_not_counted(shop: Project, evalmeta: Callable[..., object]) -> None:
    (shop.root / "stock.yaml").write_text(_SPEC)
    (shop.root / "days.json").write_text(json.dumps({**GOOD, "10": "Monday"}))
    for _ in range(2):
        assert evalmeta("run", "orders.yaml", "stock.yaml").code in {0, 1, 100}
    assert changes(evalmeta, code=0)["compared"] == ["orders.yaml", "stock.yaml"]

    (shop.root / "stock.yaml").rename(shop.root / "shelf.yaml")

    found = changes(evalmeta, code=0)
    assert (found["compared"], found["stillFailing"]) == (["orders.yaml"], 1)
    assert found["notCompared"] == [{"test": "stock.yaml", "reason": "its file is gone"}]
    (shop.root / "orders.yaml").unlink()
    # Without any file, this is not the folder of the tests.
    assert len(changes(evalmeta, code=0)["compared"]) == 2


def test_the_newest_results_of_a_branch_are_chosen_by_its_name(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(commit="First")
    run(_10="Monday", _11="Monday", commit="Later")
    git(shop.root, "checkout", "--quiet", "-b", "feature")
    run()
    assert changes(evalmeta, "--since", "previous", code=0)["branches"] == [{"branch": "feature", "tests": 1}]

    found = changes(evalmeta, "--since", "previous", "--branch", "main", code=0)
    assert (numbers(found, "suspects"), found["branches"]) == ([1, 2], [{"branch": "main", "tests": 1}])
    # Also if the newest runs are all of another branch.
    monkeypatch.setattr(limits, "CHANGES_RUNS", 1)
    assert numbers(changes(evalmeta, "--since", "previous", "--branch", "main", code=0), "suspects") == [1, 2]


def test_a_branch_without_runs_is_an_error_and_a_test_without_runs_on_it_is_named(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    git(shop.root, "checkout", "--quiet", "-b", "feature")
    (shop.root / "more.yaml").write_text(_SPEC)
    for _ in range(2):
        assert evalmeta("run", "more.yaml").code == 0

    outcome = evalmeta("changes", "--branch", "nothing")
    assert "no run of the branch 'nothing' is known here" in outcome.err
    assert "Branches that are known: feature, main." in outcome.err
    found = changes(evalmeta, "--branch", "feature", code=0)
    assert found["notCompared"] == [{"test": "orders.yaml", "reason": "it has not run on the branch feature"}]
    assert "the newest results are of the" not in evalmeta("changes", "--branch", "feature").out


def test_several_branches_of_the_newest_results_are_named(
    run: Callable[..., None], shop: Project, evalmeta: Callable[..., object]
) -> None:
    run(commit="First")
    run()
    git(shop.root, "checkout", "--quiet", "-b", "feature")
    (shop.root / "more.yaml").write_text(_SPEC)
    for _ in range(2):
        assert evalmeta("run", "more.yaml").code == 0

    assert "the newest results are of the branches" in evalmeta("changes").out
    assert "main (1 test)" in evalmeta("changes").out
