"""The agents of a matrix side by side: as lines for people, as cells of tables, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.spending import costs_json, dollars_text, total_of
from evalmeta.report.summary import milliseconds
from evalmeta.report.text import attributes_json, count, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.matrix import Cell, Matrix, PairOfCells
    from evalmeta.model.statistics import CaseCounts, Latency


_HEAD: Final = (
    *("agent", "pass rate", "passed", "failed", "errors", "undecided"),
    *("latency p50", "p95", "first token p50", "tokens in", "tokens out", "cost"),
)
_LABEL_CHARS: Final = 40
_CASE_CHARS: Final = 80
_SHOWN_CASES: Final = 30
_UNKNOWN: Final = "-"


def matrix_lines(matrix: Matrix) -> Iterator[str]:
    """Yield a table of the agents, the difference of each pair, and the first cases in which they differ."""
    yield f"{count(len(matrix.cells), 'agent')} side by side"
    yield from _aligned(agent_table(matrix))
    yield from (f"  {text}" for text in pair_texts(matrix))
    yield f"  {differing_text(matrix)}"
    if matrix.differing:
        yield from _aligned(case_table(matrix))
    if more := more_cases(matrix):
        yield f"  {more}"


def agent_table(matrix: Matrix) -> list[tuple[str, ...]]:
    """Return the titles and a row for each agent, without columns that are unknown for all."""
    columns = zip(_HEAD, *map(_cells, matrix.cells), strict=True)
    return [*zip(*(column for column in columns if {*column[1:]} != {_UNKNOWN}), strict=True)]


def _cells(cell: Cell) -> list[str]:
    tokens = (cell.tokens.input, cell.tokens.output) if cell.tokens else (None, None)
    return [
        _label(cell.label),
        _UNKNOWN if cell.pass_rate is None else percent(cell.pass_rate),
        *(f"{number:,}" for number in (cell.passed, cell.failed, cell.errors, cell.undecided)),
        *(_median(cell.latency), milliseconds(cell.latency.p95) if cell.latency else _UNKNOWN),
        _median(cell.first_token),
        *(_UNKNOWN if number is None else f"{number:,}" for number in tokens),
        _cost(cell),
    ]


def _cost(cell: Cell) -> str:
    """Return what the agent cost; at least that if not all of its replies have a price."""
    spent = total_of(cell.spent, "agent")
    if spent.replies == spent.unknown:
        return _UNKNOWN
    return f"{'at least ' if spent.unknown else ''}{dollars_text(spent.amount)}"


def _median(latency: Latency | None) -> str:
    return milliseconds(latency.p50) if latency else _UNKNOWN


def _label(label: str) -> str:
    return one_line(label, chars=_LABEL_CHARS)


def pair_texts(matrix: Matrix) -> list[str]:
    """Return the difference of each pair, such as `b against a: 75 % against 50 % of 4 cases: no significant ...`."""
    return [_pair_text(pair, pairs=len(matrix.pairs)) for pair in matrix.pairs]


def _pair_text(pair: PairOfCells, *, pairs: int) -> str:
    one, other = map(_label, pair.labels)
    if pair.rates is None or pair.p_value is None:
        return f"{other} against {one}: no case was decided by both"
    rates = f"{percent(pair.rates[1])} against {percent(pair.rates[0])} of {count(pair.cases, 'case')}"
    what = "a significant difference" if pair.is_significant else "no significant difference"
    corrected = f", corrected for {pairs} pairs" if pairs > 1 else ""
    return f"{other} against {one}: {rates}: {what} (p = {pair.p_value:.2g}{corrected})"


def differing_text(matrix: Matrix) -> str:
    """Return how many cases differ, and what their table shows."""
    number = len(matrix.differing)
    if not number:
        return "No case differs."
    return f"{count(number, 'case')} {'differs' if number == 1 else 'differ'}; passed of decided answers:"


def case_table(matrix: Matrix) -> list[list[str]]:
    """Return the titles and rows of the first cases in which agents differ, with what each agent passed."""
    rows = [
        [one_line(f"{case.test} case {case.number}: {case.utterance}", chars=_CASE_CHARS), *map(_counts, case.counts)]
        for case in matrix.differing[:_SHOWN_CASES]
    ]
    return [["case", *(_label(cell.label) for cell in matrix.cells)], *rows]


def more_cases(matrix: Matrix) -> str:
    """Return how many cases `case_table` leaves out; empty if it has all."""
    left = len(matrix.differing) - _SHOWN_CASES
    return f"... and {count(left, 'more case')}; the format json has all" if left > 0 else ""


def _counts(counts: CaseCounts | None) -> str:
    if counts is None:
        return "not run"
    if counts.decided:
        return f"{counts.passed}/{counts.decided}"
    return "error" if counts.errors else "undecided"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, whose first column is a text and whose others are numbers."""
    first_width, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [f"{text:>{width}}" for text, width in zip(others, widths, strict=True)]
        yield f"  {first:<{first_width}}  {'  '.join(cells)}".rstrip()


def matrix_json(matrix: Matrix) -> JsonObject:
    """Return the agents, the pairs and all cases that differ; unknown numbers are null."""
    return {
        "agents": [_cell_json(cell) for cell in matrix.cells],
        "pairs": [
            {
                "agents": pair.labels,
                "cases": pair.cases,
                "passRates": pair.rates,
                "pValue": pair.p_value,
                "isSignificant": pair.is_significant,
            }
            for pair in matrix.pairs
        ],
        "differingCases": [
            {
                "definition": case.test,
                "number": case.number,
                "utterance": case.utterance,
                "agents": [
                    None if counts is None else attributes_json(counts, "passed", "failed", "errors", "undecided")
                    for counts in case.counts
                ],
            }
            for case in matrix.differing
        ],
    }


def _cell_json(cell: Cell) -> JsonObject:
    return {
        **attributes_json(cell, "label", "runs", "passed", "failed", "errors", "undecided", "pass_rate"),
        "latencyMilliseconds": cell.latency and cell.latency._asdict(),
        "firstTokenMilliseconds": cell.first_token and cell.first_token._asdict(),
        "tokens": attributes_json(cell.tokens, "input", "output") if cell.tokens else None,
        "cost": costs_json(cell.spent),
    }
