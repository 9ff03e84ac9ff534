"""Judging by people: whether the verdicts of results are right, and these judgements as labelled pairs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.api.comparisons import find_run
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.redaction import redacted
from evalmeta.model.run import Verdict
from evalmeta.report.details import exchange_of
from evalmeta.store.marks import Mark, keep_mark, list_marks, remove_mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.package.project import Project
    from evalmeta.store.database import Database
    from evalmeta.store.marks import ResultPlace


class MarkedResult(NamedTuple):
    """A judged result; None if its run, or the result, does not exist any more."""

    mark: Mark
    case: CaseResult | None
    result: TestResult | None


def mark_result(
    project: Project, database: Database, place: ResultPlace, user: User, *, is_right: bool | None, note: str = ""
) -> None:
    """Save whether a person finds the verdict of a result right; None removes the person's judgement.

    Args:
        project: the project.
        database: its store.
        place: the result.
        user: the person.
        is_right: whether the verdict is right.
        note: why; secrets are removed.

    Raises:
        NotFound: there is no such result.
        UsageError: the note is too long.
    """
    if len(note) > limits.MAX_NOTE_CHARS:
        raise UsageError(f"the note has {len(note):,} characters, more than {limits.MAX_NOTE_CHARS:,}")
    if is_right is None:
        remove_mark(database, place, user)
        return
    if _find(project, place)[1] is None:
        raise NotFound(f"case {place.number} of run {place.run_id} has no result {place.name!r}")
    keep_mark(database, place, user, is_right=is_right, note=redacted(note.strip()), now=time.time())


def marked_results(
    project: Project, database: Database, *, run_id: str | None = None, org_url: str = ""
) -> list[MarkedResult]:
    """Return the judgements of people with their results, of a run or of all runs."""
    marks = list_marks(database, run_id=run_id, org_url=org_url)
    return [MarkedResult(mark, *_find(project, mark.place)) for mark in marks]


def labelled_pairs(marked: Sequence[MarkedResult]) -> tuple[list[JsonObject], int]:
    """Return judgements as labelled pairs for `evalmeta rater check`, and how many cannot be used.

    The actual text of a result that passed and is marked wrong is not right, and so on. Only results that compare
    texts are pairs; for undecided results, right and wrong say nothing about the text.
    """
    pairs = [pair for each in marked for pair in _pairs(each)]
    return pairs, len(marked) - len(pairs)


def pairs_text(pairs: Sequence[JsonObject]) -> str:
    """Return labelled pairs as JSON Lines."""
    return "".join(f"{orjson.dumps(pair).decode()}\n" for pair in pairs)


def _pairs(marked: MarkedResult) -> Iterator[JsonObject]:
    case, result = marked.case, marked.result
    if case is None or result is None or not result.rater or not result.expected:
        return
    if result.verdict not in {Verdict.PASS, Verdict.FAILURE}:
        return
    passes = (result.verdict is Verdict.PASS) == marked.mark.is_right
    reason: JsonObject = {"reason": marked.mark.note} if marked.mark.note else {}
    utterance = exchange_of(case, result).utterance
    yield {"utterance": utterance, "expected": result.expected, "actual": result.actual, "right": passes, **reason}


def _find(project: Project, place: ResultPlace) -> tuple[CaseResult | None, TestResult | None]:
    try:
        run = find_run(project, place.run_id, org_url=place.org_url or None)
    except NotFound:
        return None, None
    case = next((e for e in run.cases if (e.number, e.iteration) == (place.number, place.iteration)), None)
    results = case.results if case else ()
    return case, next((each for each in results if (each.name, each.turn) == (place.name, place.turn)), None)
