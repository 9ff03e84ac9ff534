"""The case results of runs sorted by a column or grouped: what a page of such a list shows, and its neighbours.

The usual order is that of the store (`store/case_lists.py`). For others, the values of all results are read once, and
kept if the run is over.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import StoreError
from evalmeta.model.evaluation import all_tags
from evalmeta.model.run import WORST_FIRST, Verdict
from evalmeta.report.causes import masked, reason_of
from evalmeta.report.details import all_utterances, not_passed, why_not_passed
from evalmeta.report.results import label_of
from evalmeta.store.case_lists import CaseFilter, ListedCase, find_cases, listed_page, verdict_places
from evalmeta.store.kept_numbers import find_digest, keep_digest
from evalmeta.store.runs import Runs
from evalmeta.viewer.digests import stamp_of
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.tables import by_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.pages import Source
    from evalmeta.viewer.tables import Layout, Plain

GROUPS: Final = {"test": "test", "tag": "tag", "expectation": "expectation that did not pass", "cause": "cause"}
"""By what cases can be grouped, with titles."""
_PASSED: Final = ""
_CASE_ITSELF: Final = "the case itself"
_NO_TAG: Final = "no tag"
_KEY_CHARS: Final = 80
_CHUNK: Final = 250


class Entry(NamedTuple):
    """A case result in a list: the position of its run, the rank of its verdict, and what names it in the run."""

    run: int
    verdict: int
    number: int
    iteration: int


class CaseOrder(NamedTuple):
    """All results of runs in an order: each with its group, empty if they are not grouped or if it passed."""

    entries: Sequence[tuple[str, Entry]]
    is_grouped: bool = False


_ORDERS: Final[Memory[CaseOrder]] = Memory(limits.KEPT_COMPARISONS)


class OrderedPage(NamedTuple):
    """A part of a list: results with the headings of their groups, and the number of the entry where the next begins.

    `after` is None after the last part; unless it `is_whole`, the search stopped at its limit.
    """

    cases: Sequence[tuple[str, ListedCase]]
    after: int | None
    is_whole: bool = True


def _expectations(case: CaseResult) -> Iterator[str]:
    if case.verdict is Verdict.PASS:
        yield _PASSED
        return
    yield from dict.fromkeys(result.name for result in not_passed(case)) or (_CASE_ITSELF,)


def _causes(case: CaseResult) -> Iterator[str]:
    yield _PASSED if case.verdict is Verdict.PASS else masked(reason_of(case), case)


# What the results of a case say, by the column or the group.
_KEYS: Final[Mapping[str, Callable[[CaseResult], Iterable[Plain]]]] = {
    "utterance": lambda case: [all_utterances(case).casefold()[:_KEY_CHARS]],
    "why": lambda case: [None if case.verdict is Verdict.PASS else why_not_passed(case).casefold()[:_KEY_CHARS]],
    "latency": lambda case: [case.generated.latency_ms if case.generated else None],
    "tag": lambda case: all_tags(case.tags, case.metadata) or (_NO_TAG,),
    "expectation": _expectations,
    "cause": _causes,
}
SORTABLE: Final = frozenset({"result", "case", "test", "utterance", "why", "latency"})
"""The names of the columns by which cases can be sorted."""


def can_be_ordered(runs: Iterable[ListedRun]) -> bool:
    """Return whether the results of runs can be sorted and grouped: not of large ones that are in progress."""
    return all(run.status.is_over or run.done <= limits.MAX_LIVE_CASES for run in runs)


def order_of(source: Source, runs: Sequence[ListedRun], layout: Layout) -> CaseOrder:
    """Return all results of runs as a layout sorts and groups them."""
    states = tuple((run.org_url, run.id, stamp_of(run)) for run in runs)
    key = source.database.name, states, layout.sort, layout.is_descending, layout.group
    return _ORDERS.find(key, lambda: _order(source, runs, layout))


def ordered_page(
    source: Source, runs: Sequence[ListedRun], wanted: CaseFilter, order: CaseOrder, *, limit: int, start: int = 0
) -> OrderedPage:
    """Return the part of a list that begins at an entry."""
    found: list[tuple[str, ListedCase]] = []
    last = start
    for last, heading, case in _matching(source, runs, wanted, order, range(start, len(order.entries))):
        if case is None:
            return OrderedPage(found, last, is_whole=False)
        if len(found) == limit:
            return OrderedPage(found, last)
        found.append((heading, case))
    return OrderedPage(found, None)


def neighbours_in(
    source: Source, run: ListedRun, wanted: CaseFilter, order: CaseOrder, case: CaseResult
) -> tuple[ListedCase | None, ListedCase | None]:
    """Return the results before and after a result in a list of one run; None if they are not found soon."""
    entry = Entry(0, WORST_FIRST.index(case.verdict), case.number, case.iteration)
    place = next((place for place, (_, known) in enumerate(order.entries) if known == entry), 0)
    ways = range(place - 1, -1, -1), range(place + 1, len(order.entries))
    before, after = (next((found[2] for found in _matching(source, [run], wanted, order, way)), None) for way in ways)
    return before, after


def groups_of(order: CaseOrder, wanted: CaseFilter, group: str) -> list[tuple[str, int | None, int]]:
    """Return the heading of each group, the number of its results, None if a search decides it, and its first entry."""
    if not order.is_grouped:
        return []
    only = _only(wanted)
    kept = [name for name, entry in order.entries if only is None or entry.verdict == only]
    counts, starts = Counter(kept), dict[str, int]()
    for place, (name, _) in enumerate(order.entries):
        starts.setdefault(name, place)
    is_counted = not (wanted.name or wanted.text or wanted.tag or (wanted.verdict and only is None))
    return [(heading_of(name, group), number if is_counted else None, starts[name]) for name, number in counts.items()]


def heading_of(name: str, group: str) -> str:
    """Return the heading of a group."""
    if name == _PASSED:
        return "passed"
    return label_of(name, None) or name if group == "expectation" else name


def _order(source: Source, runs: Sequence[ListedRun], layout: Layout) -> CaseOrder:
    entries = sorted(entry for at, run in enumerate(runs) for entry in _entries(source, run, at))
    entries.sort(key=lambda entry: (entry.verdict, entry))
    if layout.sort:
        entries = by_rank(_keyed(source, runs, entries, layout.sort), is_descending=layout.is_descending)
    if not layout.group:
        return CaseOrder([("", entry) for entry in entries])
    places = {entry: place for place, entry in enumerate(entries)}
    members = [(str(key), entry) for key, entry in _keyed(source, runs, entries, layout.group)]
    sizes = Counter(name for name, _ in members)
    members.sort(key=lambda pair: (pair[0] == _PASSED, -sizes[pair[0]], pair[0], places[pair[1]]))
    return CaseOrder(members, is_grouped=True)


def _entries(source: Source, run: ListedRun, at: int) -> Iterator[Entry]:
    if run.org_url:
        cases = find_run(source.project, run.id, org_url=run.org_url).cases
        return (Entry(at, WORST_FIRST.index(case.verdict), case.number, case.iteration) for case in cases)
    return (Entry(at, *place) for place in verdict_places(source.database, run.id))


def _keyed(source: Source, runs: Sequence[ListedRun], entries: Sequence[Entry], name: str) -> list[tuple[Plain, Entry]]:
    """Return entries with what a column or group has of them."""
    if name not in _KEYS:
        ways: Mapping[str, Callable[[Entry], Plain]] = {
            "result": lambda entry: entry.verdict,
            "case": lambda entry: entry.number,
            "test": lambda entry: runs[entry.run].definition.casefold(),
        }
        return [(ways[name](entry), entry) for entry in entries]
    known = {entry: place for place, entry in enumerate(entries)}
    keyed = [(key, Entry(at, *place)) for at, run in enumerate(runs) for key, *place in _keys(source, run, name)]
    return sorted((pair for pair in keyed if pair[1] in known), key=lambda pair: known[pair[1]])


def _keys(source: Source, run: ListedRun, name: str) -> Iterable[tuple[Plain, int, int, int]]:
    """Return what a column or group has of all results of a run, with the rest of their entries."""
    stamp, kept_as = stamp_of(run), f"{run.id} {name}"
    if kept := find_digest(source.database, kept_as, stamp, org_url=run.org_url):
        return cast("list[tuple[Plain, int, int, int]]", kept["cases"])
    cases = (
        find_run(source.project, run.id, org_url=run.org_url).cases
        if run.org_url
        else Runs(source.database).stream(run.id)
    )
    keys = [
        (key, WORST_FIRST.index(case.verdict), case.number, case.iteration)
        for case in cases
        for key in _KEYS[name](case)
    ]
    if run.status.is_over:
        # Another program may be writing; the values are then read again for the next page.
        with suppress(StoreError):
            keep_digest(source.database, kept_as, stamp, cast("JsonObject", {"cases": keys}), org_url=run.org_url)
    return keys


def _matching(
    source: Source, runs: Sequence[ListedRun], wanted: CaseFilter, order: CaseOrder, places: range
) -> Iterator[tuple[int, str, ListedCase | None]]:
    """Yield the results at some places of a list that match; None instead of a result where the search stops."""
    only, searched, size = _only(wanted), 0, 0
    fitting = [place for place in places if only is None or order.entries[place][1].verdict == only]
    for start in range(0, len(fitting), _CHUNK):
        chunk = fitting[start : start + _CHUNK]
        if searched >= limits.MAX_SEARCHED_ROWS or (wanted.text and size > limits.MAX_SEARCHED_BYTES):
            yield chunk[0], "", None
            return
        found, read = _find(source, runs, wanted, [order.entries[place][1] for place in chunk])
        searched, size = searched + len(chunk), size + read
        for place in chunk:
            heading, entry = order.entries[place]
            if entry in found:
                yield place, heading, ListedCase(runs[entry.run].id, found[entry])


def _find(
    source: Source, runs: Sequence[ListedRun], wanted: CaseFilter, entries: Sequence[Entry]
) -> tuple[dict[Entry, CaseResult], int]:
    """Return those results that match, by entry, and the number of bytes that were read."""
    found: dict[Entry, CaseResult] = {}
    size = 0
    for at in dict.fromkeys(entry.run for entry in entries):
        run, own = runs[at], {entry[2:]: entry for entry in entries if entry.run == at}
        if run.org_url:
            cases = find_run(source.project, run.id, org_url=run.org_url).cases
            listed = [ListedCase(run.id, case) for case in cases if (case.number, case.iteration) in own]
            matching = [known.case for known in listed_page(listed, wanted, limit=len(listed)).cases]
        else:
            matching, read = find_cases(source.database, run.id, [*own], wanted)
            size += read
        found |= {own[case.number, case.iteration]: case for case in matching}
    return found, size


def _only(wanted: CaseFilter) -> int | None:
    """Return the rank of the verdict that all matching results have; None if they may have several."""
    # Results may have another verdict than their case.
    is_of_case = wanted.verdict and not wanted.name and wanted.verdict is not Verdict.UNDECIDED
    return WORST_FIRST.index(wanted.verdict) if wanted.verdict and is_of_case else None
