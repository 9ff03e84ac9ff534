"""Judging by people: whether verdicts are right or what they should be, and these judgements as labelled pairs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.aggregation import named_results, results_called, shown_names
from evalmeta.model.expectations import OUTCOME, canonical_name
from evalmeta.model.redaction import redacted
from evalmeta.model.run import DECIDED, CaseResult, TestResult, Verdict
from evalmeta.report.details import exchange_of
from evalmeta.store.database import Database, open_database
from evalmeta.store.judgements import Judgement, Mark, ResultPlace, keep_mark, list_marks, remove_mark
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.package.project import Project


_SHOULD_BE: Final[Mapping[str, Verdict]] = {"pass": Verdict.PASS, "fail": Verdict.FAILURE}


class MarkedResult(NamedTuple):
    """A judged result; None if its run, or the result, does not exist any more."""

    mark: Mark
    case: CaseResult | None
    result: TestResult | None


def mark_result(
    project: Project, database: Database, place: ResultPlace, user: User, judgement: Judgement | None, *, note: str = ""
) -> None:
    """Save whether a verdict is right or wrong, or what it should be (pass, fail); None removes a judgement."""
    if len(note) > limits.MAX_NOTE_CHARS:
        raise UsageError(f"the note has {len(note):,} characters, more than {limits.MAX_NOTE_CHARS:,}")
    if judgement is None:
        remove_mark(database, place, user)
        return
    result = _find(project, database, place)[1]
    if result is None:
        raise NotFound(f"case {place.number} of run {place.run_id} has no result {place.name!r}")
    kept = _judgement_of(result, judgement)
    keep_mark(database, place, user, kept, note=redacted(note.strip()), now=database.now())


def _judgement_of(result: TestResult, judgement: Judgement) -> Judgement:
    """Return a judgement as it is kept: of a decided result, whether its verdict is right; else what it should be."""
    wanted = _SHOULD_BE.get(judgement)
    if result.verdict in DECIDED:
        return judgement if wanted is None else "right" if wanted is result.verdict else "wrong"
    if wanted is None:
        raise UsageError(
            f"{result.name} was not decided ({result.verdict}), so its verdict is neither right nor wrong",
            actions=["Say what it should be: pass or fail."],
        )
    return judgement


def find_place(
    project: Project,
    run_id: str,
    number: int,
    *,
    expectation: str | None = None,
    turn: int | None = None,
    iteration: int | None = None,
    org_url: str = "",
) -> ResultPlace:
    """Return the place of one result of a case.

    `expectation` is a name or label, or `NAME#2` for the second of that name in its turn; None if the case has one
    result.
    """
    run = find_run(project, run_id, org_url=org_url)
    cases = [case for case in run.cases if case.number == number and iteration in {None, case.iteration}]
    judged = [(case, result) for case in cases for result in named_results(case) if not result.result.is_measured]
    of_turn = [(case, named_result) for case, named_result in judged if turn in {None, named_result.turn}]
    called = None if expectation is None else results_called((named_result for _, named_result in of_turn), expectation)
    found = [(case, named_result) for case, named_result in of_turn if called is None or named_result in called]
    if not found:
        known = [f"Its results: {shown_names(named_result for _, named_result in judged)}."] if judged else []
        raise NotFound(f"case {number} of run {run.id} has no such result", actions=known)
    if len(found) > 1:
        options = {
            "--expectation NAME": len({named_result.name for _, named_result in found}) > 1,
            "--turn N": len({named_result.turn for _, named_result in found}) > 1,
            "--iteration N": len({case.iteration for case, _ in found}) > 1,
        }
        way_out = " and ".join(option for option, is_needed in options.items() if is_needed)
        names = shown_names(named_result for _, named_result in found)
        message = f"case {number} of run {run.id} has {len(found):,} such results: {names}"
        raise UsageError(message, actions=[f"Choose one with {way_out}."])
    [(case, named)] = found
    return ResultPlace(org_url, run.id, case.iteration, number, named.name, named.turn)


def marked_results(
    project: Project, database: Database, *, run_id: str | None = None, org_url: str = ""
) -> list[MarkedResult]:
    """Return the judgements of people with their results, of a run or of all runs."""
    marks = list_marks(database, run_id=run_id, org_url=org_url)
    return [MarkedResult(mark, *_find(project, database, mark.place)) for mark in marks]


def count_wrong(project: Project, run_id: str, *, org_url: str = "") -> int:
    """Return the number of results of a run that a person has marked as wrong."""
    with open_database(project.store) as database:
        marks = list_marks(database, run_id=run_id, org_url=org_url)
    return len({mark.place for mark in marks if mark.judgement == "wrong"})


def agreement(marked: Sequence[MarkedResult]) -> tuple[int, int]:
    """Return how many judgements agree with the verdict, and how many there are of results that were decided."""
    decided = [
        marked_result.mark.judgement
        for marked_result in marked
        if marked_result.result and marked_result.result.verdict in DECIDED
    ]
    return decided.count("right"), len(decided)


class PeopleAgreement(NamedTuple):
    """How many of the results that two people judged they judged alike."""

    names: tuple[str, str]
    agreed: int
    results: int


def agreement_of_people(marks: Iterable[Mark]) -> list[PeopleAgreement]:
    """Return how far each two people agree who judged the same results, those with the most results first."""
    of_results: dict[ResultPlace, list[Mark]] = {}
    for mark in marks:
        of_results.setdefault(mark.place, []).append(mark)
    alike: dict[tuple[str, str], list[bool]] = {}
    names: dict[str, str] = {}
    for same in of_results.values():
        names |= {mark.user_id: mark.user_name for mark in same}
        for first, second in combinations(sorted(same, key=lambda mark: mark.user_id), 2):
            alike.setdefault((first.user_id, second.user_id), []).append(first.judgement == second.judgement)
    pairs = [
        PeopleAgreement((names[first], names[second]), sum(same), len(same)) for (first, second), same in alike.items()
    ]
    return sorted(pairs, key=lambda pair: -pair.results)


def labelled_pairs(marked: Sequence[MarkedResult], *, metric: str = OUTCOME) -> tuple[list[JsonObject], Counter[str]]:
    """Return judgements as labelled pairs for `evalmeta rater check`, and why others cannot be used, with counts.

    The actual text of a result that passed and is marked wrong is not right, and so on. Several judgements of the same
    result are one pair. Only results of the metric are pairs that a rater decided, or that people say should pass or
    fail.
    """
    pairs: list[JsonObject] = []
    skipped: Counter[str] = Counter()
    of_results: dict[ResultPlace, list[MarkedResult]] = {}
    for marked_result in marked:
        of_results.setdefault(marked_result.mark.place, []).append(marked_result)
    for same in of_results.values():
        pair = _pair(same, metric)
        if isinstance(pair, str):
            skipped[pair] += 1
        else:
            pairs.append(pair)
    return pairs, skipped


def pairs_text(pairs: Sequence[JsonObject]) -> str:
    """Return labelled pairs as JSON Lines."""
    return "".join(f"{orjson.dumps(pair).decode()}\n" for pair in pairs)


def _pair(same: Sequence[MarkedResult], metric: str) -> JsonObject | str:
    """Return the labelled pair of a result that people have judged, or why there is none."""
    _, case, result = same[0]
    if case is None or result is None:
        return "does not exist any more"
    if result.verdict in DECIDED and not result.rater:
        return "was not rated by a rater"
    if canonical_name(result.name) != canonical_name(metric):
        return f"is not of {canonical_name(metric)}"
    labels = {label for marked_result in same if (label := _label(result, marked_result.mark)) is not None}
    if not labels:
        return "was not decided, and nobody said whether it should pass or fail"
    if len(labels) > 1:
        return "is judged differently by several people"
    [right] = labels
    notes = "; ".join(dict.fromkeys(marked_result.mark.note for marked_result in same if marked_result.mark.note))
    reason: JsonObject = {"reason": notes} if notes else {}
    utterance = exchange_of(case, result).utterance
    return {"utterance": utterance, "expected": result.expected, "actual": result.actual, "right": right, **reason}


def _label(result: TestResult, mark: Mark) -> bool | None:
    """Return whether a person finds the answer of a result right; None if the judgement does not say it."""
    if wanted := _SHOULD_BE.get(mark.judgement):
        return wanted is Verdict.PASS
    if result.verdict not in DECIDED:
        return None
    return (result.verdict is Verdict.PASS) == (mark.judgement == "right")


def _find(project: Project, database: Database, place: ResultPlace) -> tuple[CaseResult | None, TestResult | None]:
    case = None
    if not place.org_url:
        case = Runs(database).case(place.run_id, place.iteration, place.number)
    else:
        with suppress(NotFound):
            cases = find_run(project, place.run_id, org_url=place.org_url).cases
            case = next(
                (case for case in cases if (case.number, case.iteration) == (place.number, place.iteration)), None
            )
    found = named_results(case) if case else []
    return case, next(
        (
            named_result.result
            for named_result in found
            if (named_result.name, named_result.turn) == (place.name, place.turn)
        ),
        None,
    )
