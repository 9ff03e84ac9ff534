from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from api.runs.test_comparisons import keep, run
from evalmeta.api.runs.baselines import RUNS, SavedBaseline, open_baseline, read_results, runs_to_take, save_baseline
from evalmeta.api.runs.comparisons import compare_with
from evalmeta.errors import NotFound, UsageError
from evalmeta.formats.baseline import read_baseline
from evalmeta.model.comparison import Standing
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.model.run_options import Origin, RunOptions, Scoring, Setup
from evalmeta.model.statistics import RunCounts
from evalmeta.model.tally import summarise
from evalmeta.report import json as json_report
from evalmeta.report.report import Report
from org.parts import make_project

if TYPE_CHECKING:
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

PASS, FAILURE = Verdict.PASS, Verdict.FAILURE


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "baseline.json"


def counts(done: SavedBaseline) -> tuple[object, ...]:
    return done[:5]


def columns(path: Path, name: str = "Orders") -> list[list[RunCounts]]:
    return [[*case.by_run] for case in read_baseline(path)[name].cases]


def test_saving_a_baseline_does_not_change_its_other_tests(path: Path) -> None:
    first = save_baseline(path, [run(1, PASS, FAILURE), run(2, PASS, name="Returns")])
    again = save_baseline(path, [run(3, PASS, PASS)])
    assert counts(first) == ("Created", 2, 3, 1, 0)
    assert [test.name for test in first.taken] == ["Orders", "Returns"]
    assert counts(again) == ("Changed", 2, 3, 0, 0)
    assert save_baseline(path, [run(3, PASS, PASS)]).state == "Unchanged"


@pytest.mark.parametrize("options", [RunOptions(cases=(1,)), RunOptions(shard=(1, 2))])
def test_a_run_of_some_cases_leaves_the_others_as_they_are(path: Path, options: RunOptions) -> None:
    save_baseline(path, [run(1, FAILURE, PASS)])
    assert save_baseline(path, [run(2, PASS, options=options)]).taken[0].kept == 1
    assert [case.passed for case in read_baseline(path)["Orders"].cases] == [1, 1]
    save_baseline(path, [run(3, PASS)])
    assert len(read_baseline(path)["Orders"].cases) == 1


def test_runs_of_all_shards_are_joined(path: Path) -> None:
    whole = run(1, PASS, FAILURE)
    shards = [replace(whole, cases=(case,), options=RunOptions(shard=(case.number, 2))) for case in whole.cases]
    assert counts(save_baseline(path, shards)) == ("Created", 1, 2, 1, 0)
    later = [replace(shard, started=shard.started + 10) for shard in shards]
    save_baseline(path, [*shards, *later])
    assert columns(path) == [[RunCounts(1), RunCounts(1)], [RunCounts(0, 1), RunCounts(0, 1)]]


def test_the_cases_of_a_run_after_shards_are_those_of_the_test_now(path: Path) -> None:
    whole = run(1, PASS, FAILURE)
    shards = [replace(whole, cases=(case,), options=RunOptions(shard=(case.number, 2))) for case in whole.cases]
    done = save_baseline(path, [*shards, run(9, PASS)])
    assert [taken.started for taken in done.taken[0].runs] == [1, 1, 9]
    assert columns(path) == [[RunCounts(1), RunCounts(1)]]


def test_the_last_ten_complete_runs_of_each_test_are_taken(project: Project, path: Path) -> None:
    keep(project, *(run(number, FAILURE if number == 5 else PASS, PASS) for number in range(1, 13)))
    keep(project, run(13, PASS, status=RunStatus.TERMINATED), run(14, PASS, options=RunOptions(confirms=run(12).id)))
    done = save_baseline(path, runs_to_take(project))
    assert [taken.id for taken in done.taken[0].runs] == [run(number).id for number in range(3, 13)]
    assert (len(done.taken[0].runs), columns(path)[0].count(RunCounts(0, 1))) == (RUNS, 1)
    assert [case.number for case in done.taken[0].flaky] == [1]


