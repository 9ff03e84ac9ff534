"""The eval sets of Google's Agent Development Kit (adk-python and adk-ts), and its deprecated arrays, as evaluations.

Sources of the arrays: ADK-TS, "Testing Agents", Legacy Test Format; google-adk 2.13, local_eval_sets_manager.py and
agent_evaluator.py. In Python the rows of a file are the turns of one case; in TypeScript each row is a case.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.formats.diagnostics import Diagnostics, kind_of
from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.registry import HEAD_BYTES
from evalmeta.formats.sources import JsonFile, read_json
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Evaluation, SessionIds, Turn
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.session_state import expected_state, state_path
from evalmeta.package.files import shown
from evalmeta.systems.adk.cases import (
    ADK_CONFIG,
    RUBRIC_TYPES,
    AdkCase,
    AdkRecord,
    AdkTurn,
    Call,
    Dialect,
    Reply,
    both,
    read_eval_set,
    read_session,
    report_repeated_ids,
)
from evalmeta.systems.adk.config import (
    DEFAULT_CONFIG,
    FINAL_RESPONSE_MATCH,
    JUDGED_ONCE,
    RESPONSE_MATCH,
    TRAJECTORY,
    read_test_config,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.settings import AdkDialect
    from evalmeta.systems.adk.cases import Rubric
    from evalmeta.systems.adk.config import AdkConfig, Criterion


LEGACY: Final = "adk-legacy"
"""The code of the warning that a file is a deprecated array."""
_SET_KEYS: Final = {*both("evalSetId"), *both("evalCases")}
_REFERENCES: Final = (RESPONSE_MATCH, FINAL_RESPONSE_MATCH)
_FILE_NAME: Final = re.compile(r"[^/\\]*\Z")
_MOST_CONFIGS: Final = 20
_EVAL_SET: Final = 'Write {"evalSetId": "...", "evalCases": [...]}.'
_GUESS: Final = 'Its content does not say which: with [adk] dialect = "typescript" in evalmeta.toml each row is a case.'
_READ: Final[dict[Dialect, str]] = {
    "python": "its rows are the turns of one case, as in Python",
    "typescript": "each of its rows is a case, as in TypeScript",
}


def read_adk(
    data: bytes, *, label: str, name: str, config: AdkConfig = DEFAULT_CONFIG, dialect: AdkDialect = "auto"
) -> Document:
    """Read an eval set of either language, or a deprecated array, and judge it by the criteria of `config`.

    The file name in `label` is the name of an array's only case. `dialect` says what the rows of an array mean; `auto`
    detects it from the keys of its tools. Raise FormatError if the file is not a valid eval set.
    """
    diagnostics = Diagnostics(label)
    file = _read(read_json(data, label=label), diagnostics, dialect)
    _note_missing(file.cases, config, diagnostics)
    _note_idle(file, config, diagnostics)
    diagnostics.check()
    cases = tuple(_case(number, case, config) for number, case in enumerate(file.cases, 1))
    apps = {case.session.app_name for case in file.cases if case.session and case.session.app_name}
    # Cases of several apps have no common subject.
    evaluation = Evaluation(name, apps.pop() if len(apps) == 1 else "", cases)
    notes = (*config.notes, *diagnostics.notes)
    return Document(evaluation, criteria=config.label, notes=notes, lines=dict(enumerate(file.lines, 1)))


def read_file(path: Path, *, label: str, name: str, reading: Reading) -> Document:
    """Read a file, and the criteria that apply to it, as `files.read_document` does."""
    config = _config_beside(path, label) if reading.config is None else read_config(Path(reading.config))
    if reading.missing:
        config = replace(config, missing=reading.missing)
    return read_adk(read_bytes(path), label=label, name=name, config=config, dialect=reading.dialect)


class AdkFile(NamedTuple):
    """The cases of a file with the line of each, and warnings; the dialect is None unless it is a deprecated array."""

    cases: Sequence[AdkCase]
    dialect: Dialect | None
    lines: Sequence[int]
    notes: tuple[Problem, ...] = ()


def read_adk_file(data: bytes, *, label: str, dialect: AdkDialect = "auto") -> AdkFile:
    """Read the cases of a file without its criteria; otherwise like `read_adk`."""
    diagnostics = Diagnostics(label)
    file = _read(read_json(data, label=label), diagnostics, dialect)
    diagnostics.check()
    return file._replace(notes=diagnostics.notes)


def _read(file: JsonFile, diagnostics: Diagnostics, dialect: AdkDialect) -> AdkFile:
    value, code, hint = file.value, "adk-form", _EVAL_SET
    if isinstance(value, list):
        return _read_legacy(file, diagnostics, dialect)
    if not isinstance(value, dict):
        code, message = "json-type", f"an eval set is {kind_of(value)}, not an object"
    elif "conversation" in value and _SET_KEYS.isdisjoint(value):
        message, hint = "this is a case alone, not an eval set", "Put it into the list 'evalCases'."
    elif _is_vertex_dataset(value):
        message = "this is a dataset of agents-cli, not an eval set of ADK"
        hint = f"Run: evalmeta run {file.label}"
    else:
        cases, lines = read_eval_set(file, diagnostics)
        return AdkFile(cases, None, lines)
    diagnostics.error(code, message, line=file.first_line, column=1, hint=hint)
    return AdkFile((), None, ())


def _is_vertex_dataset(value: JsonObject) -> bool:
    """Return whether a file has the cases of `agents-cli eval`, which have prompts instead of conversations."""
    cases = next((value[key] for key in both("evalCases") if key in value), None)
    first = cases[0] if isinstance(cases, list) and cases else None
    return isinstance(first, dict) and not {"prompt", "agent_data"}.isdisjoint(first) and "conversation" not in first


def _note_missing(cases: Sequence[AdkCase], config: AdkConfig, diagnostics: Diagnostics) -> None:
    if config.is_default:
        return
    cases = [case for case in cases if not case.not_run]
    for criterion in config.criteria if cases else ():
        needed = _NEEDED.get(criterion.name)
        if needed and not any(_has_data(criterion, case, turn) for case in cases for turn in case.turns):
            becomes = _MISSING.get(criterion.name, "") if config.missing == "adk" else ""
            message = f"no case has {needed}, which {criterion.name!r} needs; {becomes or 'it judges nothing'}"
            diagnostics.warn("adk-missing", message, hint="Remove the criterion, or add the data.")


_NEEDED: Final = {
    TRAJECTORY: "expected tool calls (intermediateData)",
    RESPONSE_MATCH: "an expected response (finalResponse)",
    FINAL_RESPONSE_MATCH: "an expected response (finalResponse)",
    **dict.fromkeys(RUBRIC_TYPES, "rubrics, and neither has the criterion"),
}
_MISSING: Final = {TRAJECTORY: "no calls are expected instead", RESPONSE_MATCH: "its score is 0"}
_WITHOUT_DATA: Final = {TRAJECTORY: "empty", RESPONSE_MATCH: "zero"}


def _note_idle(file: AdkFile, config: AdkConfig, diagnostics: Diagnostics) -> None:
    """Warn of cases without the data of any criterion: they run, but nothing is judged."""
    if config.missing == "adk" or any(criterion.name not in _NEEDED for criterion in config.criteria):
        return
    for case, line in zip(file.cases, file.lines, strict=True):
        has_data = any(_has_data(criterion, case, turn) for criterion in config.criteria for turn in case.turns)
        if case.turns and not (case.not_run or has_data or case.final_state):
            message = f"case {case.eval_id!r} runs but is not judged: it has no data for any criterion"
            diagnostics.warn("adk-idle", message, line=line, column=1)


def _has_data(criterion: Criterion, case: AdkCase, turn: AdkTurn) -> bool:
    if criterion.name == TRAJECTORY:
        return turn.calls is not None
    if criterion.name in _REFERENCES:
        return turn.reference is not None
    return bool(criterion.name not in RUBRIC_TYPES or _rubrics(criterion, case, turn))


def _case(number: int, case: AdkCase, config: AdkConfig) -> Case:
    session = case.session
    state = session.state if session else {}
    ids = SessionIds(session.app_name, session.user_id, session.session_id) if session else None
    if case.not_run:
        return Case(number, (Turn(case.turns[0].utterance),), label=case.eval_id, state=state, not_run=case.not_run)
    last = len(case.turns)
    turns = tuple(
        Turn(turn.utterance, tuple(_expectations(case, turn, config, is_last=place == last)))
        for place, turn in enumerate(case.turns, 1)
    )
    return Case(number, turns, label=case.eval_id, state=state, session=ids)


def _expectations(case: AdkCase, turn: AdkTurn, config: AdkConfig, *, is_last: bool) -> Iterator[Expectation]:
    if is_last:
        for name, value in case.final_state.items():
            yield expected_state(state_path(name), value, literal=True)
    for criterion in config.criteria:
        if criterion.name in JUDGED_ONCE and not is_last:
            continue
        if "function" not in criterion.terms:
            yield _expectation(criterion, case, turn, config)
        elif is_last:
            # The user's own function receives the whole conversation.
            invocations: list[JsonValue] = [
                {"utterance": turn.utterance, "reference": turn.reference, "calls": _calls_json(turn)}
                for turn in case.turns
            ]
            yield Expectation(criterion.name, terms={**criterion.terms, "invocations": invocations})


def _expectation(criterion: Criterion, case: AdkCase, turn: AdkTurn, config: AdkConfig) -> Expectation:
    name, terms = criterion.name, dict(criterion.terms)
    expected = turn.reference if name in _REFERENCES else None
    if name == TRAJECTORY:
        expected = None if turn.calls is None else ", ".join(shown_call(*call) for call in turn.calls) or "no calls"
        terms["calls"] = _calls_json(turn)
    if config.missing == "adk" and name in _WITHOUT_DATA:
        terms["missing"] = _WITHOUT_DATA[name]
    if name in RUBRIC_TYPES:
        terms["rubrics"] = [{"id": rubric.id, "text": rubric.text} for rubric in _rubrics(criterion, case, turn)]
    return Expectation(name, expected, terms=terms)


def _rubrics(criterion: Criterion, case: AdkCase, turn: AdkTurn) -> list[Rubric]:
    """Return the rubrics of a turn: those of the criterion, and those of the case and the turn for its metric."""
    wanted = {"", RUBRIC_TYPES.get(criterion.name)}
    return [*criterion.rubrics, *(rubric for rubric in (*case.rubrics, *turn.rubrics) if rubric.type in wanted)]


def _calls_json(turn: AdkTurn) -> JsonValue:
    return None if turn.calls is None else [call.as_json() for call in turn.calls]


def shown_call(name: str, args: JsonObject) -> str:
    """Return a call of a tool as people write it: `get_weather(city="London")`."""
    values = (f"{key}={orjson.dumps(value).decode()}" for key, value in args.items())
    return f"{name}({', '.join(values)})"


def _config_beside(path: Path, label: str) -> AdkConfig:
    config = path.with_name(ADK_CONFIG)
    if not config.exists():
        return replace(DEFAULT_CONFIG, notes=tuple(_misplaced(path, label)))
    # A path would drop the `./` of `./a.test.json`.
    beside = _FILE_NAME.sub(ADK_CONFIG, label, count=1)
    return read_test_config(read_bytes(config), label=beside)


def read_config(path: Path) -> AdkConfig:
    """Read the criteria in a file with any name; raise NotFound if it cannot be read."""
    return read_test_config(read_bytes(path), label=shown(path))


def _misplaced(path: Path, label: str) -> Iterator[Problem]:
    """Yield a warning of a configuration that probably belongs to a file but has another name or folder."""
    others = (path.parent.parent / ADK_CONFIG, *sorted(path.parent.glob(f"*/{ADK_CONFIG}")))
    near = (*_configs_in(path.parent), *others, *_configs_in(path.parent.parent))
    elsewhere = next((path for path in near if path.is_file()), None)
    if elsewhere:
        where = os.path.relpath(elsewhere, path.parent)
        message = f"there is no {ADK_CONFIG} beside the file, so ADK's default criteria apply; {where!r} is not read"
        hint = f"To use it, pass --config {shown(elsewhere)}, or move it to {ADK_CONFIG} in the folder of the file."
        yield Problem("adk-config", Severity.WARNING, Location(label), message, hint)


def _configs_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder that are called configurations and have criteria."""
    for path in islice(sorted(folder.glob("*onfig*.json*")), _MOST_CONFIGS):
        if path.is_file() and b'"criteria"' in read_bytes(path, HEAD_BYTES):
            yield path


