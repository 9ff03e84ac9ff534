"""The arrays that were ADK's files before eval sets; Python and TypeScript read the same array in two ways.

Sources: ADK-TS, "Testing Agents", Legacy Test Format; google-adk 2.13, local_eval_sets_manager.py and
agent_evaluator.py. In Python the rows of a file are the turns of one case; in TypeScript each row is a case.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.formats.adk.cases import AdkCase, AdkTurn, Call, Keys, Reply, both, read_session, refuse_doubles
from evalmeta.formats.json_source import JsonRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.formats.json_source import JsonFile
    from evalmeta.model.json_value import JsonValue


Dialect = Literal["python", "typescript"]

_ROW: Final = ("query", "reference", "expectedToolUse", "expectedIntermediateAgentResponses")
_GROUP: Final = ("name", "data", "initialSession")
_TOOLS: Final[dict[Dialect, tuple[str, str]]] = {"python": ("tool_name", "tool_input"), "typescript": ("name", "args")}
_TOOL: Final = ("toolName", "toolInput", "mockToolOutput", "name", "args")


class Legacy(NamedTuple):
    """What an array says.

    Attributes:
        lines: the line of each case.
        dialect: in which way it was read.
        is_grouped: whether each item has rows of its own.
        is_guess: whether nothing in the file tells the way, and another one would give other cases.
    """

    cases: list[AdkCase]
    lines: list[int]
    dialect: Dialect
    is_grouped: bool = False
    is_guess: bool = False


def read_legacy(file: JsonFile, diagnostics: Diagnostics, keys: Keys, *, dialect: Dialect | None) -> Legacy:
    """Reads an array of rows, or of groups of rows `{name, data, initial_session}`, each of which is a case.

    Args:
        file: the file; it holds a list.
        diagnostics: takes the problems.
        keys: warns of unknown ones.
        dialect: what rows mean; None tells it by the keys of the tools, and takes Python's way where there are none.
    """
    items = file.value if isinstance(file.value, list) else []
    lines = file.lines_of(())
    if not items:
        diagnostics.error("adk-empty", "the array is empty: nothing would be asked", line=file.first_line, column=1)
        return Legacy([], [], "python")
    if any(isinstance(each, dict) and "data" in each for each in items):
        groups = [JsonRecord(file, (place,), diagnostics, called="a case") for place in range(len(items))]
        cases = [_group(each, keys) for each in groups]
        refuse_doubles(cases, diagnostics, lines)
        return Legacy(cases, lines, "python", is_grouped=True)
    spoken = _dialects(items)
    if dialect is None and len(spoken) > 1:
        message = "some tools of the array have 'tool_name', and some have 'name': rows may be turns or cases"
        hint = 'Say which: [adk] dialect = "python" in evalmeta.toml makes them turns, "typescript" cases.'
        diagnostics.error("adk-dialect", message, line=file.first_line, column=1, hint=hint)
    chosen: Dialect = dialect or ("typescript" if spoken == {"typescript"} else "python")
    rows = [JsonRecord(file, (place,), diagnostics, called="a row") for place in range(len(items))]
    turns = [_row(each, keys) for each in rows]
    is_guess = dialect is None and not spoken and len(turns) > 1
    if chosen == "typescript":
        return Legacy([AdkCase(f"eval-{place}", (turn,)) for place, turn in enumerate(turns)], lines, chosen)
    return Legacy([AdkCase(PurePath(file.label).name, tuple(turns))], lines[:1], chosen, is_guess=is_guess)


def _dialects(items: Sequence[JsonValue]) -> set[Dialect]:
    """Gives the dialects whose keys the tools of the rows have."""
    tools = [tool for row in items if isinstance(row, dict) for tool in _tools(row.get("expected_tool_use"))]
    tools += [tool for row in items if isinstance(row, dict) for tool in _tools(row.get("expectedToolUse"))]
    return {dialect for dialect, keys in _TOOLS.items() if any(key in tool for tool in tools for key in keys)}


def _tools(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _group(record: JsonRecord, keys: Keys) -> AdkCase:
    keys.check(record, *_GROUP)
    name = record.required_text("name")
    if record.is_object and not record.items("data"):
        record.refuse("adk-empty", f"case {name!r} has no rows in 'data': nothing would be asked")
    turns = tuple(_row(each, keys) for each in record.records("data", called="a row"))
    session = read_session(record.record(*both("initialSession"), called="the initial session"), keys)
    return AdkCase(name, turns, session)


def _row(record: JsonRecord, keys: Keys) -> AdkTurn:
    keys.check(record, *_ROW)
    utterance = record.required_text("query")
    if record.has("query") and not utterance:
        record.refuse("adk-empty", "the query of a row is empty", "query")
    names = both("expectedToolUse")
    calls = None
    if record.has(*names):
        calls = tuple(_call(each, keys) for each in record.records(*names, called="a tool use"))
    replies = record.records(*both("expectedIntermediateAgentResponses"), called="an intermediate response")
    return AdkTurn(utterance, record.text("reference") or None, calls, tuple(_reply(each, keys) for each in replies))


def _call(record: JsonRecord, keys: Keys) -> Call:
    keys.check(record, *_TOOL)
    if record.has(*both("mockToolOutput")):
        record.note("adk-unused", "'mock_tool_output' is passed over: tools are not replaced", *both("mockToolOutput"))
    name = record.required_text("tool_name", "toolName", "name")
    return Call(name, record.object("tool_input", "toolInput", "args") or {})


def _reply(record: JsonRecord, keys: Keys) -> Reply:
    keys.check(record, "author", "text")
    return Reply(record.text("author") or "", record.text("text") or "")
