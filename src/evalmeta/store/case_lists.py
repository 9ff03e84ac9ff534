"""Lists of case results of one or several runs: filtered, searched, and page by page, the worst results first.

A page reads only its own rows, and a search at most `limits.MAX_SEARCHED_ROWS` of them and
`limits.MAX_SEARCHED_BYTES`; the next page continues there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.model.run import WORST_FIRST, Verdict
from evalmeta.store.stored_cases import decode_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.store.database import Database

_CHUNK: Final = 256
_NO_NUMBER: Final = 2**62
_UNDECIDED: Final = b'"UNDECIDED"'


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which case results a list shows.

    Attributes:
        verdict: results of cases with this verdict; UNDECIDED also finds cases with an undecided result.
        name: cases with a result of this name, which has the verdict if there is one.
        text: cases whose utterances, answers, expectations or explanations contain this text, ignoring case.
    """

    verdict: Verdict | None = None
    name: str = ""
    text: str = ""


class Place(NamedTuple):
    """The place of a case result in a list: the next page begins after it."""

    verdict: int = 0
    run: int = 0
    number: int = 0
    iteration: int = 0


class ListedCase(NamedTuple):
    """A case result in a list, with its run."""

    run_id: str
    case: CaseResult


class CasePage(NamedTuple):
    """One page of a list.

    Attributes:
        cases: the results.
        after: where the next page begins; None after the last one.
        is_whole: whether the search looked at all rows for this page; False if it stopped at its limit.
    """

    cases: tuple[ListedCase, ...]
    after: Place | None
    is_whole: bool = True


def count_verdicts(database: Database, run_ids: Sequence[str]) -> Counter[Verdict]:
    """Count the case results of runs by verdict."""
    counts: Counter[Verdict] = Counter()
    sql = "SELECT verdict, count(*) FROM case_result WHERE run_id = ? GROUP BY verdict"
    for run_id in run_ids:
        counts.update({Verdict(verdict): number for verdict, number in database.query(sql, (run_id,))})
    return counts


def case_page(
    database: Database, run_ids: Sequence[str], wanted: CaseFilter, *, limit: int, after: Place | None = None
) -> CasePage:
    """Return a page of the case results of runs: failures first, then errors, undecided and passed ones.

    Results with the same verdict are in the order of the runs, then of case number and iteration.
    """
    matches, cases, size = _matcher(wanted), list[ListedCase](), 0
    start = last = after or Place()
    for searched, (place, run_id, body) in enumerate(_rows(database, run_ids, wanted, start)):
        if len(cases) == limit:
            return CasePage(tuple(cases), last)
        if searched == limits.MAX_SEARCHED_ROWS or (wanted.text and size > limits.MAX_SEARCHED_BYTES):
            return CasePage(tuple(cases), last, is_whole=False)
        last, size = place, size + len(body)
        case = matches(body)
        if case is not None:
            cases.append(ListedCase(run_id, case))
    return CasePage(tuple(cases), None)


def listed_page(cases: Sequence[ListedCase], wanted: CaseFilter, *, limit: int, after: Place | None = None) -> CasePage:
    """Return a page of case results that are in memory, in the order of `case_page`; they are sorted by run."""
    order = [*dict.fromkeys(case.run_id for case in cases)]
    text = wanted.text.casefold()
    placed = sorted(
        ((place_of(case, order), case) for case in cases if _matches(case.case, wanted, text)), key=lambda pair: pair[0]
    )
    left = [pair for pair in placed if after is None or pair[0] > after]
    page = left[:limit]
    return CasePage(tuple(listed_case for _, listed_case in page), page[-1][0] if len(left) > limit else None)


def place_of(listed: ListedCase, run_ids: Sequence[str]) -> Place:
    """Return the place of a case result in the list of these runs."""
    case = listed.case
    return Place(WORST_FIRST.index(case.verdict), [*run_ids].index(listed.run_id), case.number, case.iteration)


def case_before(database: Database, run_ids: Sequence[str], wanted: CaseFilter, place: Place) -> ListedCase | None:
    """Return the case result before a place in the list of `case_page`; None if it is not found soon."""
    matches = _matcher(wanted)
    for _, run_id, body in islice(_rows_before(database, run_ids, wanted, place), limits.MAX_SEARCHED_ROWS):
        if case := matches(body):
            return ListedCase(run_id, case)
    return None


