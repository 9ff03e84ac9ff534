"""What changed in tests, from runs that are saved as workers save them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.api.runs.recent_changes import read_changes
from evalmeta.model.changes import Fault
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.model.tally import summarise
from evalmeta.package.project import find_project
from evalmeta.report.changes import change_lines
from evalmeta.store.database import open_database
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.runs import Lease, RunJournal, Runs

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

DAY: Final = 86_400.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "evalmeta.toml").touch()
    return find_project(tmp_path)


def save(project: Project, test: str, verdicts: str, *, started: float, revision: str = "") -> None:
    """Save a run whose cases passed (P), failed (F), ended in errors (E) or were undecided (U), in this order."""
    letters = {verdict.value[0]: verdict for verdict in Verdict}
    cases = [
        CaseResult(
            *(number, 1, f"Question {number}?", letters[letter], started, started),
            (TestResult("topic", letters[letter], "Orders", "Refunds"),),
            GeneratedData("Here."),
        )
        for number, letter in enumerate(verdicts, 1)
    ]
    options = RunOptions(origin=Origin("", "main", revision))
    with open_database(project.store) as database:
        runs, evaluation = Runs(database), Evaluation(test, "Desk", ())
        run = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), options, total=len(cases), now=started)
        assert runs.claim(run, "w", taken_from=Lease(None, None), until=9e9, now=started)
        RunJournal(database, run, "w").append(cases)
        kept = KeptTally.of(summarise(cases, options), RunStatus.COMPLETED, total=len(cases)).columns()
        runs.finish(run, "w", RunStatus.COMPLETED, error=None, now=started + 1, kept=kept)


def test_the_verdict_on_a_test_does_not_depend_on_which_others_ran(project: Project) -> None:
    """The more cases are compared, the more often a case must fail to be broken by more than chance."""
    for test, verdicts in {"Orders": "FPPPPP", "Stock": "P" * 400}.items():
        save(project, test, "P" * len(verdicts), started=DAY)
        for run in range(17):
            save(project, test, verdicts, started=3 * DAY + run)

    alone, together = read_changes(project, test="Orders"), read_changes(project)

    assert (alone.broken_cases, alone.suspect_cases) == (together.broken_cases, together.suspect_cases) == (1, 0)
    assert together.compared == ("Orders", "Stock")


def test_suspect_cases_keep_their_fault_and_their_commit(project: Project) -> None:
    save(project, "Orders", "PPP", started=DAY, revision="a" * 40)
    save(project, "Orders", "FPP", started=3 * DAY, revision="b" * 40)

    found = read_changes(project)

    [suspect] = found.suspects
    assert (suspect.fault, suspect.badge) == (Fault.AGENT, "suspect")
    assert (found.broken_cases, sum(found.faults.values())) == (0, 0)
    lines = "\n".join(line.text for line in change_lines(found, 4 * DAY))
    assert "agent, suspect: topic" in lines
    assert "first in bbbbbbb or a commit after aaaaaaa" in lines


def test_new_cases_that_pass_are_not_mentioned_and_others_are(project: Project) -> None:
    save(project, "Orders", "PPPPPF", started=DAY)
    save(project, "Orders", "PPPPPFPFEU", started=3 * DAY)

    found = read_changes(project)

    assert (found.new_cases, found.still, found.broken_cases, found.suspect_cases) == (3, 1, 0, 0)
    assert [case.comparison.number for case in found.new] == [8, 9, 10]


def test_a_case_that_was_not_judged_is_compared_with_the_run_that_judged_it(project: Project) -> None:
    save(project, "Orders", "PFP", started=DAY)
    save(project, "Orders", "EEP", started=2 * DAY)
    save(project, "Orders", "FFP", started=4 * DAY)

    found = read_changes(project)

    assert [case.comparison.number for cause in found.suspects for case in cause.cases] == [1]
    assert found.still == 1
