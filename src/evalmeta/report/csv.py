"""Runs as CSV, with a row for each result of each case."""

from __future__ import annotations

import csv
import io
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta.model.json_value import json_text
from evalmeta.model.spending import ROLES, total_of, usd_text
from evalmeta.report.details import Exchange, exchange_of, exchanges
from evalmeta.report.results import doubt_codes, label_of
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.model.spending import Role
    from evalmeta.report.report import Report


COLUMNS: Final = (
    "definition", "run", "iteration", "case", "utterance", "answer", "case_verdict", "expectation", "label", "verdict",
    "score", "expected", "actual", "explanation", "error", "rater", "latency_ms", "input_tokens", "output_tokens",
    "turn", "threshold", "case_label", "org_verdict", "local_verdict", "doubts", "partly_judged", "quarantined",
    "agent_usd", "rater_usd", "first_token_ms", "metadata",
)  # fmt: skip
# OWASP, "CSV Injection": spreadsheets read cells that begin with one of these as formulas. The apostrophe is
# included so that removing one apostrophe always restores the text.
_FORMULA: Final = re.compile("['=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
# Excel, "Specifications and limits": 32,767 characters in a cell; more would flow into other rows.
_CELL_CHARS: Final = 32_767


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield CSV as defined by RFC 4180, with a header line and CR LF line ends; an empty cell means unknown, not 0.

    A case without results has one row, with its verdict. In a case of several turns, the utterance, the answer and
    its cost are those of the turn that the row's result judges.
    """
    yield lines([COLUMNS])
    for report in reports:
        for case in report.run.cases:
            yield lines(_rows(report, case))


def lines(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as the lines of a table."""
    sheet = io.StringIO()
    csv.writer(sheet, lineterminator="\r\n").writerows(rows)
    return sheet.getvalue()


def _rows(report: Report, case: CaseResult) -> Iterator[list[str]]:
    run, verdict = report.run, report.verdict_of(case)
    start = [safe_cell(run.definition), safe_cell(run.id), f"{case.iteration}", f"{case.number}"]
    label, doubts = safe_cell(case.label), " ".join(doubt_codes(run, case))
    flags = ["true" if flag else "false" for flag in (report.is_partly_judged(case), case.is_quarantined)]
    costs = [*map(partial(_dollars, case), ROLES)]
    metadata = safe_cell(json_text(case.metadata)) if case.metadata else ""
    if not case.results:
        last = exchanges(case)[-1]
        broken = ["", "", verdict, "", "", "", "", safe_cell(case.error), ""]
        end = ["", "", label, "", "", doubts, *flags, *costs, _first_token(last), metadata]
        yield [*start, *_texts(last), verdict, *broken, *_cost(last), *end]
    for result in case.results:
        exchange = exchange_of(case, result)
        both, turn = result.verdicts, f"{result.turn}" if result.turn > 0 else ""
        checked = [both.org, both.local, doubts, *flags] if both else ["", "", doubts, *flags]
        end = [turn, _number(result.threshold), label, *checked, *costs, _first_token(exchange), metadata]
        yield [*start, *_texts(exchange), verdict, *_judgement(result, case), *_cost(exchange), *end]
        # Once for each case, so that the cells of a column can be added.
        costs = ["", ""]


def _texts(exchange: Exchange) -> list[str]:
    outcome = exchange.generated.outcome if exchange.generated else ""
    return [safe_cell(exchange.utterance), safe_cell(outcome)]


def _judgement(result: TestResult, case: CaseResult) -> list[str]:
    texts = (result.expected, result.actual, result.explanation, result.error or case.error, result.rater)
    label, word = label_of(result.name, result.label), "MEASURED" if result.is_measured else result.verdict
    return [safe_cell(result.name), safe_cell(label), word, _number(result.score), *map(safe_cell, texts)]


def _cost(exchange: Exchange) -> list[str]:
    if exchange.generated is None:
        return ["", "", ""]
    tokens = exchange.generated.tokens
    counts = (tokens.input, tokens.output) if tokens else (None, None)
    return [_number(number) for number in (exchange.generated.latency_ms, *counts)]


def _dollars(case: CaseResult, role: Role) -> str:
    """Return what a role cost in a case, exactly; empty if that is not known of all its replies."""
    total = total_of(case.spent, role)
    return usd_text(total.amount) if total.is_known and not total.unknown else ""


def _first_token(exchange: Exchange) -> str:
    return _number(exchange.generated.first_token_ms if exchange.generated else None)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"


def safe_cell(text: str | None) -> str:
    """Return a text as a cell that no spreadsheet reads as a formula, or cuts."""
    cell = clean(text or "")
    cell = f"'{cell}" if _FORMULA.match(cell) else cell
    return cell if len(cell) <= _CELL_CHARS else f"{cell[: _CELL_CHARS - 1]}…"
