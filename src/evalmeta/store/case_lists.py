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
from evalmeta.model.evaluation import all_tags
from evalmeta.model.run import WORST_FIRST, CaseResult, Verdict
from evalmeta.store.sql import placeholders
from evalmeta.store.stored_cases import decode_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evalmeta.store.database import Database

_CHUNK: Final = 256
_NO_NUMBER: Final = 2**62
_UNDECIDED: Final = b'"UNDECIDED"'
_AFTER: Final = """
    SELECT number, iteration, body FROM case_result
    WHERE run_id = ? AND verdict = ? AND (number, iteration) > (?, ?) ORDER BY number ASC, iteration ASC LIMIT ?
"""
# With the verdicts, the index has all that is read.
_OF_RUN: Final = "FROM case_result WHERE run_id = ? AND verdict IN ('PASS', 'FAILURE', 'ERROR', 'UNDECIDED')"
_BEFORE: Final = _AFTER.replace(">", "<").replace("ASC", "DESC")


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which case results a list shows."""

    verdict: Verdict | None = None  # that of the case; UNDECIDED also finds cases with an undecided result
    name: str = ""  # cases with a result of this name, which has the verdict if there is one
    text: str = ""  # in utterances, answers, expectations, explanations or tags, ignoring case
    tag: str = ""  # cases with this tag: one of their own, or NAME=VALUE of their metadata


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
    """One page of a list."""

    cases: tuple[ListedCase, ...]  # the results
    after: Place | None  # where the next page begins; None after the last one
    is_whole: bool = True  # whether the search looked at all rows for this page; False if it stopped at its limit


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
    matching = ((place_of(case, order), case) for case in cases if _matches(case.case, wanted, text))
    left = sorted((pair for pair in matching if after is None or pair[0] > after), key=lambda pair: pair[0])
    page = left[:limit]
    return CasePage(tuple(case for _, case in page), page[-1][0] if len(left) > limit else None)


def place_of(listed: ListedCase, run_ids: Sequence[str]) -> Place:
    """Return the place of a case result in the list of these runs."""
    case = listed.case
    return Place(WORST_FIRST.index(case.verdict), [*run_ids].index(listed.run_id), case.number, case.iteration)


def case_before(database: Database, run_ids: Sequence[str], wanted: CaseFilter, place: Place) -> ListedCase | None:
    """Return the case result before a place in the list of `case_page`; None if it is not found soon."""
    matches = _matcher(wanted)
    for _, run_id, body in islice(_rows(database, run_ids, wanted, place, is_back=True), limits.MAX_SEARCHED_ROWS):
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


def verdict_places(database: Database, run_id: str) -> Iterator[tuple[int, int, int]]:
    """Yield the rank of the verdict, the number and the iteration of each case result, without reading more."""
    ranks = {verdict.value: rank for rank, verdict in enumerate(WORST_FIRST)}
    sql = f"SELECT verdict, number, iteration {_OF_RUN}"
    return ((ranks[verdict], number, iteration) for verdict, number, iteration in database.query(sql, (run_id,)))


def find_cases(
    database: Database, run_id: str, places: Sequence[tuple[int, int]], wanted: CaseFilter
) -> tuple[list[CaseResult], int]:
    """Return those of the case results with a number and an iteration that match, and the bytes that were read."""
    matches, known, size = _matcher(wanted), {*places}, 0
    cases: list[CaseResult] = []
    numbers = sorted({number for number, _ in places})
    sql = f"SELECT number, iteration, body {_OF_RUN} AND number IN ({placeholders(numbers)})"
    for number, iteration, body in database.query(sql, (run_id, *numbers)):
        if (number, iteration) in known:
            size += len(body)
            if case := matches(body):
                cases.append(case)
    return cases, size


def _rows(
    database: Database, run_ids: Sequence[str], wanted: CaseFilter, start: Place, *, is_back: bool = False
) -> Iterator[tuple[Place, str, bytes]]:
    """Yield the rows behind a place of the list; if `is_back`, those before it in reverse order."""
    # Results may have another verdict than their case.
    only = None if wanted.name or wanted.verdict is Verdict.UNDECIDED else wanted.verdict
    sql, begin = (_BEFORE, (_NO_NUMBER, 0)) if is_back else (_AFTER, (0, 0))
    groups = [(rank, position) for rank in range(len(WORST_FIRST)) for position in range(len(run_ids))]
    for group in reversed(groups) if is_back else groups:
        verdict, run_id = WORST_FIRST[group[0]], run_ids[group[1]]
        if (only and verdict is not only) or (group > start[:2] if is_back else group < start[:2]):
            continue
        at = start[2:] if group == start[:2] else begin
        while rows := database.query(sql, (run_id, verdict.value, *at, _CHUNK)):
            for number, iteration, body in rows:
                yield Place(*group, number, iteration), run_id, body
            at = rows[-1][:2]


def _matcher(wanted: CaseFilter) -> Callable[[bytes], CaseResult | None]:
    """Return a function that decodes a case result; None if it does not match.

    The bytes are looked at first, because decoding them takes fifty times as long.
    """
    text = wanted.text.casefold()
    part, signs = orjson.dumps(text)[1:-1], [sign for sign in (wanted.name, wanted.verdict) if wanted.name and sign]
    part_text, result = part.decode(), orjson.dumps(signs)[1:-1]
    # The value of NAME=VALUE is in another place than the name, if both are metadata.
    tag = orjson.dumps(wanted.tag.partition("=")[0])[1:-1]

    def match(body: bytes) -> CaseResult | None:
        if result not in body or tag not in body:
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
    if not has_result or not has_tag(case, wanted.tag):
        return False
    return not text or any(text in shown.casefold() for shown in texts_of(case))


def has_tag(case: CaseResult, tag: str) -> bool:
    """Return whether a case had a tag when it ran; every case has the empty one."""
    return not tag or tag in all_tags(case.tags, case.metadata)


def texts_of(case: CaseResult) -> Iterator[str]:
    """Yield the texts of a case result in which a search looks."""
    yield from (case.utterance, case.label, case.error or "")
    yield from case.tags
    for turn in case.earlier:
        yield from (turn.utterance, turn.generated.outcome)
    if case.generated:
        yield case.generated.outcome
    for result in case.results:
        yield from (result.name, result.label or "", result.expected)
        yield from (result.actual, result.explanation, result.error or "")
