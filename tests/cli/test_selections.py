"""`evalmeta test run`: which cases are asked, in which order, and what would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client.salesforce import Scene, case, done, salesforce
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets
from org.parts import asked, definition, make_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from evalmeta.package.project import Project

    Program = Callable[..., Outcome]

SETTINGS = """\
[run]
concurrency = 1
[subjects.Desk]
adapter = "python"
target = "desk:answer"
[tags]
smoke = ["Orders:1-2", "Visits"]
gone = ["Orders:99"]
broken = ["Orders:first"]
"""
MOODY = """\
import pathlib
ASKED = pathlib.Path(__file__).parent / "asked.txt"

def answer(utterance):
    with ASKED.open("a") as log:
        log.write(utterance + "\\n")
    if pathlib.Path("broken").exists():
        raise ValueError("no line")
    return {"outcome": "Done.", "topic": "Other" if utterance == "Orders 2" else "Orders"}
"""
FIRST, SECOND = "4KB000000000001GAA", "4KB000000000002GAA"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program) -> Project:
    """Two tests that are deployed: Orders, whose second case fails, and Visits."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = make_project(tmp_path / "project", agent=MOODY, settings=SETTINGS)
    folder = made.root / "aiEvaluationDefinitions"
    folder.mkdir()
    for name, cases in (("Orders", 5), ("Visits", 2)):
        (folder / f"{name}.aiEvaluationDefinition").write_bytes(definition(name, cases=cases))
    monkeypatch.chdir(made.root)
    evalmeta("deploy")
    return made


def planned(outcome: Outcome) -> list[str]:
    assert outcome.code == 0, outcome.err
    return [
        f"{each['definition']}:{one['number']}" for each in json.loads(outcome.out)["result"] for one in each["cases"]
    ]


@pytest.mark.parametrize(
    ("said", "cases"),
    [
        (["--case", "Orders:2-3"], ["Orders:2", "Orders:3"]),
        (["--case", "1"], ["Orders:1", "Visits:1"]),
        (["--case", "4", "--case", "Visits:2"], ["Orders:4", "Visits:2"]),
        (["--tag", "smoke"], ["Orders:1", "Orders:2", "Visits:1", "Visits:2"]),
        (["--tag", "smoke", "--case", "2"], ["Orders:2", "Visits:2"]),
        (["-n", "AiEvaluationDefinition:Orders", "--case", "Orders:5"], ["Orders:5"]),
    ],
)
@pytest.mark.usefixtures("project")
def test_cases_are_chosen_by_number_name_and_tag(evalmeta: Program, said: list[str], cases: list[str]) -> None:
    assert planned(evalmeta("test", "run", "--dry-run", "--json", *said)) == cases


@pytest.mark.usefixtures("project")
def test_shards_share_all_cases_without_overlap(evalmeta: Program) -> None:
    shards = [planned(evalmeta("test", "run", "--dry-run", "--json", "--shard", f"{part}/3")) for part in (1, 2, 3)]
    assert sorted(each for shard in shards for each in shard) == [f"Orders:{n}" for n in range(1, 6)] + [
        "Visits:1",
        "Visits:2",
    ]


def test_a_dry_run_prints_the_cases_and_runs_none(evalmeta: Program, project: Project) -> None:
    told = evalmeta("test", "run", "--dry-run", "--case", "Orders:2", "--tag", "smoke", "--iterations", "3")
    assert told.code == 0
    assert "Orders: subject Desk (adapter python)\n  1 case, 4 left out\n     2 Orders 2\n" in told.out
    assert "Visits: none of its 2 cases" in told.out
    assert "Would run 1 case in 3 iterations: 3 questions, scoring default, rater rules. No case was run." in told.out
    assert asked(project) == []


def test_a_dry_run_reports_what_would_keep_the_run_from_starting(evalmeta: Program, project: Project) -> None:
    (project.root / "evalmeta.toml").write_text("")
    assert "subject Desk (no adapter is bound to it)" in evalmeta("test", "run", "--dry-run").out
    unknown = evalmeta("test", "run", "--dry-run", "--rater", "nobody")
    assert (unknown.code, "the rater 'nobody' is not configured" in unknown.err) == (2, True)


