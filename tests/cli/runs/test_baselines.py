"""What runs exit with when they are compared with a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from api.runs.test_comparisons import keep, run
from evalmeta.api.runs.comparisons import Comparator, baseline_of, compare_runs
from evalmeta.api.runs.decision import Decision
from evalmeta.api.runs.finished import FinishedRun
from evalmeta.cli.runs.baselines import BaselineOption, confirming_option, print_comparisons, show_decision
from evalmeta.model.comparison import SuiteComparison
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.tally import summarise
from org.parts import make_project

if TYPE_CHECKING:
    from evalmeta.model.run import Run

PASS, FAILURE, UNDECIDED, ERROR = Verdict.PASS, Verdict.FAILURE, Verdict.UNDECIDED, Verdict.ERROR


def judged(before: Run, after: Run, *, suspects_fail: bool = True, code: int = 100, err: bool = False) -> int:
    finished = FinishedRun(after, summarise(after.cases, after.options))
    comparator = Comparator(baseline_of(before), suspects_fail)
    decision = Decision.of(comparator, [finished])
    show_decision(decision, code, err=err)
    return decision.code(code)


@pytest.mark.parametrize(
    ("before", "after", "strict", "default"),
    [
        ([PASS, FAILURE], [PASS, FAILURE], 0, 0),
        ([PASS, FAILURE], [FAILURE, FAILURE], 100, 0),
        ([PASS, FAILURE], [PASS, FAILURE, FAILURE], 100, 100),
        ([PASS], [ERROR], 100, 100),
        ([ERROR, PASS], [FAILURE, PASS], 100, 100),
        ([PASS, FAILURE], [PASS, FAILURE, PASS], 0, 0),
        ([PASS] * 8, [FAILURE] * 8, 100, 100),
        ([PASS], [UNDECIDED], 100, 100),
        ([PASS, PASS], [UNDECIDED, PASS], 100, 0),
    ],
)
def test_failures_in_the_baseline_are_ignored(
    before: list[Verdict], after: list[Verdict], strict: int, default: int
) -> None:
    assert judged(run(1, *before), run(2, *after)) == strict
    assert judged(run(1, *before), run(2, *after), suspects_fail=False) == default


def test_what_broke_fails_a_run_that_reached_its_pass_rate() -> None:
    assert judged(run(1, PASS), run(2, FAILURE), code=0) == 100


@pytest.mark.parametrize("code", [1, 69])
def test_errors_and_time_outs_are_not_ignored(code: int) -> None:
    assert judged(run(1, PASS), run(2, PASS), code=code) == code


@pytest.mark.parametrize(("verdict", "code"), [(PASS, 0), (FAILURE, 100)])
def test_a_test_that_is_not_in_the_baseline_is_judged_on_its_own(
    capsys: pytest.CaptureFixture[str], verdict: Verdict, code: int
) -> None:
    assert judged(run(1, PASS), run(2, verdict, name="Returns")) == code
    assert capsys.readouterr().err.splitlines() == [
        f"Returns is not in {run(1).id}: its run is judged on its own",
        f"1 test in {run(1).id} was not run: Orders",
    ]


@pytest.mark.parametrize(
    ("before", "after", "code", "strict", "said"),
    [
        ([PASS, PASS], [PASS, FAILURE], 0, True, "exit 100: 1 suspect case did not pass again, and passed in"),
        ([PASS], [PASS, FAILURE], 0, True, "exit 100: 1 failing case is not in"),
        ([PASS], [PASS, FAILURE, FAILURE], 0, True, "exit 100: 2 failing cases are not in"),
        ([PASS] * 8, [FAILURE] * 8, 0, False, "exit 100: significantly worse than"),
        ([PASS, FAILURE], [PASS, FAILURE], 100, True, "exit 0: 1 failure is already in"),
        ([FAILURE, FAILURE], [FAILURE, FAILURE], 100, True, "exit 0: 2 failures are already in"),
        ([PASS], [FAILURE], 100, False, "exit 0, but 1 suspect case passed in {} and does not pass now"),
        ([PASS] * 2, [FAILURE] * 2, 100, False, "exit 0, but 2 suspect cases passed in {} and do not pass now"),
        ([PASS], [PASS, FAILURE], 100, False, "exit 100: 1 failing case is not in"),
        ([PASS], [FAILURE], 0, False, "exit 0, but 1 suspect case passed in {} and does not pass now"),
    ],
)
def test_where_the_comparison_decides_the_last_line_says_why(
    capsys: pytest.CaptureFixture[str],
    before: list[Verdict],
    after: list[Verdict],
    code: int,
    strict: bool,  # noqa: FBT001 - a parameter of the table
    said: str,
) -> None:
    judged(run(1, *before), run(2, *after), code=code, suspects_fail=strict)
    label = run(1).id
    expected = said.format(label) if "{}" in said else f"{said} {label}"
    assert capsys.readouterr().out.splitlines()[-1] == expected


def test_a_comparison_that_decides_nothing_prints_no_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    judged(run(1, PASS), run(2, PASS), code=0)
    assert "exit" not in capsys.readouterr().out


@pytest.mark.parametrize("err", [True, False])
def test_a_comparison_leaves_stdout_to_a_report_for_programs(capsys: pytest.CaptureFixture[str], *, err: bool) -> None:
    judged(run(1, PASS), run(2, PASS), err=err)
    captured = capsys.readouterr()
    told, silent = (captured.err, captured.out) if err else (captured.out, captured.err)
    assert f"Orders: no change ({run(2).id} against {run(1).id})\n" in told
    assert silent == ""


def test_comparisons_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    worse = compare_runs(run(1, PASS), run(2, FAILURE))
    print_comparisons(SuiteComparison((worse, worse)), suspects_fail=True)
    assert capsys.readouterr().out.count("could explain it.\n\nOrders: ") == 1


def test_a_suite_counts_tests_without_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    same = compare_runs(run(1, PASS, FAILURE, UNDECIDED), run(2, PASS, FAILURE, UNDECIDED))
    worse = compare_runs(run(1, PASS), run(2, FAILURE))
    print_comparisons(SuiteComparison((same, worse, same)), suspects_fail=True)
    out = capsys.readouterr().out
    assert out.startswith("2 of 3 tests: no change\n\nOrders: WORSE, 1 suspect")
    assert out.count("Orders: ") == 1


def test_a_run_can_be_what_others_are_compared_with(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    keep(project, run(1, PASS))
    assert BaselineOption(Path(run(1).id), suspects_fail=True).open(project) == Comparator(
        baseline_of(run(1, PASS)), True, project
    )


@pytest.mark.parametrize(
    ("words", "baseline"),
    [
        ([], None),
        (["--baseline", "b.json"], BaselineOption(Path("b.json"), False, 20)),
        (["--baseline", "b.json", "--suspect", "fail"], BaselineOption(Path("b.json"), True, 20)),
        (["--baseline", "b.json", "--confirm", "auto"], BaselineOption(Path("b.json"), False, 20)),
        (["--baseline", "b.json", "--confirm", "5"], BaselineOption(Path("b.json"), False, 5, must_confirm=True)),
        (["--baseline", "b.json", "--confirm", "0"], BaselineOption(Path("b.json"), False)),
    ],
)
def test_the_options_become_one_value(words: list[str], baseline: BaselineOption | None) -> None:
    found = []

    @click.command()
    @confirming_option
    def command(*, baseline: BaselineOption | None) -> None:
        found.append(baseline)

    assert CliRunner().invoke(command, words).exit_code == 0
    assert found == [baseline]


@pytest.mark.parametrize("value", ["-1", "21", "often", "1.5"])
def test_no_more_than_20_answers_are_asked_for(value: str) -> None:
    @click.command()
    @confirming_option
    def command(**_: object) -> None:
        raise AssertionError

    assert CliRunner().invoke(command, ["--confirm", value]).exit_code == 2


def test_a_case_that_comes_to_errors_when_asked_again_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after, project = run(2, FAILURE), make_project(tmp_path / "project")
    finished = FinishedRun(after, summarise(after.cases, after.options))
    comparator = Comparator(baseline_of(run(1, PASS)), False, project, 20)
    assert Decision.of(comparator, [finished]).code(100) == 0
    keep(project, run(3, ERROR, options=RunOptions(confirms=after.id)))
    decision = Decision.of(comparator, [finished])
    show_decision(decision, 100, err=False)
    assert decision.code(100) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("exit 1: 1 suspect case ended in errors")


def test_what_a_baseline_of_some_cases_does_not_know_is_not_forgiven() -> None:
    part = run(1, PASS, options=RunOptions(cases=(1,)))
    assert judged(part, run(2, PASS, FAILURE)) == 100
    assert judged(part, run(2, PASS, PASS)) == 0


def test_new_cases_must_reach_the_pass_rate_of_the_run() -> None:
    tolerant = RunOptions(min_pass_rate=0.5)
    assert judged(run(1, PASS), run(2, PASS, PASS, FAILURE, options=tolerant)) == 0
    assert judged(run(1, PASS), run(2, PASS, FAILURE, FAILURE, PASS, FAILURE, options=tolerant)) == 100
