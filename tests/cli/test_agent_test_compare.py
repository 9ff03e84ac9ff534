from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from api.runs.test_comparisons import keep, run
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import RunFilter, run_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]
    Copy = Callable[..., Path]

FIRST, SECOND, THIRD = (f"4KB{number:012}GAA" for number in range(1, 4))


@pytest.fixture
def runs(evalmeta: Program, copy_samples: Copy) -> Path:
    """A project with two runs: between them case 2 was mended and case 1 was broken."""
    project = copy_samples("failing")
    agent = project / "returns_agent.py"
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    mended = agent.read_text().replace('broken lamp.", "Complaints"', 'broken lamp.", "Returns"')
    agent.write_text(mended.replace("within 30 days", "within 14 days"))
    evalmeta("test", "run", "--wait")
    return project


@pytest.mark.usefixtures("runs")
def test_two_runs_are_compared_and_a_flip_is_suspect(evalmeta: Program) -> None:
    found, same = evalmeta("test", "compare", FIRST, SECOND), evalmeta("test", "compare", SECOND)
    assert found == same
    assert found.code == 0
    again = f"test run --api-name Returns_Desk_Checks --wait --baseline {FIRST}"
    lines, indent = found.out.splitlines(), " " * 25
    [version] = [line for line in lines if line.startswith("  Another version of the agent: ")]
    assert lines == [
        f"Returns_Desk_Checks: not significantly worse, but 1 suspect ({SECOND} against {FIRST})",
        "  pass rate 25 %, as before (4 cases)",
        "  suspect             1  1/1 -> 0/1       How long may I return what I bought?",
        f"{indent}Response: ok before, FAILED now; numbers differ: expected 30 day, got 14 day",
        "  maybe fixed         2  0/1 -> 1/1       I want to return a lamp, it came broken",
        f"{indent}Topic: FAILED before, ok now; the topic is Returns",
        f"{indent}topic: Complaints before, Returns now",
        "  0 broken, 1 suspect, 1 maybe fixed, 2 still failing, 0 still passing",
        version,
        "  A suspect case passed before and does not pass now, but chance could explain it.",
        f"  Ask suspect cases again: evalmeta {again}",
    ]
    assert evalmeta("test", "compare", FIRST, SECOND, "--suspect", "fail").code == 100


@pytest.mark.usefixtures("runs")
def test_a_case_that_broke_is_found_without_an_option(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "--wait", "--baseline", FIRST)
    assert done.code == 100
    assert "Asking 1 suspect case again.\n" in done.err
    assert "  broken              1  1/1 -> 0/1, again 0/20  How long" in done.out
    assert done.out.splitlines()[-1] == f"exit 100: 1 case broke compared with {FIRST}"
    later = evalmeta("test", "compare", FIRST, THIRD)
    assert (later.code, "again 0/20" in later.out) == (100, True)
    latest = evalmeta("test", "compare", "--baseline", FIRST)
    assert latest == later


@pytest.mark.usefixtures("runs")
def test_passing_cases_that_are_asked_again_are_not_called_suspect(evalmeta: Program) -> None:
    evalmeta("test", "baseline", "-o", "baseline.json", FIRST, SECOND)
    done = evalmeta("test", "run", "--wait", "--baseline", "baseline.json")
    asked = [line for line in done.err.splitlines() if line.startswith("Asking ")]
    assert asked[0] == "Asking 1 suspect case again."
    assert re.fullmatch(r"Asking 1 passing case again, \d+ times\.", asked[-1])


@pytest.mark.usefixtures("runs")
def test_confirm_limits_how_often_a_case_is_asked_again(evalmeta: Program) -> None:
    never = evalmeta("test", "run", "--wait", "--baseline", FIRST, "--confirm", "0")
    assert (never.code, "Asking" in never.err) == (0, False)
    few = evalmeta("test", "run", "--wait", "--baseline", FIRST, "--confirm", "2")
    assert (few.code, "1/1 -> 0/1, again 0/2" in few.out) == (0, True)


def test_runs_that_confirm_belong_to_the_command_of_the_first(evalmeta: Program, runs: Path) -> None:
    evalmeta("test", "run", "--wait", "--baseline", FIRST, "--confirm", "2")
    with open_database(find_project(runs).store) as database:
        suites = [each.suite for each in run_page(database, RunFilter(), limit=10).runs]
    assert [suites.count(suite) for suite in dict.fromkeys(suites)] == [3, 1, 1]


@pytest.mark.slow
def test_a_suspect_case_that_passes_again_is_back(evalmeta: Program, copy_samples: Copy) -> None:
    project = copy_samples("failing")
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    agent = project / "returns_agent.py"
    once = """
    from pathlib import Path
    asked = Path(__file__).with_name("asked")
    if "How long" in utterance and not asked.exists():
        asked.touch()
        return _reply("You can return it within 14 days.", "Returns")
    words ="""
    agent.write_text(agent.read_text().replace("\n    words =", once))
    done = evalmeta("test", "run", "--wait", "--baseline", FIRST, "--confirm", "3")
    assert done.code == 0
    assert "  back                1  1/1 -> 0/1, again 1/1  How long" in done.out
    assert done.out.splitlines()[-1] == f"exit 0: nothing is significantly worse than {FIRST}"