def test_the_same_seed_shuffles_in_the_same_order(evalmeta: Program, project: Project) -> None:
    for seed in ("4", "4", "5"):
        evalmeta("test", "run", "-n", "Orders", "--wait", "--seed", seed)
    first, again, other = (asked(project)[place : place + 5] for place in (0, 5, 10))
    assert first == again
    assert sorted(first) == sorted(other) == [f"Orders {number}" for number in range(1, 6)]


@pytest.mark.usefixtures("project")
def test_a_seed_that_is_too_large_is_refused(evalmeta: Program) -> None:
    refused = evalmeta("test", "run", "--seed", "9" * 30)
    assert (refused.code, "is too large; the maximum is 9223372036854775807" in refused.err) == (2, True)


def test_only_failed_cases_run_again(evalmeta: Program, project: Project) -> None:
    assert evalmeta("test", "run", "--wait").code == 100
    again = evalmeta("test", "run", "--wait", "--failed-from", FIRST, "--failed-from", SECOND)
    assert (again.code, asked(project)[7:]) == (100, ["Orders 2"])
    assert f"Nothing failed in run {SECOND}." in again.err


@pytest.mark.parametrize(("said", "out"), [([], ""), (["--json"], '{"status":0,"result":[],"warnings":[]}')])
@pytest.mark.usefixtures("project")
def test_without_failures_no_case_is_left_to_run(evalmeta: Program, said: list[str], out: str) -> None:
    evalmeta("test", "run", "--wait", "-n", "Visits")
    again = evalmeta("test", "run", "--wait", "--failed-from", FIRST, *said)
    assert (again.code, "".join(again.out.split())) == (0, out)
    assert f"Nothing failed in run {FIRST}.\nNothing was run.\n" in again.err


@pytest.mark.parametrize("wait", [["--wait"], [], ["--dry-run"]])
@pytest.mark.usefixtures("project")
def test_an_empty_shard_passes_and_says_so(evalmeta: Program, wait: list[str]) -> None:
    ran = evalmeta("test", "run", "--case", "Orders:1", "--shard", "1/1000", *wait)
    assert ran.code == 0
    assert "Nothing was run: no case is in shard 1/1000." in ran.err


@pytest.mark.parametrize("wait", [["--wait"], [], ["--dry-run"]])
@pytest.mark.parametrize("left", [["--shard", "1/2"], ["--last-failed"]])
def test_a_case_that_does_not_exist_is_refused_in_a_shard_too(
    evalmeta: Program, project: Project, left: list[str], wait: list[str]
) -> None:
    ran = evalmeta("test", "run", "--case", "Orders:99", *left, *wait)
    assert (ran.code, "no test case matches the selection" in ran.err) == (2, True)
    assert asked(project) == []


@pytest.mark.usefixtures("project")
def test_an_empty_report_is_valid(evalmeta: Program) -> None:
    ran = evalmeta("test", "run", "--wait", "--case", "1", "--shard", "1/1000", "--result-format", "junit")
    assert 'tests="0"' in ran.out
    assert "Skipped: Visits has none of the selected cases." in ran.err


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["--case", "99"], "no test case matches the selection"),
        (["--case", "99", "--dry-run"], "no test case matches the selection"),
        (["-n", "Orders", "--case", "Visits:1"], "no test case matches the selection"),
        (["--tag", "gone"], "no test case matches the selection"),
        (["--tag", "smok"], "Did you mean smoke?"),
        (["--tag", "broken"], "'Orders:first' is not a valid list of cases"),
        (["--case", "first"], "'first' is not a valid list of cases"),
        (["--case", "Nothing:1"], "the org has no agent test 'Nothing'"),
        (["--shard", "3/2"], "'3/2' is not a valid shard, such as 2/5"),
        (["--failed-from", FIRST], f"no run '{FIRST}' is known here"),
        (["--ignore-changes"], "--ignore-changes needs --extend"),
        (["--mixed"], "--mixed needs --extend"),
        (["--extend", FIRST], "--extend needs --iterations"),
        (["--extend", FIRST, "--iterations", "2", "--case", "1"], "Leave out the options for selecting"),
        (["--extend", FIRST, "--iterations", "2", "--concurrency", "3"], "Leave out the options for selecting"),
        (["--extend", FIRST, "--iterations", "2", "--dry-run"], "Leave out the options for selecting"),
    ],
)
def test_a_usage_error_is_reported_and_no_case_runs(
    evalmeta: Program, project: Project, said: list[str], told: str
) -> None:
    ran = evalmeta("test", "run", "--wait", *said)
    assert (ran.code, told in ran.err) == (2, True)
    assert asked(project) == []


