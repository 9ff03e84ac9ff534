"""The page that compares two runs, or a run with a baseline: what was fixed, what broke, and how the answers differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.baselines import open_baseline
from evalmeta.api.runs.comparisons import compare_runs, compare_with, find_run, previous_run
from evalmeta.api.runs.finding import run_id_of
from evalmeta.api.runs.result_pairs import BETTER, ResultPair, result_pairs
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.aggregation import named_results, results_called
from evalmeta.model.case_faults import fault_of
from evalmeta.model.changes import Fault
from evalmeta.model.comparison import SUSPECTS, CaseComparison, Comparison, Standing
from evalmeta.report.case_differences import TurnDifference, reasons, score_change, turn_differences
from evalmeta.report.comparison import WORST_FIRST, change_texts, p_text, rates_text, remark_lines, verdict
from evalmeta.store.case_lists import has_tag, texts_of
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import RunFilter, find_listed, list_runs, run_page, runs_without_tags
from evalmeta.viewer.digests import digest_of
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.pages import Page, Query, Source, number_of, text_of
from evalmeta.viewer.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.model.run import CaseResult, Run
    from evalmeta.model.statistics import CaseCounts

_WORSE: Final = (Standing.BROKEN, Standing.ERROR)
# The filters, and the order, that need the results of all cases.
_READING: Final = ("text", "expectation", "fault", "tag", "sort")
# How cases are sorted, by the word in the address.
_SORTED: Final = {"": "worst first", "score": "by difference of scores", "number": "by number"}


_KEPT: Final[Memory[Comparison]] = Memory(limits.KEPT_COMPARISONS)


class ComparedCase(NamedTuple):
    """A case of a comparison with its results, why it changed, and its turns side by side; empty if not known."""

    comparison: CaseComparison
    p_value: str
    fault: str
    before: CaseResult | None
    after: CaseResult | None
    reasons: tuple[str, ...]
    turns: Sequence[TurnDifference]

    @property
    def first_turn(self) -> int:
        """Return the number of the first turn that differs; 0 if none does."""
        return next((turn.turn for turn in self.turns if not turn.is_same), 0)


def _counts(counts: CaseCounts | None) -> str:
    """Return how often a case passed of the times that it was decided; empty if the run does not have it."""
    return f"{counts.passed} of {counts.decided}" if counts else ""


# What CSV files have.
COMPARED_COLUMNS: Final[tuple[Column[ComparedCase], ...]] = (
    Column("Change", "text", lambda row: row.comparison.standing.value),
    Column("Case", "number", lambda row: row.comparison.number),
    Column("Utterance", "long_text", lambda row: row.comparison.utterance),
    Column("Passed before", "text", lambda row: _counts(row.comparison.before)),
    Column("Passed after", "text", lambda row: _counts(row.comparison.after)),
    Column("Fault", "text", lambda row: row.fault),
    Column("Why", "long_text", lambda row: "; ".join(row.reasons)),
)


def compare_page(source: Source, query: Query) -> Page:
    """Return the comparison of two runs; without a choice, the form that makes it."""
    recent = run_page(source.database, RunFilter(user=source.user), limit=limits.VIEW_ROWS).runs
    after_id, before_id = text_of(query, "after"), text_of(query, "before")
    chosen = {"after": after_id, "before": before_id}
    if not after_id:
        return Page("compare.html.j2", "Compare", {"recent": recent, "chosen": chosen, "comparison": None})
    after_org, after = _run(source, after_id, text_of(query, "org"))
    before_org, before = _before(source, after, before_id, text_of(query, "before_org"))
    comparison = _compare(source, before, after)
    known_before = None if isinstance(before, str) else before
    wanted = {name: text_of(query, name) for name in ("standing", *_READING)}
    cases, total = _cases(comparison, known_before, after, wanted, 0, limits.VIEW_ROWS)
    orgs = {"org": after_org, "before_org": before_org}
    values = {
        "recent": recent,
        "chosen": {"after": after.id, "before": before if isinstance(before, str) else before.id},
        "orgs": orgs,
        "comparison": comparison,
        "verdict": verdict(comparison),
        "changes": list(change_texts(comparison.changes)),
        "rates": rates_text(comparison),
        "remarks": list(remark_lines(comparison)),
        "before": known_before,
        "after": after,
        "wanted": wanted,
        "standings": [(group, len(comparison.of(group))) for group in WORST_FIRST if comparison.of(group)],
        "colours": {group: "failure" if group in _WORSE else "pass" if group in BETTER else "" for group in Standing},
        "faults": [*Fault],
        "tags": _tags(source, after, orgs["org"]),
        "untagged": _untagged(source, known_before, after) if wanted["tag"] else 0,
        "sorted": _SORTED,
        "cases": cases,
        "left": max(0, total - limits.VIEW_ROWS),
    }
    command = f"evalmeta test compare {values['chosen']['before']} {after.id}"  # type: ignore[index] # a dictionary
    return Page("compare.html.j2", f"Compare {after.definition}", values, command=command)


def compared_cases(source: Source, query: Query, limit: int) -> Table[ComparedCase]:
    """Return a part of the cases of a comparison, as `compare_page` filters and sorts them."""
    _, after = _run(source, text_of(query, "after"), text_of(query, "org"))
    _, before = _before(source, after, text_of(query, "before"), text_of(query, "before_org"))
    comparison = _compare(source, before, after)
    wanted = {name: text_of(query, name) for name in ("standing", *_READING)}
    start = number_of(query, "after_case", otherwise=0)
    known_before = None if isinstance(before, str) else before
    cases, total = _cases(comparison, known_before, after, wanted, start, limit)
    return Table(COMPARED_COLUMNS, cases, after=str(start + limit) if start + limit < total else "")


def _cases(
    comparison: Comparison, before: Run | None, after: Run, wanted: Mapping[str, str], start: int, limit: int
) -> tuple[list[ComparedCase], int]:
    """Return a part of the cases to show, and the number of all; only filters and sorting read the results of all."""
    shown = [case for case in comparison.cases if _is_shown(case, wanted["standing"])]
    shown.sort(key=lambda case: (WORST_FIRST.index(case.standing), case.number))
    parts = [part.what for part in comparison.changes.parts]
    if not any(wanted[name] for name in _READING):
        part = shown[start : start + limit]
        pairs = zip(part, result_pairs(part, before, after), strict=True)
        return [_compared(case, pair, parts) for case, pair in pairs], len(shown)
    found = [
        (case, pair)
        for case, pair in zip(shown, result_pairs(shown, before, after), strict=True)
        if _matches(case, pair, parts, wanted)
    ]
    if wanted["sort"] == "score":
        found.sort(key=lambda known: -_score_change(*known))
    if wanted["sort"] == "number":
        found.sort(key=lambda known: known[0].number)
    return [_compared(case, pair, parts) for case, pair in found[start : start + limit]], len(found)


def _run(source: Source, name: str, org_url: str = "") -> tuple[str, Run]:
    """Return the address of the org that has a run, empty for the project's own, and the run.

    Admins may name it `latest` or `previous`; without an address, the project's own org comes first.
    """
    run_id = run_id_of(source.project, name) if source.user.is_admin else name
    urls = [org_url] if org_url else ["", *(run.org_url for run in RemoteRuns(source.database).find(run_id))]
    listings = (find_listed(source.database, run_id, org_url=url, user=source.user) for url in urls)
    listed = next((run for run in listings if run), None)
    if listed is None:
        raise NotFound(f"run {name!r} cannot be found")
    if listed.done > limits.MAX_VIEW_COMPARED:
        raise UsageError(
            f"run {run_id} has {listed.done:,} results, too many for a page",
            actions=[f"Compare it in a terminal: evalmeta test compare {run_id}"],
        )
    return listed.org_url, find_run(source.project, listed.id, org_url=listed.org_url)


def _before(source: Source, after: Run, before_id: str, org_url: str) -> tuple[str, Run | str]:
    """Return the earlier run with its org like `_run`, or the path of a baseline in the project."""
    if not before_id:
        previous = previous_run(source.project, after)
        try:
            return _run(source, previous.id)
        except NotFound:
            raise NotFound(f"you have no earlier run of {after.definition}", actions=["Choose a run."]) from None
    if find_listed(source.database, before_id, user=source.user) is None and _baseline(source, before_id) is not None:
        return "", before_id
    return _run(source, before_id, org_url)


def _baseline(source: Source, name: str) -> Path | None:
    """Return the baseline file with a name; only admins see files, and only those of the project."""
    path = (source.project.root / name).resolve()
    if not source.user.is_admin or path.suffix != ".json" or not path.is_relative_to(source.project.root.resolve()):
        return None
    return path if path.is_file() else None


def _compare(source: Source, before: Run | str, after: Run) -> Comparison:
    project = source.project if source.user.is_admin else None
    if not isinstance(before, str):
        # With the runs that asked suspect cases again, everything is known that decides.
        again = list_runs(source.database, RunFilter(confirms=after.id)) if project else []
        runs = tuple((run.id, run.status, run.ended, len(run.cases)) for run in (before, after))
        key = (source.project.store, project is None, runs, tuple((run.id, run.status, run.done) for run in again))
        return _KEPT.find(key, lambda: compare_runs(before, after, project=project))
    path = _baseline(source, before)
    baseline = open_baseline(source.project, path) if path else None
    tests = compare_with(baseline, [after], project=project).tests if baseline else ()
    if not tests:
        raise NotFound(f"the baseline {before} has no results of {after.definition}")
    return tests[0]


def _is_shown(case: CaseComparison, standing: str) -> bool:
    if standing:
        return case.standing.value == standing
    if case.standing is Standing.ERROR and case.before and case.before.has_mostly_errors:
        return not (case.after and case.after.has_mostly_errors)
    return case.standing not in {Standing.STILL_PASSING, Standing.STILL_FAILING, Standing.UNDECIDED}


def _matches(case: CaseComparison, pair: ResultPair, parts: Collection[str], wanted: Mapping[str, str]) -> bool:
    text, expectation, fault = wanted["text"].casefold(), wanted["expectation"], wanted["fault"]
    known = [result for result in pair if result is not None]
    if expectation and not any(_is_changed(name, pair) for name in _names(known, expectation)):
        return False
    if fault and _fault(case, pair, parts) != fault:
        return False
    if not any(has_tag(result, wanted["tag"]) for result in known):
        return False
    return not text or any(text in shown.casefold() for result in known for shown in texts_of(result))


def _tags(source: Source, after: Run, org_url: str) -> list[str]:
    """Return the tags that cases of the later run have, as its own page lists them."""
    listed = find_listed(source.database, after.id, org_url=org_url, user=source.user)
    digest = digest_of(source, listed, max_cases=limits.MAX_LIVE_CASES) if listed else None
    return digest.get("tags", []) if digest else []


def _untagged(source: Source, before: Run | None, after: Run) -> int:
    return len(runs_without_tags(source.database, [run.id for run in (before, after) if run]))


def _names(results: Iterable[CaseResult], wanted: str) -> set[str]:
    return {named.name for result in results for named in results_called(named_results(result), wanted)}


def _is_changed(name: str, pair: ResultPair) -> bool:
    """Return whether a result of this name is another one than before; a case that is only in one run has changed."""
    if pair.before is None or pair.after is None:
        return True
    turns = turn_differences(pair.before, pair.after)
    return any(known.has_changed for turn in turns for known in turn.expectations if known.name == name)


def _score_change(case: CaseComparison, pair: ResultPair) -> float:
    """Return how much the scores of a case differ; over its iterations, its pass rate can differ more."""
    rates = [0.0 if side is None else side.pass_rate or 0.0 for side in (case.before, case.after)]
    scores = score_change(pair.before, pair.after) if pair.before and pair.after else 0.0
    return max(abs(rates[0] - rates[1]), scores)


def _fault(case: CaseComparison, pair: ResultPair, parts: Collection[str]) -> str:
    """Return whose fault it is that a case became worse; empty if it did not, or that is not known."""
    is_worse = case.standing in {Standing.BROKEN, *SUSPECTS} or case.is_lost
    return fault_of(case, pair.before, pair.after, parts)[0].value if is_worse and pair.after else ""


def _compared(case: CaseComparison, pair: ResultPair, parts: Collection[str]) -> ComparedCase:
    before, after = pair
    p_value = "" if case.p_value is None else p_text(case.p_value)
    why = tuple(reasons(before, after)) if after else ()
    turns = turn_differences(before, after) if before and after else ()
    return ComparedCase(case, p_value, _fault(case, pair, parts), before, after, why, turns)
