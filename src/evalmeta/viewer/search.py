"""The page that searches all runs: results of cases grouped by test, tests, and commits."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import find_listed
from evalmeta.store.runs import Runs
from evalmeta.store.search_index import SearchedPlace, SearchIndex, discard_index, open_index
from evalmeta.store.searched_runs import SearchedRun, searched_runs
from evalmeta.store.searched_texts import Piece, excerpt, folded, searched_texts, words_of
from evalmeta.viewer.pages import Page, Query, Source, number_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.model.store import Store

KINDS: Final = ("cases", "tests", "commits")
READER: Final = "evalmeta search"
"""The name of the threads that read results for the search."""
_OF_EACH_RUN: Final = 3
_SHOWN_TEXTS: Final = 2
_EXCERPT_CHARS: Final = 300
_building: dict[Store, threading.Thread] = {}
_starting = threading.Lock()


class Match(NamedTuple):
    """A result that a search found, with the texts that have its words."""

    run: SearchedRun
    case: CaseResult
    has_iterations: bool
    texts: Sequence[tuple[str, Sequence[Piece]]]


class MatchedTest(NamedTuple):
    """The results of one test, the newest first."""

    run: SearchedRun
    matches: list[Match]


class CaseMatches(NamedTuple):
    """The results on a page.

    Attributes:
        tests: the results by test.
        below: where the next page begins; None after the last one.
        is_prefix: whether longer words count, because no result has the words themselves.
        missing: the number of runs that the index does not have yet.
        problem: why results cannot be searched; empty if they can.
    """

    tests: Sequence[MatchedTest] = ()
    below: int | None = None
    is_prefix: bool = False
    missing: int = 0
    problem: str = ""


def search_page(source: Source, query: Query) -> Page:
    """Return what all runs have of the words of a query; `kind`, `test` and `run` say where to look."""
    text, kind, test, run_id = (text_of(query, name) for name in ("q", "kind", "test", "run"))
    kind = kind if kind in KINDS else ""
    words, runs = [*dict.fromkeys(words_of(text))], searched_runs(source.database, user=source.user)
    wanted = [run for run in runs if test in {"", run.definition} and run_id in {"", run.id}]
    below = number_of(query, "after", otherwise=0) or None
    cases = _cases(source, words, wanted, below, is_one=bool(run_id)) if words and kind in {"", "cases"} else None
    is_first = words and not (below or test or run_id)
    tests = [*_newest(runs, words, lambda run: run.definition, lambda run: run.titles)] if is_first else []
    commits = [*_newest(runs, words, lambda run: run.commit, lambda run: run.commit)] if is_first else []
    values = {
        "text": text,
        "words": words,
        "kind": kind,
        "kinds": KINDS,
        "here": {"q": text, "kind": kind, "test": test, "run": run_id},
        "test": test,
        "run_id": run_id,
        "runs": len(wanted),
        "running": sum(not run.status.is_over for run in wanted),
        "cases": cases,
        "is_first": below is None,
        "tests": tests if kind in {"", "tests"} else [],
        "commits": commits if kind in {"", "commits"} else [],
        "most": limits.MAX_LISTED_MATCHES,
    }
    return Page("search.html.j2", f"Search {text}".strip(), values)


def _cases(
    source: Source, words: Sequence[str], runs: Sequence[SearchedRun], below: int | None, *, is_one: bool
) -> CaseMatches:
    try:
        with open_index(source.database) as index:
            is_complete = index.update(seconds=limits.SEARCH_UPDATE_SECONDS)
            found = _found(source, index, words, runs, below, is_one=is_one)
    except StoreCorrupt as error:
        discard_index(source.database)
        return CaseMatches(problem=f"{error}. It was deleted, and the next search makes it again.")
    except StoreError as error:
        return CaseMatches(problem=str(error))
    if not is_complete:
        _build_later(source.database.store)
    return found


def _found(
    source: Source,
    index: SearchIndex,
    words: Sequence[str],
    runs: Sequence[SearchedRun],
    below: int | None,
    *,
    is_one: bool,
) -> CaseMatches:
    state = index.state()
    numbers = {number: run for run in runs if (number := state.numbers.get((run.org_url, run.id))) is not None}
    of_each = limits.VIEW_ROWS if is_one else _OF_EACH_RUN
    found = index.find(words, numbers, limit=limits.VIEW_ROWS, of_each=of_each, below=below)
    is_prefix = not found.places and found.below is None and below is None
    if is_prefix:
        found = index.find(words, numbers, limit=limits.VIEW_ROWS, of_each=of_each, is_prefix=True)
    tests: dict[str, MatchedTest] = {}
    for match in _matches(source, found.places, numbers, words, is_prefix=is_prefix):
        tests.setdefault(match.run.definition, MatchedTest(match.run, [])).matches.append(match)
    return CaseMatches([*tests.values()], found.below, is_prefix and bool(tests), state.missing)


def _matches(
    source: Source,
    places: Sequence[SearchedPlace],
    numbers: Mapping[int, SearchedRun],
    words: Collection[str],
    *,
    is_prefix: bool,
) -> Iterator[Match]:
    remote: dict[tuple[str, str], dict[tuple[int, int], CaseResult]] = {}
    repeated: dict[tuple[str, str], bool] = {}
    for place in places:
        run = numbers[place.run]
        key = run.org_url, run.id
        if run.org_url and key not in remote:
            found = RemoteRuns(source.database).find(run.id, org_url=run.org_url)
            remote[key] = {(case.iteration, case.number): case for known in found for case in known.run.cases}
        if key not in repeated:
            listed = find_listed(source.database, run.id, org_url=run.org_url, user=source.user)
            repeated[key] = listed is not None and listed.options.is_repeated
        case = (
            remote[key].get((place.iteration, place.case))
            if run.org_url
            else Runs(source.database).case(run.id, place.iteration, place.case)
        )
        # Results of a run that is deleted meanwhile, or gets other ones, are not there any more.
        if case and (texts := _texts(case, words, is_prefix=is_prefix)):
            yield Match(run, case, repeated[key], texts)


def _texts(case: CaseResult, words: Collection[str], *, is_prefix: bool) -> list[tuple[str, Sequence[Piece]]]:
    """Return the texts with most of the words, marked, the best first."""
    marked: dict[str, tuple[str, Sequence[Piece]]] = {}
    for what, text in searched_texts(case):
        if text not in marked and (pieces := excerpt(text, words, is_prefix=is_prefix, chars=_EXCERPT_CHARS)):
            marked[text] = what, pieces
    return sorted(marked.values(), key=lambda shown: -_marked_words(shown[1]))[:_SHOWN_TEXTS]


def _marked_words(pieces: Sequence[Piece]) -> int:
    return len({folded(piece.text) for piece in pieces if piece.is_match})


def _newest(
    runs: Sequence[SearchedRun],
    words: Sequence[str],
    key: Callable[[SearchedRun], str],
    text: Callable[[SearchedRun], str],
) -> Iterator[tuple[SearchedRun, int]]:
    """Yield the newest run of each test or commit whose text has parts that are the words, and how many runs it has."""
    newest: dict[str, tuple[SearchedRun, int]] = {}
    for run in runs:
        name = key(run)
        if name in newest:
            newest[name] = newest[name][0], newest[name][1] + 1
        elif name and all(word in folded(text(run)) for word in words):
            newest[name] = run, 1
    yield from newest.values()


def _build_later(store: Store) -> None:
    """Let a thread read the results that the index does not have yet; one for each store."""

    def build() -> None:
        # The next search tries again, and shows the error.
        with suppress(StoreError), open_database(store) as database, open_index(database) as index:
            while not index.update(seconds=limits.STORE_BUSY_SECONDS) and index.state().missing:
                # Another process may be reading them.
                time.sleep(limits.VIEW_POLL_SECONDS)

    with _starting:
        known = _building.get(store)
        if known is None or not known.is_alive():
            _building[store] = threading.Thread(target=build, name=READER, daemon=True)
            _building[store].start()
