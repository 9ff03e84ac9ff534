"""ADK's deprecated arrays, which came before eval sets.

Sources: ADK-TS, "Testing Agents", Legacy Test Format; google-adk 2.13, local_eval_sets_manager.py and
agent_evaluator.py. In Python the rows of a file are the turns of one case; in TypeScript each row is a case.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.formats.adk.cases import AdkCase, AdkRecord, AdkTurn, Call, Reply, both, read_session, report_repeated_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.formats.json_source import JsonFile
    from evalmeta.model.json_value import JsonValue


Dialect = Literal["python", "typescript"]

_TOOLS: Final[dict[Dialect, tuple[str, str]]] = {"python": ("tool_name", "tool_input"), "typescript": ("name", "args")}


class Legacy(NamedTuple):
    """The cases of an array.

    Attributes:
        lines: the line of each case.
        dialect: how it was read.
        is_grouped: whether each item has rows of its own.
        is_guess: whether the dialect cannot be detected, and another one would return other cases.
    """

    cases: list[AdkCase]
    lines: list[int]
    dialect: Dialect
    is_grouped: bool = False
    is_guess: bool = False


def read_legacy(file: JsonFile, diagnostics: Diagnostics, *, dialect: Dialect | None) -> Legacy:
    """Read an array of rows, or of groups of rows `{name, data, initial_session}`, each of which is a case.

    Args:
        file: the file; it holds a list.
        diagnostics: where problems are added.
        dialect: what rows mean; None detects it from the keys of the tools, and is Python where there are none.
    """
    items = file.value if isinstance(file.value, list) else []
    lines = file.lines_of(())
    if not items:
        message = "the array is empty: add at least one row"
        diagnostics.error("adk-empty", message, line=file.first_line, column=1)
        return Legacy([], [], "python")
    is_grouped = any(isinstance(each, dict) and "data" in each for each in items)
    called = "a case" if is_grouped else "a row"
    records = [AdkRecord(file, (place,), each, diagnostics, called=called) for place, each in enumerate(items)]
    if is_grouped:
        cases = [_group(each) for each in records]
        report_repeated_ids(cases, diagnostics, lines)
        return Legacy(cases, lines, "python", is_grouped=True)
    used = _dialects(items)
    if dialect is None and len(used) > 1:
        message = "some tools of the array have 'tool_name', and some have 'name': rows may be turns or cases"
        hint = 'Say which: [adk] dialect = "python" in evalmeta.toml makes them turns, "typescript" cases.'
        diagnostics.error("adk-dialect", message, line=file.first_line, column=1, hint=hint)
    chosen: Dialect = dialect or ("typescript" if used == {"typescript"} else "python")
    turns = [_row(each) for each in records]
    is_guess = dialect is None and not used and len(turns) > 1
    if chosen == "typescript":
        return Legacy([AdkCase(f"eval-{place}", (turn,)) for place, turn in enumerate(turns)], lines, chosen)
    return Legacy([AdkCase(PurePath(file.label).name, tuple(turns))], lines[:1], chosen, is_guess=is_guess)


def _dialects(items: Sequence[JsonValue]) -> set[Dialect]:
    """Return the dialects whose keys the tools of the rows have."""
    rows = [row for row in items if isinstance(row, dict)]
    lists = [row.get(key) for row in rows for key in both("expectedToolUse")]
    tools = [tool for each in lists if isinstance(each, list) for tool in each if isinstance(tool, dict)]
    return {dialect for dialect, keys in _TOOLS.items() if any(key in tool for tool in tools for key in keys)}


def _group(record: AdkRecord) -> AdkCase:
    record.check_keys("name", "data", "initialSession")
    name = record.required_text("name")
    if not record.items("data"):
        record.error("adk-empty", f"case {name!r} has no rows in 'data': add at least one row")
    turns = tuple(map(_row, record.records("data", called="a row")))
    return AdkCase(name, turns, read_session(record.record("initialSession", called="the initial session")))


def _row(record: AdkRecord) -> AdkTurn:
    record.check_keys("query", "reference", "expectedToolUse", "expectedIntermediateAgentResponses")
    utterance = record.required_text("query")
    if record.has("query") and not utterance:
        record.error("adk-empty", "the query of a row is empty", "query")
    tools = record.records("expectedToolUse", called="a tool use")
    calls = tuple(map(_call, tools)) if record.has("expectedToolUse") else None
    replies = record.records("expectedIntermediateAgentResponses", called="an intermediate response")
    return AdkTurn(utterance, record.text("reference") or None, calls, tuple(map(_reply, replies)))


def _call(record: AdkRecord) -> Call:
    record.check_keys("toolName", "toolInput", "mockToolOutput", "name", "args")
    if record.has("mockToolOutput"):
        record.warn("adk-unused", "'mock_tool_output' is ignored: evalmeta does not replace tools", "mockToolOutput")
    return Call(record.required_text("tool_name", "toolName", "name"), record.object("toolInput", "args"))


def _reply(record: AdkRecord) -> Reply:
    record.check_keys("author", "text")
    return Reply(record.text("author") or "", record.text("text") or "")