_TOOLS: Final[dict[Dialect, tuple[str, str]]] = {"python": ("tool_name", "tool_input"), "typescript": ("name", "args")}


def _read_legacy(file: JsonFile, diagnostics: Diagnostics, dialect: AdkDialect) -> AdkFile:
    """Read an array of rows, or of groups of rows `{name, data, initial_session}`, each of which is a case."""
    items = file.value if isinstance(file.value, list) else []
    lines = file.lines_of(())
    if not items:
        message = "the array is empty: add at least one row"
        diagnostics.error("adk-empty", message, line=file.first_line, column=1)
        return AdkFile((), "python", ())
    is_grouped = any(isinstance(item, dict) and "data" in item for item in items)
    called = "a case" if is_grouped else "a row"
    records = [AdkRecord(file, (place,), item, diagnostics, called=called) for place, item in enumerate(items)]
    hint = f"To convert it to an eval set, run: evalmeta convert {file.label} --to adk"
    if is_grouped:
        cases = [_group(record) for record in records]
        report_repeated_ids(cases, diagnostics, lines)
        message = "the format of this file is deprecated; each of its items is a case, whose rows are turns"
        diagnostics.warn(LEGACY, message, line=file.first_line, column=1, hint=hint)
        return AdkFile(cases, "python", lines)
    chosen, is_guess = _dialect(file, items, diagnostics, dialect)
    message, hint = f"the format of this file is deprecated; {_READ[chosen]}", f"{_GUESS} {hint}" if is_guess else hint
    diagnostics.warn(LEGACY, message, line=file.first_line, column=1, hint=hint)
    turns = tuple(map(_row, records))
    if chosen == "typescript":
        return AdkFile([AdkCase(f"eval-{place}", (turn,)) for place, turn in enumerate(turns)], chosen, lines)
    return AdkFile([AdkCase(PurePath(file.label).name, turns)], chosen, lines[:1])