@pytest.mark.usefixtures("project")
def test_started_runs_are_printed_as_json(evalmeta: Program) -> None:
    ran = evalmeta("test", "run", "-n", "Visits", "--json")
    assert json.loads(ran.out)["result"] == [{"id": FIRST, "definition": "Visits", "status": "NEW"}]
    assert evalmeta("test", "resume", "-i", FIRST).code == 0


def test_a_run_with_too_many_errors_stops_with_suggestions(evalmeta: Program, project: Project) -> None:
    (project.root / "broken").touch()
    ran = evalmeta("test", "run", "-n", "Orders", "--wait", "--max-errors", "2")
    assert (ran.code, len(asked(project))) == (1, 2)
    assert "the run is ERROR with 2 of 5 case results: stopped at error 2 (max_errors)" in ran.out

    resumed = evalmeta("test", "resume", "-i", FIRST)
    assert (resumed.code, len(asked(project))) == (1, 4)
    assert f"Run {FIRST} has stopped again; 1 of its 5 case results are missing." in resumed.err
    assert "evalmeta test run --api-name Orders" in resumed.err
    assert f"evalmeta test run --failed-from {FIRST}" in resumed.err

    again = evalmeta("test", "run", "--dry-run", "--json", "--failed-from", FIRST)
    assert planned(again) == ["Orders:1", "Orders:2", "Orders:3", "Orders:4"]
    assert f"Warning: run {FIRST} is ERROR; 1 of its 5 case results are missing" in again.err

    canceled = evalmeta("test", "cancel", "--unfinished")
    assert (canceled.code, canceled.err) == (0, "No run of this project is unfinished.\n")
    unfinished = evalmeta("test", "resume", "--unfinished")
    assert (unfinished.code, len(asked(project))) == (1, 5)


@pytest.mark.parametrize("said", [[], ["--dry-run"]])
@pytest.mark.usefixtures("project")
def test_a_salesforce_org_has_its_agents_itself(evalmeta: Program, said: list[str]) -> None:
    with salesforce([Scene("COMPLETED", done(case(1)))]) as org:
        user_logins().save(Login("me@dev.example", org.url, alias="dev"), Secrets("token"))
        ran = evalmeta("test", "run", "-o", "dev", "-n", "Orders", "--bound", *said)
    assert (ran.code, org.starts) == (2, [])
    assert "a Salesforce org has its agents itself: leave out --bound" in ran.err


@pytest.mark.parametrize(
    "said",
    [
        ["--case", "1"],
        ["--tag", "smoke"],
        ["--shard", "1/2"],
        ["--seed", "1"],
        ["--case", "1", "--dry-run"],
        ["--baseline", "b.json", "--confirm", "3"],
    ],
)
@pytest.mark.usefixtures("project")
def test_a_salesforce_org_runs_whole_definitions(evalmeta: Program, said: list[str]) -> None:
    Path("b.json").write_text('{"evalmeta": "baseline", "version": 1, "tests": {}}')
    with salesforce([Scene("COMPLETED", done(case(1)))]) as org:
        user_logins().save(Login("me@dev.example", org.url, alias="dev"), Secrets("token"))
        ran = evalmeta("test", "run", "-o", "dev", "-n", "Orders", "--wait", *said)
    assert (ran.code, org.starts) == (2, [])
    assert "a Salesforce org runs whole definitions in its own order" in ran.err
    assert "Leave out --case, --tag, --failed-from, --last-failed, --shard, --seed and --confirm." in ran.err