def test_a_suspect_case_whose_new_answers_are_errors_is_not_asked_again_and_again(
    evalmeta: Program, copy_samples: Copy
) -> None:
    project = copy_samples("failing")
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    agent = project / "returns_agent.py"
    broken = """
    from pathlib import Path
    asked = Path(__file__).with_name("asked")
    if "How long" in utterance:
        if asked.exists():
            raise ConnectionError("gone")
        asked.touch()
        return _reply("It cannot be returned.", "Complaints")
    words ="""
    agent.write_text(agent.read_text().replace("\n    words =", broken))
    done = evalmeta("test", "run", "--wait", "--baseline", FIRST, "--confirm", "2", "--retries", "0")
    assert done.code != 0
    assert done.err.count(" suspect case") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--wait", "--confirm", "3"], "--confirm needs --baseline"),
        (["--wait", "--baseline", FIRST, "--confirm", "3", "--extend", SECOND, "--iterations", "2"], "leave out"),
        (["--baseline", FIRST, "--confirm", "3"], "--baseline and --confirm need --wait"),
    ],
)
def test_a_confirmation_needs_results_to_compare(evalmeta: Program, runs: Path, words: list[str], why: str) -> None:
    done = evalmeta("test", "run", *words)
    assert (done.code, why in done.err) == (2, True)
    assert runs.exists()


@pytest.mark.usefixtures("runs")
def test_a_comparison_is_printed_as_json(evalmeta: Program) -> None:
    done = evalmeta("test", "compare", FIRST, SECOND, "--json", "--suspect", "fail")
    envelope = json.loads(done.out)
    [found] = envelope["result"]
    assert (done.code, envelope["status"], found["regression"]) == (100, 100, True)
    assert [each["standing"] for each in found["cases"]] == [
        *("suspect", "maybe fixed", "still failing", "still failing")
    ]
    changes = found["changes"]
    assert [part["what"] for part in changes.pop("others")] == ["version of the agent"]
    assert set(changes.values()) == {0}


def test_removed_cases_and_weaker_expectations_are_said_in_a_comparison(evalmeta: Program, copy_samples: Copy) -> None:
    file = copy_samples("failing") / "aiEvaluationDefinitions" / "Returns_Desk_Checks.aiEvaluationDefinition"
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    evalmeta("test", "baseline", "-o", "baseline.json")
    before, *cases = re.split(r"(?=<testCase>)", file.read_text())
    fewer = re.sub(r"<expectation>.*?</expectation>", "", cases[0], count=1, flags=re.DOTALL)
    file.write_text(before + fewer + "".join(cases[1:-2]) + cases[-1])
    evalmeta("deploy")
    done = evalmeta("test", "run", "--wait", "--baseline", "baseline.json")
    for told in (done, evalmeta("test", "compare", "--baseline", "baseline.json")):
        assert "  1 case was removed.\n  1 expectation is weaker.\n" in told.out


def test_runs_are_compared_with_a_baseline_file_of_earlier_runs(evalmeta: Program, runs: Path) -> None:
    written = evalmeta("test", "baseline", "-o", "baseline.json", FIRST)
    assert written.out.startswith("Created baseline.json: 1 test, 4 cases, 3 of them failing\n")
    worse = evalmeta("test", "compare", "--baseline", "baseline.json", "--suspect", "fail")
    assert (worse.code, f"{SECOND} against baseline.json" in worse.out) == (100, True)
    saved = evalmeta("test", "baseline", "-o", "baseline.json", "--accept", "--json")
    found = json.loads(saved.out)["result"]
    [taken] = found["runs"]
    assert (taken["name"], taken["runIds"], taken["subjectName"]) == (
        *("Returns_Desk_Checks", [FIRST, SECOND], "Returns_Desk"),
    )
    assert (found["state"], found["failing"]) == ("Changed", 2)
    assert evalmeta("test", "compare", "--baseline", "baseline.json", SECOND).code == 0
    assert (runs / "baseline.json").read_text().count("\n") == 20


def test_a_baseline_without_the_test_has_nothing_to_compare(evalmeta: Program, runs: Path) -> None:
    (runs / "baseline.json").write_text('{"evalmeta": "baseline", "version": 1, "tests": {}}')
    done = evalmeta("test", "compare", "--baseline", "baseline.json")
    assert done.code == 2
    assert "Returns_Desk_Checks is not in baseline.json; `evalmeta test baseline` adds it" in done.err
    assert "there is no run of a test that is in baseline.json" in done.err


@pytest.mark.parametrize(
    "words",
    [[], [FIRST] * 3, [FIRST, SECOND, "--baseline", "b.json"], ["no id"], [FIRST], ["--baseline", "nowhere.json"]],
)
def test_runs_that_cannot_be_compared_are_a_usage_error(
    evalmeta: Program, copy_samples: Copy, words: list[str]
) -> None:
    copy_samples("failing")
    assert evalmeta("test", "compare", *words).code == 2


def test_an_incomplete_run_is_reported(evalmeta: Program, copy_samples: Copy) -> None:
    project = find_project(copy_samples("failing"))
    keep(project, run(1, Verdict.PASS), run(2, Verdict.PASS, status=RunStatus.TERMINATED, total=3))
    done = evalmeta("test", "compare", run(1).id, run(2).id)
    assert done.code == 0
    assert f"Warning: {run(2).id} is not complete, the run is TERMINATED with 1 of 3 case results\n" in done.err
