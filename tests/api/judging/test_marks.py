from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from api.runs.test_comparisons import URL, keep
from evalmeta.api.judging.marks import (
    agreement,
    agreement_of_people,
    find_place,
    labelled_pairs,
    mark_result,
    marked_results,
)
from evalmeta.errors import NotFound, UsageError
from evalmeta.limits import MAX_NOTE_CHARS
from evalmeta.model.login import ADMIN, User
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.store.database import open_database
from evalmeta.store.judgements import keep_mark, list_marks
from org.parts import make_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.package.project import Project
    from evalmeta.store.database import Database
    from evalmeta.store.judgements import Judgement

PASS, FAILURE, UNDECIDED = Verdict.PASS, Verdict.FAILURE, Verdict.UNDECIDED
OTHER = User("005000000000002AAA", "Ada", "ada@evalmeta.local", is_admin=False)
IDS = count(1)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


@pytest.fixture
def database(project: Project) -> Iterator[Database]:
    with open_database(project.store) as opened:
        yield opened


def rated(verdict: Verdict, name: str = "bot_response_rating", **others: object) -> TestResult:
    return TestResult(name, verdict, "On Monday.", "On Tuesday.", rater="rules")._replace(**others)


def kept(project: Project, *results: TestResult, iterations: int = 1) -> str:
    """Keep a run of another org whose case 3 has these results, and return its id."""
    places = range(1, iterations + 1)
    cases = tuple(CaseResult(3, place, "When?", FAILURE, 1, 1, results) for place in places)
    run = Run(f"4KB{next(IDS):012}AAA", "Orders", "Desk", RunStatus.COMPLETED, 1, len(cases), ended=2, cases=cases)
    keep(project, run)
    return run.id


def marked(
    project: Project, database: Database, run_id: str, *, judgement: Judgement | None, name: str = "", by: User = ADMIN
) -> None:
    place = find_place(project, run_id, 3, expectation=name or None, org_url=URL)
    mark_result(project, database, place, by, judgement, note="A note.")


def pairs(project: Project, database: Database) -> tuple[Sequence[object], dict[str, int]]:
    found, skipped = labelled_pairs(marked_results(project, database))
    return [(each["right"], each["actual"], each["reason"]) for each in found], dict(skipped)


@pytest.mark.parametrize(
    ("verdict", "judgement", "label"),
    [
        *((PASS, "right", True), (PASS, "wrong", False), (FAILURE, "right", False)),
        *((PASS, "fail", False), (FAILURE, "pass", True), (UNDECIDED, "pass", True), (UNDECIDED, "fail", False)),
    ],
)
def test_a_pair_says_whether_the_answer_is_right(
    project: Project, database: Database, verdict: Verdict, judgement: Judgement, *, label: bool
) -> None:
    marked(project, database, kept(project, rated(verdict)), judgement=judgement)
    assert pairs(project, database) == ([(label, "On Tuesday.", "A note.")], {})


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (rated(PASS, rater=None), "was not rated by a rater"),
        (rated(PASS, "coherence"), "is not of bot_response_rating"),
    ],
)
def test_results_that_are_no_pairs_are_counted_with_the_reason(
    project: Project, database: Database, result: TestResult, reason: str
) -> None:
    marked(project, database, kept(project, result), judgement="right")
    assert pairs(project, database) == ([], {reason: 1})


@pytest.mark.parametrize("judgement", ["right", "wrong"])
def test_an_undecided_verdict_is_neither_right_nor_wrong(
    project: Project, database: Database, judgement: Judgement
) -> None:
    run_id = kept(project, rated(UNDECIDED, rater=None))
    with pytest.raises(UsageError, match="was not decided") as refused:
        marked(project, database, run_id, judgement=judgement)
    assert refused.value.actions == ("Say what it should be: pass or fail.",)