def test_a_run_that_is_red_is_left_out_until_it_is_accepted(path: Path) -> None:
    """Case 1 broke and has not passed since; case 2 was flaky, and case 3 has never passed."""
    runs = [run(1, PASS, PASS, FAILURE), run(2, PASS, FAILURE, FAILURE), run(3, FAILURE, PASS, FAILURE)]
    [taken] = save_baseline(path, runs).taken
    assert ([each.id for each in taken.runs], taken.left_out) == ([run(1).id, run(2).id], {"red": 1})
    assert [case.number for case in taken.failing] == [3]
    [accepted] = save_baseline(path, runs, accept=True).taken
    assert (len(accepted.runs), accepted.left_out) == (3, {})
    [named] = save_baseline(path, runs, named=frozenset({run(3).id})).taken
    assert len(named.runs) == 3


def test_a_run_that_passed_is_never_red(path: Path) -> None:
    lenient = RunOptions(min_pass_rate=0.5)
    [taken] = save_baseline(path, [run(1, PASS, PASS), run(2, FAILURE, PASS, options=lenient)]).taken
    assert len(taken.runs) == 2


def test_a_run_is_red_if_a_case_broke_since_the_baseline(path: Path) -> None:
    save_baseline(path, [run(1, PASS, PASS)])
    before = path.read_text()
    done = save_baseline(path, [run(2, FAILURE, PASS)])
    assert (done.state, done.taken[0].known, done.taken[0].left_out) == ("Unchanged", None, {"red": 1})
    assert path.read_text() == before


def with_setup(made: Run, checks: str = "", **setup: str) -> Run:
    options = replace(made.options, setup=Setup(**setup))
    return replace(made, options=options, cases=tuple(case._replace(checks=checks) for case in made.cases))


def test_runs_with_another_rater_prompt_or_options_are_left_out_but_not_those_of_another_agent(path: Path) -> None:
    strict = RunOptions(scoring=Scoring(threshold=4))
    runs = [
        run(0, PASS),
        with_setup(run(1, PASS), rater="rules"),
        with_setup(run(2, PASS), rater="llm m", prompt="v1"),
        with_setup(run(3, PASS, options=strict), rater="llm m", prompt="v2"),
        with_setup(run(4, PASS), rater="llm m", prompt="v2", agent="python a:b"),
        with_setup(run(5, PASS), rater="llm m", prompt="v2", agent="python a:c", evalmeta="0.2.0"),
    ]
    [taken] = save_baseline(path, runs).taken
    assert [each.id for each in taken.runs] == [run(4).id, run(5).id]
    assert taken.left_out == {
        "without a recorded rater": 1,
        "with another rater": 1,
        "with another prompt of the judge": 1,
        "with other options of judging": 1,
    }
    known = read_baseline(path)["Orders"]
    assert (known.subject, known.options) == ("Desk", "default")
    assert known.setup == Setup("python a:c", "", "llm m", "v2", "0.2.0")


def test_a_case_that_expected_something_else_counts_only_with_what_it_expects_now(path: Path) -> None:
    first, second = with_setup(run(1, FAILURE, PASS), "aaaa"), with_setup(run(2, PASS, PASS), "bbbb")
    first = replace(first, cases=(first.cases[0], first.cases[1]._replace(checks="bbbb")))
    [taken] = save_baseline(path, [first, second]).taken
    assert columns(path) == [[RunCounts(), RunCounts(1)], [RunCounts(1), RunCounts(1)]]
    assert taken.other_checks == 1


def test_a_moved_case_keeps_its_results_and_a_removed_one_is_gone(path: Path) -> None:
    first = run(1, FAILURE, PASS)
    moved = first.cases[1]._replace(number=1)
    second = replace(run(2), cases=(moved,), total=1)
    save_baseline(path, [first, second])
    [case] = read_baseline(path)["Orders"].cases
    assert (case.number, case.utterance, case.by_run) == (1, "Question 2", (RunCounts(1), RunCounts(1)))