def _dialect(
    file: JsonFile, items: Sequence[JsonValue], diagnostics: Diagnostics, dialect: AdkDialect
) -> tuple[Dialect, bool]:
    """Return the dialect of rows, which the keys of tools show, and whether it is a guess; the default is Python."""
    if dialect != "auto":
        return dialect, False
    rows = [row for row in items if isinstance(row, dict)]
    lists = [row.get(key) for row in rows for key in both("expectedToolUse")]
    tools = [tool for value in lists if isinstance(value, list) for tool in value if isinstance(tool, dict)]
    used = {name for name, keys in _TOOLS.items() if any(key in tool for tool in tools for key in keys)}
    if len(used) > 1:
        message = "some tools of the array have 'tool_name', and some have 'name': rows may be turns or cases"
        hint = 'Say which: [adk] dialect = "python" in evalmeta.toml makes them turns, "typescript" cases.'
        diagnostics.error("adk-dialect", message, line=file.first_line, column=1, hint=hint)
    return "typescript" if used == {"typescript"} else "python", not used and len(items) > 1


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
    replies = []
    for reply in record.records("expectedIntermediateAgentResponses", called="an intermediate response"):
        reply.check_keys("author", "text")
        replies.append(Reply(reply.text("author") or "", reply.text("text") or ""))
    return AdkTurn(utterance, record.text("reference") or None, calls, tuple(replies))


def _call(record: AdkRecord) -> Call:
    record.check_keys("toolName", "toolInput", "mockToolOutput", "name", "args")
    if record.has("mockToolOutput"):
        record.warn("adk-unused", "'mock_tool_output' is ignored: evalmeta does not replace tools", "mockToolOutput")
    return Call(record.required_text("tool_name", "toolName", "name"), record.object("toolInput", "args"))