def test_an_older_judgement_of_an_undecided_result_is_counted_and_no_pair(project: Project, database: Database) -> None:
    place = find_place(project, kept(project, rated(UNDECIDED)), 3, org_url=URL)
    keep_mark(database, place, ADMIN, "wrong", note="", now=1)
    assert pairs(project, database) == ([], {"was not decided, and nobody said whether it should pass or fail": 1})
    keep_mark(database, place, OTHER, "pass", note="A note.", now=2)
    assert pairs(project, database) == ([(True, "On Tuesday.", "A note.")], {})


def test_people_who_agree_make_one_pair_and_others_none(project: Project, database: Database) -> None:
    run_id = kept(project, rated(FAILURE))
    marked(project, database, run_id, judgement="right")
    marked(project, database, run_id, judgement="right", by=OTHER)
    assert pairs(project, database) == ([(False, "On Tuesday.", "A note.")], {})
    marked(project, database, run_id, judgement="wrong", by=OTHER)
    assert pairs(project, database) == ([], {"is judged differently by several people": 1})
    assert agreement(marked_results(project, database)) == (1, 2)


def test_the_latest_judgement_of_a_person_counts_and_can_be_removed(project: Project, database: Database) -> None:
    run_id = kept(project, rated(FAILURE))
    marked(project, database, run_id, judgement="right")
    marked(project, database, run_id, judgement="wrong")
    assert [result.mark.judgement for result in marked_results(project, database)] == ["wrong"]
    marked(project, database, run_id, judgement=None)
    assert marked_results(project, database) == []


def test_a_result_that_is_not_the_only_one_must_be_named(project: Project, database: Database) -> None:
    run_id = kept(project, rated(FAILURE), rated(PASS, "coherence"), iterations=2)
    with pytest.raises(UsageError, match="has 4 such results: bot_response_rating, coherence") as refused:
        marked(project, database, run_id, judgement="right")
    assert refused.value.actions == ("Choose one with --expectation NAME and --iteration N.",)
    with pytest.raises(NotFound, match="has no such result"):
        marked(project, database, run_id, judgement="right", name="Topic")
    place = find_place(project, run_id, 3, expectation="Response", iteration=2, org_url=URL)
    assert (place.name, place.iteration) == ("bot_response_rating", 2)


def test_each_of_several_results_of_one_name_has_its_own_judgement(project: Project, database: Database) -> None:
    run_id = kept(project, rated(FAILURE), rated(PASS), rated(UNDECIDED, label="Tone"))
    with pytest.raises(UsageError, match=r"results: bot_response_rating#1, bot_response_rating#2, Tone$"):
        marked(project, database, run_id, judgement="right", name="Response")
    marked(project, database, run_id, judgement="right", name="bot_response_rating#2")
    marked(project, database, run_id, judgement="fail", name="tone")
    found = marked_results(project, database)
    assert [(each.mark.judgement, each.result and each.result.verdict) for each in found] == [
        ("right", PASS),
        ("fail", UNDECIDED),
    ]


def test_how_far_two_people_agree_is_counted_over_what_both_judged(project: Project, database: Database) -> None:
    run_id = kept(project, rated(UNDECIDED), rated(UNDECIDED, "coherence"), rated(PASS, "facts"))
    for name, judgements in {"bot_response_rating": ("pass", "pass"), "coherence": ("pass", "fail")}.items():
        for user, judgement in zip((ADMIN, OTHER), judgements, strict=True):
            marked(project, database, run_id, judgement=judgement, name=name, by=user)
    marked(project, database, run_id, judgement="right", name="facts")

    assert agreement_of_people(list_marks(database)) == [((ADMIN.name, OTHER.name), 1, 2)]
    assert agreement_of_people([]) == []


def test_a_long_note_is_refused(project: Project, database: Database) -> None:
    place = find_place(project, kept(project, rated(PASS)), 3, org_url=URL)
    with pytest.raises(UsageError, match="the note has 2,001 characters"):
        mark_result(project, database, place, ADMIN, "right", note="x" * (MAX_NOTE_CHARS + 1))