def test_answers_that_were_judged_again_count_once(path: Path) -> None:
    [taken] = save_baseline(path, [run(1, FAILURE), run(2, PASS, answers_of=run(1).id)]).taken
    assert ([each.id for each in taken.runs], taken.left_out) == ([run(2).id], {"judged again by a later run": 1})


def test_result_files_are_read_as_runs(tmp_path: Path, path: Path) -> None:
    runs = [run(1, PASS, FAILURE), run(2, PASS, PASS), run(3, PASS, name="Returns")]
    for name, chosen in (("one.json", runs[:1]), ("two.json", runs[1:])):
        reports = [Report(made, summarise(made.cases, made.options)) for made in chosen]
        (tmp_path / name).write_text("".join(json_report.stream(reports)))
    read = [*read_results(tmp_path / "one.json"), *read_results(tmp_path / "two.json")]
    assert read == runs
    assert [len(test.runs) for test in save_baseline(path, read).taken] == [2, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "file.json:1:2: this is not valid JSON"),
        ("{}", "file.json: it is not a results object: it has no list of testCases"),
        ("[1]", "file.json: it is not a results object: it has no list of testCases"),
        ('{"testCases": [], "status": "COMPLETED"}', "file.json: it does not say which test its results are of"),
    ],
)
def test_a_file_without_results_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(UsageError) as raised:
        read_results(tmp_path / "file.json")
    assert said in str(raised.value)


def test_a_damaged_baseline_is_never_overwritten(path: Path) -> None:
    path.write_text('{"evalmeta": "baseline", "version": 2, "tests": {}')
    with pytest.raises(UsageError, match="is not valid JSON"):
        save_baseline(path, [run(1, PASS)])
    assert path.read_text() == '{"evalmeta": "baseline", "version": 2, "tests": {}'


def on(branch: str, number: int, *verdicts: Verdict) -> Run:
    return run(number, *verdicts, options=RunOptions(origin=Origin(branch=branch)))


def test_a_branch_is_a_baseline_that_moves(project: Project) -> None:
    earlier = [on("main", number, PASS, PASS) for number in range(1, 15)]
    now, other = on("fix", 20, FAILURE, PASS), on("fix", 19, FAILURE, FAILURE)
    keep(project, *earlier, other, now, on("main", 21, FAILURE, PASS))
    baseline = open_baseline(project, Path("main"))
    [found] = compare_with(baseline, [now], project=project).tests
    assert (found.before, found.runs, found.cases[0].standing) == ("the last runs on main", RUNS, Standing.SUSPECT)
    assert compare_with(baseline, [run(22, PASS, name="Returns")], project=project).tests == ()
    with pytest.raises(NotFound, match="the baseline 'develop' cannot be found"):
        open_baseline(project, Path("develop"))


def test_failing_runs_in_a_row_come_from_the_store_and_from_reports(project: Project, path: Path) -> None:
    def night(number: int, *, first: Verdict, other: Verdict) -> Run:
        cases = [case._replace(iteration=n) for n in (1, 2) for case in run(number, first, *[other] * 9).cases]
        return replace(run(number), cases=tuple(cases), total=20, options=RunOptions(iterations=2))

    nights = [night(n, first=PASS, other=FAILURE if n % 3 == 0 else PASS) for n in range(1, 11)]
    save_baseline(path, nights, accept=True)
    failing = [night(n, first=FAILURE, other=PASS) for n in range(11, 16)]
    baseline = open_baseline(project, path)
    [alone] = compare_with(baseline, [failing[-1]], project=project).tests
    assert (alone.is_alike, alone.cases[0].standing) == (True, Standing.SUSPECT)
    [with_reports] = compare_with(baseline, [failing[-1]], project=project, history=failing[:4]).tests
    assert with_reports.cases[0].standing is Standing.BROKEN
    moved = [
        replace(each, cases=tuple(case._replace(number=case.number % 10 + 1) for case in each.cases))
        for each in failing[:4]
    ]
    assert compare_with(baseline, [failing[-1]], project=project, history=moved).tests == (with_reports,)
    keep(project, *nights, *failing[:4])
    [with_store] = compare_with(baseline, [failing[-1]], project=project).tests
    assert with_store == with_reports
