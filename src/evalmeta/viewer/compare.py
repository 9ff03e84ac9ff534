"""The page that compares two runs, or a run with a baseline: what was fixed, what broke, and how the answers differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.baselines import open_baseline
from evalmeta.api.runs.comparisons import compare_runs, compare_with, find_run, previous_run
from evalmeta.api.runs.finding import run_id_of
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.comparison import CaseComparison, Comparison, Standing
from evalmeta.model.run import CaseResult, Run, Verdict
from evalmeta.report.comparison import change_texts, comparison_lines, p_text, verdict
from evalmeta.report.details import exchanges
from evalmeta.store.case_lists import case_history
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import RunFilter, find_listed, run_page
from evalmeta.viewer.pages import Page, Query, Source, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.statistics import CaseCounts

_ORDER: Final = (
    *(Standing.BROKEN, Standing.ERROR, Standing.SUSPECT, Standing.UNJUDGED, Standing.FLAKY_NOW),
    *(Standing.FIXED, Standing.MAYBE_FIXED, Standing.BACK),
    *(Standing.NEW, Standing.GONE, Standing.FLAKY, Standing.STILL_FAILING, Standing.UNDECIDED, Standing.STILL_PASSING),
)
_WORSE: Final = (Standing.BROKEN, Standing.ERROR)
_BETTER: Final = (Standing.FIXED, Standing.MAYBE_FIXED, Standing.BACK)


class ComparedCase(NamedTuple):
    """A case of a comparison with its answers; empty if they are not known."""

    comparison: CaseComparison
    p_value: str
    before: str
    after: str


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
    standing = text_of(query, "standing")
    shown = [case for case in comparison.cases if _is_shown(case, standing)]
    shown.sort(key=lambda case: (_ORDER.index(case.standing), case.number))
    known_before = None if isinstance(before, str) else before
    values = {
        "recent": recent,
        "chosen": {"after": after.id, "before": before if isinstance(before, str) else before.id},
        "orgs": {"org": after_org, "before_org": before_org},
        "comparison": comparison,
        "verdict": verdict(comparison),
        "changes": list(change_texts(comparison.changes)),
        "lines": [line.text.strip() for line in comparison_lines(comparison)][1:2],
        "remarks": [line.text.strip() for line in comparison_lines(comparison) if line.style == "plain"][1:],
        "before": known_before,
        "after": after,
        "standing": standing,
        "standings": [(group, len(comparison.of(group))) for group in _ORDER if comparison.of(group)],
        "colours": {group: "failure" if group in _WORSE else "pass" if group in _BETTER else "" for group in Standing},
        "cases": [
            _compared(source, case, (before_org, known_before), (after_org, after))
            for case in shown[: limits.VIEW_ROWS]
        ],
        "left": max(0, len(shown) - limits.VIEW_ROWS),
    }
    command = f"evalmeta test compare {values['chosen']['before']} {after.id}"  # type: ignore[index] # a dictionary
    return Page("compare.html.j2", f"Compare {after.definition}", values, command=command)


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
        return compare_runs(before, after, project=project)
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


def _compared(
    source: Source, case: CaseComparison, before: tuple[str, Run | None], after: tuple[str, Run]
) -> ComparedCase:
    p_value = "" if case.p_value is None else p_text(case.p_value)
    is_better = case.standing in _BETTER
    earlier = _answer(source, *before, case.before, passed=not is_better)
    return ComparedCase(case, p_value, earlier, _answer(source, *after, case.after, passed=is_better))


def _answer(source: Source, org_url: str, run: Run | None, case: CaseCounts | None, *, passed: bool) -> str:
    """Return the answers of the first iteration that passed (or did not), or else of the first; empty if unknown.

    A case may have had another number before.
    """
    if run is None or case is None:
        return ""
    number = case.number
    if org_url:
        results = [result for result in run.cases if result.number == number]
    else:
        results = [listed_case.case for listed_case in case_history(source.database, [run.id], number)]
    wanted = (result for result in results if (result.verdict is Verdict.PASS) == passed)
    return next((_text(result) for result in (*wanted, *results)), "")


def _text(case: CaseResult) -> str:
    return "\n\n".join(
        exchange.generated.outcome if exchange.generated else case.error or "" for exchange in exchanges(case)
    )
