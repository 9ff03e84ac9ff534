"""The page that compares two runs, or a run with a baseline: what was fixed, what broke, and how the answers differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.baselines import open_baseline
from evalmeta.api.runs.comparisons import compare_runs, compare_with, find_run, previous_run
from evalmeta.api.runs.finding import run_id_of
from evalmeta.api.runs.result_pairs import BETTER
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.changes import Fault
from evalmeta.model.comparison import Comparison, Standing
from evalmeta.report.comparison import WORST_FIRST, change_texts, rates_text, remark_lines, verdict
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import RunFilter, find_listed, list_runs, run_page, runs_without_tags
from evalmeta.viewer.compared_cases import (
    COMPARED_COLUMNS,
    ORDERS,
    ComparedCase,
    cases_of_comparison,
    compared_layout,
    wanted_in,
)
from evalmeta.viewer.digests import digest_of
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.pages import Page, Query, Source, number_of, text_of
from evalmeta.viewer.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.model.run import Run

_WORSE: Final = (Standing.BROKEN, Standing.ERROR)
_KEPT: Final[Memory[Comparison]] = Memory(limits.KEPT_COMPARISONS)


def compare_page(source: Source, query: Query) -> Page:
    """Return the comparison of two runs; without a choice, the form that makes it."""
    recent = run_page(source.database, RunFilter(user=source.user), limit=limits.VIEW_ROWS).runs
    after_id, before_id = text_of(query, "after"), text_of(query, "before")
    chosen = {"after": after_id, "before": before_id}
    if not after_id:
        return Page("compare.html.j2", "Compare", {"recent": recent, "chosen": chosen, "comparison": None})
    compared = _compared_runs(source, query)
    after, known_before, orgs = compared.after, compared.known_before, compared.orgs
    comparison, wanted = _compare(source, compared.before, after), wanted_in(query)
    cases, total = cases_of_comparison(comparison, known_before, after, query, 0, limits.VIEW_ROWS)
    values = {
        "recent": recent,
        "chosen": {"after": after.id, "before": compared.before_name},
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
        "sorted": ORDERS,
        "cases": cases,
        "left": max(0, total - limits.VIEW_ROWS),
    }
    command = f"evalmeta test compare {compared.before_name} {after.id}"
    return Page("compare.html.j2", f"Compare {after.definition}", values, command=command)


def compared_page(source: Source, query: Query) -> Page:
    """Return the cases of a comparison as a table, as `compare_page` filters them."""
    compared = _compared_runs(source, query)
    after = compared.after
    cases, layout = compared_cases(source, query, limits.VIEW_ROWS), compared_layout(query)
    values = {
        "cases": cases,
        "back": "compare",
        "here": {**layout.given, **({"sort": layout.sort} if layout.sort in layout.orders else {})},
        "is_first": not text_of(query, "after_case"),
        "before": compared.known_before,
        "after": after,
        "orgs": compared.orgs,
    }
    command = f"evalmeta test compare {compared.before_name} {after.id}"
    return Page("changed.html.j2", f"Compared cases of {after.definition}", values, command=command)


def compared_cases(source: Source, query: Query, limit: int) -> Table[ComparedCase]:
    """Return a part of the cases of a comparison, as `compare_page` filters them, in the order of a table."""
    compared = _compared_runs(source, query)
    start = number_of(query, "after_case", otherwise=0)
    comparison = _compare(source, compared.before, compared.after)
    cases, total = cases_of_comparison(comparison, compared.known_before, compared.after, query, start, limit)
    place = str(start + limit) if start + limit < total else ""
    return Table(COMPARED_COLUMNS, cases, layout=compared_layout(query), after=place)


class _ComparedRuns(NamedTuple):
    """Two runs that are compared, the first or the path of a baseline, with the addresses of their orgs."""

    before: Run | str
    after: Run
    orgs: Mapping[str, str]

    @property
    def known_before(self) -> Run | None:
        """Return the earlier run; None for a baseline."""
        return None if isinstance(self.before, str) else self.before

    @property
    def before_name(self) -> str:
        """Return the id of the earlier run, or the path of the baseline."""
        return self.before if isinstance(self.before, str) else self.before.id


def _compared_runs(source: Source, query: Query) -> _ComparedRuns:
    after_org, after = _run(source, text_of(query, "after"), text_of(query, "org"))
    before_org, before = _before(source, after, text_of(query, "before"), text_of(query, "before_org"))
    return _ComparedRuns(before, after, {"org": after_org, "before_org": before_org})


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


def _tags(source: Source, after: Run, org_url: str) -> list[str]:
    """Return the tags that cases of the later run have, as its own page lists them."""
    listed = find_listed(source.database, after.id, org_url=org_url, user=source.user)
    digest = digest_of(source, listed, max_cases=limits.MAX_LIVE_CASES) if listed else None
    return digest.get("tags", []) if digest else []


def _untagged(source: Source, before: Run | None, after: Run) -> int:
    return len(runs_without_tags(source.database, [run.id for run in (before, after) if run]))
