from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.runs import comparisons
from evalmeta.api.runs.baselines import open_baseline, save_baseline
from evalmeta.api.runs.comparisons import compare_runs, compare_with, latest_runs, load_run
from evalmeta.errors import NotFound, UsageError
from evalmeta.formats.baseline import read_baseline
from evalmeta.model.comparison import Standing
from evalmeta.model.run import CaseResult, Run, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from org.parts import make_project, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.package.project import Project

PASS, FAILURE = Verdict.PASS, Verdict.FAILURE
URL = "https://dev.example"


def run(number: int, *verdicts: Verdict, name: str = "Orders", prefix: str = "4KB", **others: object) -> Run:
    cases = tuple(
        CaseResult(place, 1, f"Question {place}", verdict, number, number) for place, verdict in enumerate(verdicts, 1)
    )
    run_id = f"{prefix}{number:012}AAA"
    made = Run(run_id, name, "Desk", RunStatus.COMPLETED, float(number), len(cases), ended=number + 1.0, cases=cases)
    return replace(made, **others)


def keep(project: Project, *runs: Run, url: str = URL) -> None:
    with open_remote_runs(project.store) as kept:
        for each in runs:
            kept.keep(RemoteRun(url, "dev", each, (each.id,)))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def test_a_run_of_another_org_is_loaded_as_it_was_kept(project: Project) -> None:
    keep(project, run(1, PASS))
    assert load_run(project, run(1).id) == run(1, PASS)


def test_a_run_that_is_unknown_is_not_found(project: Project) -> None:
    with pytest.raises(NotFound, match="is known here"):
        load_run(project, run(1).id)


def test_a_run_that_goes_on_is_not_compared(project: Project) -> None:
    run_id = started(project, cases=1)
    with pytest.raises(UsageError, match=f"run {run_id} is not over: its status is NEW"):
        load_run(project, run_id)


def test_the_most_recent_complete_run_of_each_test_is_taken(project: Project) -> None:
    broke = run(4, PASS, status=RunStatus.ERROR)
    nameless = run(5, PASS, name="")
    studio = run(6, PASS, prefix="3A2")
    keep(project, run(1, PASS), run(2, FAILURE), run(3, PASS, name="Returns"), broke, nameless, studio)
    found = [(comparisons.name_of(latest_run), latest_run.started) for latest_run in latest_runs(project)]
    assert found == [("AiTestingDefinition:Orders", 6.0), ("Orders", 2.0), ("Returns", 3.0)]


def test_the_run_before_one_is_of_the_same_test(project: Project) -> None:
    keep(project, run(1, PASS), run(2, PASS, name="Returns"), run(3, PASS, prefix="3A2"), run(4, FAILURE))
    assert comparisons.previous_run(project, run(4)).started == 1.0
    with pytest.raises(NotFound, match="there is no earlier complete run of Orders to compare"):
        comparisons.previous_run(project, run(1))


def test_a_run_of_some_cases_is_taken_only_if_there_is_none_of_all(project: Project) -> None:
    some = RunOptions(cases=(1,))
    first, last = run(3, PASS, FAILURE), run(5, PASS, FAILURE)
    keep(project, run(1, PASS, options=some), run(2, PASS, options=some), first, run(4, FAILURE, options=some), last)
    assert comparisons.previous_run(project, last) == first
    assert comparisons.previous_run(project, first).started == 2.0
    keep(project, run(6, FAILURE, options=some))
    assert latest_runs(project) == [last]


def test_a_run_is_not_its_own_previous_run_if_its_start_was_rounded_up(project: Project) -> None:
    keep(project, run(1, PASS), run(2, PASS))
    assert comparisons.previous_run(project, run(2, PASS, started=2.0004)) == run(1, PASS)


def test_runs_of_one_test_are_compared_by_its_name() -> None:
    found = compare_runs(run(1, PASS, FAILURE), run(2, FAILURE, PASS))
    assert (found.name, found.before, found.after) == ("Orders", run(1).id, run(2).id)
    assert [case.standing for case in found.cases] == [Standing.SUSPECT, Standing.MAYBE_FIXED]
    assert compare_runs(run(1), run(2, name="Returns")).name == "Orders and Returns"


def test_a_strict_run_is_compared_by_its_own_counting() -> None:
    found = compare_runs(run(1, PASS), run(2, Verdict.UNDECIDED, options=RunOptions(undecided="fail")))
    assert found.cases[0].standing is Standing.SUSPECT


