"""Sessions: traces with the same session id, which scorers of whole sessions judge with their first answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.agent_scorer import session_view
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import EarlierTurn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.systems.mlflow.rows import ReadRows, ScoredRow

SESSION: Final = "mlflow.trace.session"


def row_sessions(rows: Mapping[int, ScoredRow]) -> dict[int, list[int]]:
    """Return the numbers of the rows of each session, the oldest first, by the first; other rows are left out."""
    by_id = dict[str, list[int]]()
    for number, row in rows.items():
        metadata = getattr(getattr(row.trace, "info", None), "trace_metadata", None) or {}
        if session_id := metadata.get(SESSION):
            by_id.setdefault(str(session_id), []).append(number)
    ordered = [sorted(numbers, key=lambda number: _time(rows[number])) for numbers in by_id.values()]
    return {numbers[0]: numbers for numbers in ordered}


def _time(row: ScoredRow) -> int:
    time = getattr(getattr(row.trace, "info", None), "request_time", 0)
    return time if isinstance(time, int) else 0


def session_of(read: ReadRows, numbers: Sequence[int]) -> JsonObject:
    """Return the conversation of the rows with these numbers, as custom scorers read it."""
    by_number = {case.number: case for case in read.cases}
    cases = [by_number[number] for number in sorted(numbers, key=lambda number: _time(read.rows[number]))]
    turns = [case.turns[0] for case in cases]
    said = [EarlierTurn(turn.utterance, turn.recorded or GeneratedData("")) for turn in turns]
    return session_view(cases[0].history, said[:-1], said[-1].utterance, said[-1].generated)
