"""The page of several runs side by side: chosen ones, or those of a command with several agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run, name_of
from evalmeta.api.runs.finished import FinishedRun
from evalmeta.api.runs.matrix import side_by_side
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.aggregation import named_results, results_called
from evalmeta.model.matrix import AgentRun, Matrix, MatrixCase, labels_of
from evalmeta.model.run import Verdict
from evalmeta.report.matrix import agent_table, pair_texts
from evalmeta.store.case_lists import texts_of
from evalmeta.store.case_states import results_of_cases
from evalmeta.store.run_lists import ListedRun, RunFilter, find_listed, run_page
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.pages import Page, Query, Source, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.model.statistics import CaseCounts

_KEPT: Final[Memory[Matrix]] = Memory(limits.KEPT_COMPARISONS)
_FEWEST: Final = 2
_CHOOSE: Final = "Choose at least two runs of the same test on the page Runs."
# How cases are sorted, by the word in the address.
_SORTED: Final = {"": "largest difference first", "number": "by number"}


class MatrixEntry(NamedTuple):
    """A case in one column: its run, its counts, and its first result that did not pass, or else its first."""

    run: ListedRun
    counts: CaseCounts
    result: CaseResult | None


class MatrixRow(NamedTuple):
    """A case, and its entry in each column; None where it did not run."""

    case: MatrixCase
    entries: Sequence[MatrixEntry | None]


def is_matrix(runs: Sequence[ListedRun]) -> bool:
    """Return whether the runs of a command are those of several agents."""
    return any(labels_of(_agent_runs(_first_runs(runs))))


def matrix_page(source: Source, query: Query) -> Page:
    """Return the page of the runs that `run` names, separated by commas, or of those of a `suite`."""
    runs = _runs(source, query)
    labels = _labels(runs)
    matrix = _matrix(source, runs, labels)
    columns = [[run for run, label in zip(runs, labels, strict=True) if label == cell.label] for cell in matrix.cells]
    wanted = {name: text_of(query, name) for name in ("show", "text", "expectation", "sort")}
    rows, left = _rows(source, matrix, columns, wanted)
    head, *agents = agent_table(matrix)
    values = {
        "address": {name: query[name] for name in ("run", "suite") if query.get(name)},
        "cells": matrix.cells,
        "columns": columns,
        "head": head,
        "agents": agents,
        "pairs": pair_texts(matrix),
        "differing": len(matrix.differing),
        "total": len(matrix.cases),
        "wanted": wanted,
        "sorted": _SORTED,
        "rows": rows,
        "left": left,
    }
    words = [word for run in runs for word in ("--job-id", run.id)]
    command = " ".join(["evalmeta", "test", "results", *words]) if all(not run.org_url for run in runs) else ""
    return Page("matrix.html.j2", f"{len(columns)} side by side", values, command=command)


def _runs(source: Source, query: Query) -> list[ListedRun]:
    if suite := text_of(query, "suite"):
        wanted = RunFilter(suite=suite, user=source.user)
        # In the order of the agents; their runs may start in another one.
        runs = sorted(
            _first_runs(run_page(source.database, wanted, limit=limits.MAX_SUITE_RUNS).runs), key=lambda run: run.id
        )
    else:
        names = dict.fromkeys(name for name in query.get("run", "").split(",") if name)
        listed = [_run(source, name) for name in [*names][: limits.MAX_VIEW_COLUMNS + 1]]
        runs = sorted(listed, key=lambda run: (run.started, run.id))
    if len(runs) < _FEWEST:
        raise NotFound("fewer than two runs can be shown side by side", actions=[_CHOOSE])
    if sum(run.done for run in runs) > limits.MAX_VIEW_MATRIX_RESULTS:
        raise UsageError(
            f"the runs have more than {limits.MAX_VIEW_MATRIX_RESULTS:,} results, too many for a page",
            actions=["Choose fewer runs, or compare two of them: evalmeta test compare RUN RUN"],
        )
    return runs


def _run(source: Source, name: str) -> ListedRun:
    """Return the run with an id, which may be followed by `@` and the address of its org."""
    run_id, _, org_url = name.partition("@")
    run = find_listed(source.database, run_id, org_url=org_url, user=source.user)
    if run is None:
        raise NotFound(f"run {run_id[:100]!r} cannot be found", actions=[_CHOOSE])
    return run


def _first_runs(runs: Iterable[ListedRun]) -> list[ListedRun]:
    """Return runs of a command without those that asked suspect cases again or judged answers again."""
    return [run for run in runs if not run.confirms and run.answers_of is None]


def _agent_runs(runs: Iterable[ListedRun]) -> list[AgentRun]:
    return [AgentRun.of(run.suite, run.id, run.definition, run.subject) for run in runs]


def _labels(runs: Sequence[ListedRun]) -> list[str]:
    """Return the label of each run: its agent if that tells it from the others of its test, else its id."""
    agents = [run._replace(suite="") for run in _agent_runs(runs)]
    labels = labels_of(agents)
    if not any(labels):
        labels = [run.id if not run.org_url else f"{run.id} in {run.org_name}" for run in runs]
    if len(set(labels)) > limits.MAX_VIEW_COLUMNS:
        raise UsageError(f"a page shows at most {limits.MAX_VIEW_COLUMNS} runs side by side", actions=[_CHOOSE])
    tests = [run.test for run in agents]
    if len(set(tests)) == len(tests):
        raise UsageError("the chosen runs are all of different tests", actions=[_CHOOSE])
    return labels


def _matrix(source: Source, runs: Sequence[ListedRun], labels: Sequence[str]) -> Matrix:
    states = tuple((run.org_url, run.id, run.status, run.ended, run.done) for run in runs)

    def compare() -> Matrix:
        read = (find_run(source.project, run.id, org_url=run.org_url) for run in runs)
        return side_by_side([FinishedRun.of(run) for run in read], labels)

    return _KEPT.find((source.project.store, states), compare)


def _rows(
    source: Source, matrix: Matrix, columns: Sequence[Sequence[ListedRun]], wanted: Mapping[str, str]
) -> tuple[list[MatrixRow], int]:
    """Return the rows to show, and how many more there are; only filters read the results of all."""
    cases = [*(matrix.cases if wanted["show"] == "all" else matrix.differing)]
    if wanted["sort"] != "number":
        cases.sort(key=lambda case: -case.spread)
    if not (wanted["text"] or wanted["expectation"]):
        shown = cases[: limits.VIEW_ROWS]
        return _with_results(source, shown, columns), len(cases) - len(shown)
    rows = [row for row in _with_results(source, cases, columns) if _matches(row, wanted)]
    return rows[: limits.VIEW_ROWS], max(0, len(rows) - limits.VIEW_ROWS)


def _with_results(
    source: Source, cases: Sequence[MatrixCase], columns: Sequence[Sequence[ListedRun]]
) -> list[MatrixRow]:
    entries: list[dict[int, MatrixEntry]] = [{} for _ in cases]
    for column, runs in enumerate(columns):
        by_test = {name_of(run): run for run in runs}
        places: dict[str, list[tuple[int, CaseCounts]]] = {}
        for place, case in enumerate(cases):
            if counts := case.counts[column]:
                places.setdefault(case.test, []).append((place, counts))
        for test, known in places.items():
            run = by_test[test]
            results = _results(source, run, {counts.number for _, counts in known})
            for place, counts in known:
                entries[place][column] = MatrixEntry(run, counts, results.get(counts.number))
    return [
        MatrixRow(case, [known.get(column) for column in range(len(columns))])
        for case, known in zip(cases, entries, strict=True)
    ]


def _results(source: Source, run: ListedRun, numbers: Collection[int]) -> dict[int, CaseResult]:
    """Return the first result of each case that did not pass, or else the first."""
    results: dict[int, CaseResult] = {}
    for case in _stored(source, run, numbers):
        known = results.setdefault(case.number, case)
        if known.verdict is Verdict.PASS and case.verdict is not Verdict.PASS:
            results[case.number] = case
    return results


def _stored(source: Source, run: ListedRun, numbers: Collection[int]) -> Iterator[CaseResult]:
    if not run.org_url:
        return results_of_cases(source.database, run.id, numbers)
    remote = find_run(source.project, run.id, org_url=run.org_url)
    return (case for case in remote.cases if case.number in numbers)


def _matches(row: MatrixRow, wanted: Mapping[str, str]) -> bool:
    results = [entry.result for entry in row.entries if entry and entry.result]
    if expectation := wanted["expectation"]:
        verdicts = [_verdicts(result, expectation) for result in results]
        if not any(verdicts) or all(known == verdicts[0] for known in verdicts):
            return False
    text = wanted["text"].casefold()
    return not text or any(text in shown.casefold() for result in results for shown in texts_of(result))


def _verdicts(case: CaseResult, expectation: str) -> list[tuple[str, Verdict]]:
    return [(named.name, named.result.verdict) for named in results_called(named_results(case), expectation)]
