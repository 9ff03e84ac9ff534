"""The page to review results that nobody has judged: undecided ones, and those about which judges differ."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from evalmeta import limits
from evalmeta.api.judging.acceptance import is_acceptable
from evalmeta.api.judging.marks import agreement_of_people
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import StoreError
from evalmeta.formats.yaml_source import write_yaml
from evalmeta.model.aggregation import NamedResult, named_results
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.report.details import exchange_of, exchanges
from evalmeta.store.case_lists import CaseFilter, Place, find_cases
from evalmeta.store.judgements import Mark, ResultPlace, list_marks
from evalmeta.store.kept_numbers import find_digest, keep_digest
from evalmeta.store.run_lists import ListedRun, recent_runs
from evalmeta.viewer.digests import stamp_of
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.pages import Page, Query, Source, number_of
from evalmeta.viewer.run import cases_of
from evalmeta.viewer.run_states import ALL_REMOTE, ALL_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue

_CasePlace: TypeAlias = tuple[
    int, int, str, int
]  # the iteration and the number of a case, and a result's name and turn
_MARKS: Final = "SELECT count(*), max(marked_at) FROM mark"
_COUNTS: Final[Memory[int]] = Memory(limits.KEPT_REVIEW_COUNTS)


class ReviewedResult(NamedTuple):
    """A result that waits for a person's judgement, with those of others, and why it is doubtful."""

    run: ListedRun
    case: CaseResult
    named: NamedResult
    marks: Sequence[Mark]
    why: str


def review_page(source: Source, query: Query) -> Page:
    """Return the page with one result that the user has not judged, of the newest run of each test."""
    marks = list_marks(source.database)
    waiting = _waiting(source, marks)
    skipped = min(number_of(query, "skip", otherwise=0), max(0, len(waiting) - 1))
    result = _reviewed(source, *waiting[skipped], marks) if waiting else None
    values = {
        "waiting": len(waiting),
        "is_cut": len(waiting) >= limits.MAX_REVIEWED,
        "skipped": skipped,
        "result": result,
        "exchange": result and exchange_of(result.case, result.named.result),
        "can_accept": result is not None and _can_accept(source, result),
        "test": _as_test(result) if result else "",
        "people": agreement_of_people(marks),
    }
    command, title = "evalmeta test marks --export labels.jsonl", "Export all judgements as labels for rater check"
    return Page("review.html.j2", "Review", values, command=command, command_title=title)


def waiting_count(source: Source) -> int:
    """Return how many results `review_page` has for a user, at most `limits.MAX_REVIEWED`.

    It is counted again when runs start or end, and when somebody judges; results of runs that are over are read once.
    """
    states = [row for sql in (ALL_RUNS, ALL_REMOTE, _MARKS) for row in source.database.query(sql)]
    key = source.database.name, source.user.id, *states
    return _COUNTS.find(key, lambda: len(_waiting(source, list_marks(source.database))))


def _waiting(source: Source, marks: Iterable[Mark]) -> list[tuple[ListedRun, ResultPlace]]:
    """Return doubtful results that the user has not judged, at most `limits.MAX_REVIEWED`, the newest runs first."""
    own = {mark.place for mark in marks if mark.user_id == source.user.id}
    doubtful = ((run, place) for run in _newest(source) for place in _doubtful(source, run))
    return [*islice((pair for pair in doubtful if pair[1] not in own), limits.MAX_REVIEWED)]


def _newest(source: Source) -> list[ListedRun]:
    """Return the newest run of each test, the newest first."""
    recent = recent_runs(source.database, of_each=1, user=source.user, confirming=False)
    return sorted((runs[-1] for runs in recent.values()), key=lambda run: -run.started)


def _doubtful(source: Source, run: ListedRun) -> Iterator[ResultPlace]:
    """Yield where the results of a run are that a person should judge.

    No more results are read than the caller takes, page by page. The places are kept if the run is over; a search in
    one that is not over stops at its limit, because the next page searches again.
    """
    kept_as, stamp = f"{run.id} doubtful", stamp_of(run)
    kept = find_digest(source.database, kept_as, stamp, org_url=run.org_url) or {"places": [], "after": [*Place()]}
    places, after = cast("tuple[list[_CasePlace], list[int] | None]", (kept["places"], kept["after"]))
    for place in places:
        yield ResultPlace(run.org_url, run.id, *place)
    # Only results of other orgs have two verdicts, and their runs are in memory as a whole.
    wanted = CaseFilter() if run.org_url else CaseFilter(verdict=Verdict.UNDECIDED)
    limit = max(run.done, limits.MAX_REVIEWED) if run.org_url else limits.MAX_REVIEWED
    while after is not None:
        page = cases_of(source, [run], wanted, limit=limit, after=Place(*after))
        new = [place for listed in page.cases for place in _places_in(listed.case)]
        places, after = [*places, *new], [*page.after] if page.after else None
        if run.status.is_over:
            # Another program may be writing; the results are then read again for the next page.
            with suppress(StoreError):
                found = cast("JsonObject", {"places": places, "after": after})
                keep_digest(source.database, kept_as, stamp, found, org_url=run.org_url)
        elif not page.is_whole:
            after = None
        for place in new:
            yield ResultPlace(run.org_url, run.id, *place)


def _places_in(case: CaseResult) -> Iterator[_CasePlace]:
    if case.error is None:
        for named in named_results(case):
            if _why(named):
                yield case.iteration, case.number, named.name, named.turn


def _reviewed(source: Source, run: ListedRun, place: ResultPlace, marks: Iterable[Mark]) -> ReviewedResult:
    """Return a doubtful result."""
    if run.org_url:
        cases = find_run(source.project, run.id, org_url=run.org_url).cases
    else:
        cases, _ = find_cases(source.database, run.id, [(place.number, place.iteration)], CaseFilter())
    case = next(case for case in cases if (case.number, case.iteration) == (place.number, place.iteration))
    named = next(named for named in named_results(case) if (named.name, named.turn) == place[-2:])
    return ReviewedResult(run, case, named, [mark for mark in marks if mark.place == place], _why(named))


def _why(named: NamedResult) -> str:
    """Return why a person should judge a result; empty if that is not needed."""
    result = named.result
    if result.is_measured:
        return ""
    if result.verdict is Verdict.UNDECIDED:
        return "undecided"
    return "the org and evalmeta disagree" if result.verdicts and result.verdicts.differ else ""


def _can_accept(source: Source, reviewed: ReviewedResult) -> bool:
    result = reviewed.named.result
    can_change = source.user.is_admin and source.can_change and not reviewed.run.org_url
    return can_change and bool(result.actual) and is_acceptable(result)


def _as_test(reviewed: ReviewedResult) -> str:
    """Return a test case with the messages of a case that expects its last answer, as a test spec has it."""
    turns: list[dict[str, JsonValue]] = [{"utterance": turn.utterance} for turn in exchanges(reviewed.case)]
    if answer := reviewed.case.generated:
        turns[-1] |= {"expectedTopic": answer.topic} if answer.topic else {}
        turns[-1] |= {"expectedActions": [action.name for action in answer.actions]} if answer.actions else {}
        turns[-1] |= {"expectedOutcome": answer.outcome} if answer.outcome else {}
    return write_yaml({"testCases": [turns[0] if len(turns) == 1 else {"turns": turns}]}).decode()