def case_history(database: Database, run_ids: Sequence[str], number: int) -> Iterator[ListedCase]:
    """Yield the results of one case in several runs, in the order of the runs and iterations."""
    # The verdicts let the index find the number; without them, all results of the run would be read.
    sql = """
        SELECT body FROM case_result
        WHERE run_id = ? AND verdict IN ('PASS', 'FAILURE', 'ERROR', 'UNDECIDED') AND number = ?
        ORDER BY iteration LIMIT ?
    """
    for run_id in run_ids:
        for (body,) in database.query(sql, (run_id, number, limits.VIEW_ROWS)):
            yield ListedCase(run_id, decode_case(body))


def _rows(
    database: Database, run_ids: Sequence[str], wanted: CaseFilter, start: Place
) -> Iterator[tuple[Place, str, bytes]]:
    only = _only(wanted)
    sql = """
        SELECT number, iteration, body FROM case_result
        WHERE run_id = ? AND verdict = ? AND (number, iteration) > (?, ?) ORDER BY number, iteration LIMIT ?
    """
    for rank, verdict in enumerate(WORST_FIRST):
        if rank < start.verdict or (only and verdict is not only):
            continue
        for position, run_id in enumerate(run_ids):
            if (rank, position) < start[:2]:
                continue
            at = start[2:] if (rank, position) == start[:2] else (0, 0)
            while rows := database.query(sql, (run_id, verdict.value, *at, _CHUNK)):
                for number, iteration, body in rows:
                    yield Place(rank, position, number, iteration), run_id, body
                at = rows[-1][:2]


def _only(wanted: CaseFilter) -> Verdict | None:
    """Return the verdict of all wanted cases; None if results decide, which may have another one than their case."""
    return None if wanted.name or wanted.verdict is Verdict.UNDECIDED else wanted.verdict


def _rows_before(
    database: Database, run_ids: Sequence[str], wanted: CaseFilter, start: Place
) -> Iterator[tuple[Place, str, bytes]]:
    """Yield what `_rows` yields up to a place, in reverse order."""
    only = _only(wanted)
    sql = """
        SELECT number, iteration, body FROM case_result
        WHERE run_id = ? AND verdict = ? AND (number, iteration) < (?, ?) ORDER BY number DESC, iteration DESC LIMIT ?
    """
    for rank, verdict in reversed([*enumerate(WORST_FIRST)]):
        if rank > start.verdict or (only and verdict is not only):
            continue
        for position, run_id in reversed([*enumerate(run_ids)]):
            if (rank, position) > start[:2]:
                continue
            at = start[2:] if (rank, position) == start[:2] else (_NO_NUMBER, 0)
            while rows := database.query(sql, (run_id, verdict.value, *at, _CHUNK)):
                for number, iteration, body in rows:
                    yield Place(rank, position, number, iteration), run_id, body
                at = rows[-1][:2]


def _matcher(wanted: CaseFilter) -> Callable[[bytes], CaseResult | None]:
    """Return a function that decodes a case result; None if it does not match.

    The bytes are looked at first, because decoding them takes fifty times as long.
    """
    text = wanted.text.casefold()
    part, signs = orjson.dumps(text)[1:-1], [sign for sign in (wanted.name, wanted.verdict) if wanted.name and sign]
    part_text, result = part.decode(), orjson.dumps(signs)[1:-1]

    def match(body: bytes) -> CaseResult | None:
        if result not in body:
            return None
        if text and not (part in body.lower() if body.isascii() else part_text in body.decode().casefold()):
            return None
        if wanted.verdict is Verdict.UNDECIDED and _UNDECIDED not in body:
            return None
        case = decode_case(body)
        return case if _matches(case, wanted, text) else None

    return match


def _matches(case: CaseResult, wanted: CaseFilter, text: str) -> bool:
    verdict = wanted.verdict
    if wanted.name:
        has_result = any(result.name == wanted.name and verdict in {None, result.verdict} for result in case.results)
    else:
        judged = (result for result in case.results if not result.is_measured)
        has_result = verdict in {None, case.verdict} or any(result.verdict is verdict for result in judged)
    if not has_result:
        return False
    return not text or any(text in shown.casefold() for shown in _texts(case))


def _texts(case: CaseResult) -> Iterator[str]:
    yield from (case.utterance, case.label, case.error or "")
    for turn in case.earlier:
        yield from (turn.utterance, turn.generated.outcome)
    if case.generated:
        yield case.generated.outcome
    for result in case.results:
        yield from (
            result.name,
            result.label or "",
            result.expected,
            result.actual,
            result.explanation,
            result.error or "",
        )