def test_a_baseline_is_a_file_or_a_run(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    save_baseline(path, [run(1, PASS)])
    keep(project, run(1, PASS))
    file, kept = open_baseline(project, path), open_baseline(project, path.parent.relative_to(tmp_path) / run(1).id)
    assert (file.label, kept.label) == (str(path), run(1).id)
    assert [case.standing for case in compare_with(file, [run(2, FAILURE)]).tests[0].cases] == [Standing.SUSPECT]
    assert compare_with(kept, [run(2, name="Returns")]).tests == ()


@pytest.mark.parametrize("name", ["nowhere.json", "nowhere/4KB000000000001AAA"])
def test_a_missing_baseline_is_not_found(project: Project, tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound, match=r"the baseline .* cannot be found"):
        open_baseline(project, tmp_path / name)


def test_a_case_that_came_to_errors_only_is_one_in_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert save_baseline(path, [run(1, Verdict.ERROR, PASS)]).errors == 1
    found = compare_with(comparisons.Baseline("b", read_baseline(path)), [run(2, PASS, PASS)]).tests[0]
    assert found.cases[0].standing is Standing.ERROR


def test_cases_that_a_run_did_not_ask_are_left_out() -> None:
    whole, part = run(1, PASS, PASS, PASS), run(2, PASS, options=RunOptions(cases=(1,)))
    assert compare_runs(whole, part).not_asked == (0, 2)
    assert compare_runs(part, whole).not_asked == (2, 0)
    assert compare_with(comparisons.baseline_of(part), [whole]).tests[0].not_asked == (2, 0)


def test_reports_of_other_stores_count_also_if_their_runs_have_the_id_of_a_stored_one(project: Project) -> None:
    keep(project, run(3, PASS))
    nights = [run(3, FAILURE, started=started) for started in (1.0, 2.0)]
    found = comparisons.earlier_runs(project, run(4, FAILURE), [*nights, nights[0], run(3, PASS, started=3.0004)])
    assert [earlier.started for earlier in found] == [3.0, 2.0, 1.0]


def test_a_run_is_not_compared_with_itself(project: Project) -> None:
    with pytest.raises(UsageError, match="would be compared with itself"):
        compare_with(comparisons.baseline_of(run(1, FAILURE)), [run(1, FAILURE)])
    with pytest.raises(UsageError, match="would be compared with itself"):
        compare_runs(run(1, FAILURE), run(1, FAILURE), project=project)


def test_cases_that_a_run_did_not_reach_are_not_removed() -> None:
    stopped = run(2, PASS, total=3, status=RunStatus.ERROR)
    found = compare_runs(run(1, PASS, PASS, PASS), stopped)
    assert (found.not_asked, found.changes and found.changes.removed) == ((0, 2), 0)


def test_new_answers_belong_to_the_run_whose_suspect_cases_they_confirm(project: Project) -> None:
    first, second = run(2, FAILURE, PASS), run(9, FAILURE)
    again = [run(number, FAILURE, options=RunOptions(confirms=first.id)) for number in range(3, 9)]
    unfinished = run(10, FAILURE, options=RunOptions(confirms=first.id), status=RunStatus.TERMINATED)
    keep(project, run(1, PASS, PASS), first, *again, second, unfinished)
    found = comparisons.new_answers(project, first)
    assert [(number, each.failed) for number, each in found.items()] == [(1, 6)]
    assert comparisons.new_answers(project, second) == {}
    assert compare_runs(run(1, PASS, PASS), first, project=project).cases[0].again == found[1]
    assert comparisons.previous_run(project, second) == first


def test_new_answers_of_another_store_whose_run_has_the_same_id_do_not_count(project: Project) -> None:
    again = RunOptions(confirms=run(4).id)
    keep(project, run(4, FAILURE), run(3, PASS, options=again), run(5, PASS, name="Returns", options=again))
    assert comparisons.new_answers(project, run(4, FAILURE)) == {}


def test_a_run_that_confirms_another_is_never_the_most_recent_one(project: Project) -> None:
    keep(project, run(1, PASS), run(2, FAILURE, options=RunOptions(confirms=run(1).id)))
    assert latest_runs(project) == [run(1, PASS)]


class CountedCases(list[CaseResult]):
    """Case results that count how often they are read."""

    reads = 0

    def __iter__(self) -> Iterator[CaseResult]:
        self.reads += 1
        return super().__iter__()


@pytest.mark.parametrize("number", [1, 2])
def test_a_comparison_reads_the_results_of_each_run_once(project: Project, number: int) -> None:
    runs = [run(1, PASS), run(2, FAILURE)]
    cases = CountedCases(runs[number - 1].cases)
    runs[number - 1] = replace(runs[number - 1], cases=cases)
    compare_runs(*runs, project=project)
    assert cases.reads == 1


def test_new_answers_are_compared_without_reading_the_results_again(project: Project) -> None:
    first, now = run(1, PASS), run(2, FAILURE)
    cases = CountedCases(now.cases)
    compared = comparisons.runs_in(comparisons.baseline_of(first), [replace(now, cases=cases)])
    keep(project, run(3, PASS, options=RunOptions(confirms=now.id)))
    standings = [comparisons.compare_again(compared, project=of).tests[0].cases[0].standing for of in (None, project)]
    assert (standings, cases.reads) == ([Standing.SUSPECT, Standing.BACK], 1)
