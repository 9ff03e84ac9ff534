"""Rows of an evaluation set as cases: the columns of Agent Evaluation (MLflow 2), and rows of MLflow 3.

A conversation becomes its last message, which must be the user's, and the history before it. Roles keep their
meaning: `assistant` is an agent's, `developer` a system's; system and tool messages stay in the history. The other
keys of a request, such as `custom_inputs`, are the initial state of the session.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from evalmeta import limits
from evalmeta.errors import FormatError, did_you_mean
from evalmeta.formats.diagnostics import Diagnostics, Record, kind_of
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import GeneratedData, Passage
from evalmeta.model.json_value import decoded
from evalmeta.systems.databricks.metrics import MetricSelection, RowExpectations, expectations_of
from evalmeta.systems.databricks.traces import broken_json, content_text, known_text, read_trace, response_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.formats.sources import JsonFile
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.databricks.traces import MlflowTrace

    Path: TypeAlias = tuple[str | int, ...]


class _Refuse(Protocol):
    """Report a problem of a request."""

    def __call__(self, message: str, path: Path = (), hint: str = "", /) -> None: ...


_CODE: Final = "databricks-row"


COLUMNS: Final = (
    *("request_id", "request", "response", "expected_facts", "expected_response", "guidelines"),
    *("expected_retrieved_context", "retrieved_context", "trace"),
)
"""The columns of Agent Evaluation."""


GENAI_COLUMNS: Final = ("inputs", "outputs", "expectations", "tags", "trace")
"""The columns of `mlflow.genai.evaluate`."""


_KNOWN: Final = tuple(dict.fromkeys((*COLUMNS, *GENAI_COLUMNS)))
_EXPECTATIONS: Final = ("expected_response", "expected_facts", "guidelines", "expected_retrieved_context")
# `mlflow.search_traces` returns the trace, and columns that repeat what is in it; only its tables have the first ones.
_SEARCHED: Final = frozenset(("trace_metadata", "request_metadata", "spans"))
_REPEATED: Final = _SEARCHED | {
    *("trace_id", "client_request_id", "request_id", "state", "status", "request_time", "timestamp_ms"),
    *("execution_duration", "execution_time_ms", "request", "response", "tags", "assessments"),
}
# The columns about the history of a row in `EvaluationDataset.to_df`.
_DATASET: Final = {
    *("dataset_id", "dataset_record_id", "source", "source_type", "source_id", "create_time", "created_time"),
    *("created_by", "last_update_time", "last_updated_by"),
}
_ROW_HINT: Final = "A row has 'request', and 'response' or 'trace' when its answer is given."


class Row(NamedTuple):
    """A row: its place among the rows, from 1, its file, and the keys and indexes that lead to it there."""

    number: int
    file: JsonFile
    path: Path = ()

    def place(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return the line and column, from 1, of the value at keys and indexes in the row."""
        return self.file.place((*self.path, *path))


@dataclass(frozen=True, slots=True)
class RowContext:
    """How rows are read."""

    wanted: MetricSelection  # what is judged
    is_asked: bool  # whether an agent is asked, so that recorded answers are ignored
    labels: set[int] = field(default_factory=set)  # hashes of the ids of earlier rows

    def is_first(self, label: str) -> bool:
        """Return whether no earlier row has an id, and remember it; only the first ids of many rows are compared."""
        known = hash(label)
        if known in self.labels:
            return False
        if len(self.labels) < limits.MAX_COMPARED_IDS:
            self.labels.add(known)
        return True


class _RowRecord(Record):
    """A row, or an object in one; lists and objects may be written as JSON."""

    object_hint = _ROW_HINT
    source: Row

    def error(self, code: str, message: str, *steps: str | int, hint: str = "") -> None:
        super().error(code, f"row {self.source.number}: {message}", *steps, hint=hint)

    def warn(self, code: str, message: str, *steps: str | int, hint: str = "") -> None:
        super().warn(code, f"row {self.source.number}: {message}", *steps, hint=hint)

    def mistyped(self, value: JsonValue, expected: str, *steps: str | int, hint: str = "") -> None:
        shown = _shown((*self.path, *steps))
        broken = broken_json(value) if isinstance(value, str) else None
        if broken is not None:
            self.error("json-syntax", f"{shown} is broken JSON: {broken}", *steps)
        else:
            self.error("json-type", f"{shown} is {kind_of(value)}, not {expected}", *steps, hint=hint)

    def decoded_object(self, name: str) -> _RowRecord:
        """Return the object in a column, to be read by its keys; one without keys when there is none."""
        value = decoded(self.raw(name))
        if not isinstance(value, dict | None):
            self.mistyped(value, "an object", name)
        return self.at(value if isinstance(value, dict) else {}, name, called=repr(name))

    def list_of(self, name: str, of: str, *, hint: str = "") -> Sequence[JsonValue]:
        value = decoded(self.raw(name))
        if isinstance(value, list):
            return value
        if value is not None and value != "":
            self.mistyped(value, f"a list of {of}", name, hint=hint)
        return ()

    def texts_of(self, name: str, of: str = "texts") -> list[str]:
        items = enumerate(self.list_of(name, of, hint='Write ["...", "..."].'))
        return [text for place, value in items if (text := self.to_text(value, name, place)) is not None]

    def guidelines(self) -> Mapping[str, Sequence[str]]:
        """Return guidelines in groups: a list, lists by name, or, of MLflow 3, one text."""
        value = decoded(self.raw("guidelines"))
        if isinstance(value, str) and value and self.path:
            return {"": [value]}
        if isinstance(value, dict):
            inner = self.decoded_object("guidelines")
            groups = {name: inner.texts_of(name, "guidelines") for name in value}
        else:
            groups = {"": self.texts_of("guidelines", "guidelines")}
        return {name: group for name, group in groups.items() if group}

    def passages(self, name: str) -> tuple[Passage, ...] | None:
        """Return the passages that were, or should be, retrieved; None when the column is missing."""
        if not self.has(name):
            return None
        items = enumerate(self.list_of(name, "objects with 'doc_uri'"))
        return tuple(passage for place, value in items if (passage := self._passage(value, name, place)))

    def _passage(self, value: JsonValue, *steps: str | int) -> Passage | None:
        if not isinstance(value, dict):
            self.mistyped(value, "an object with 'doc_uri'", *steps)
            return None
        uri, content, shown = value.get("doc_uri"), value.get("content"), _shown((*self.path, *steps))
        if uri is None:
            self.error("json-missing", f"{shown} has no 'doc_uri'", *steps)
        elif not isinstance(uri, str):
            self.error("json-type", f"{shown} has a 'doc_uri' that is {kind_of(uri)}, not a text", *steps)
        elif not isinstance(content, str | None):
            self.mistyped(content, "a text", *steps, "content")
        else:
            return Passage(uri, content)
        return None


def read_row(row: Row, context: RowContext, diagnostics: Diagnostics) -> Case:
    """Read a row as a case of one turn; every problem is added to the diagnostics with its place."""
    value = row.file.at(row.path)
    if isinstance(value, dict):
        if {"info", "data"} <= value.keys() and {*_KNOWN}.isdisjoint(value):
            value = {"trace": value}
        elif value.get("trace") is not None and not _SEARCHED.isdisjoint(value):
            value = {column: cell for column, cell in value.items() if column not in _REPEATED}
    record = _RowRecord(row, (), value, diagnostics, called="it")
    return _RowReader(record, context).case() if record.is_object else Case(row.number, ())


class _RowReader:
    def __init__(self, record: _RowRecord, context: RowContext) -> None:
        self._record = record
        self._context = context
        has_outputs = record.has("outputs") or record.has("expectations")
        self._is_genai = record.has("inputs") or (has_outputs and not record.has("request"))
        self._trace: MlflowTrace | None = None

    def case(self) -> Case:
        record = self._record
        for key in record.values:
            # Columns such as `short/value` are results of an earlier evaluation.
            if "/" in key or key in _DATASET or key in _KNOWN:
                continue
            if record.diagnostics.is_first("a row", key):
                hint = record.diagnostics.suggest(key, _KNOWN)
                record.warn("databricks-column", f"{key!r} is not a known column; it is ignored", key, hint=hint)
        if self._is_genai and record.has("request"):
            record.error(_CODE, "it has both 'request' and 'inputs', which are of two formats", "inputs")
        if record.has("trace"):
            try:
                self._trace = read_trace(record.raw("trace"))
            except FormatError as error:
                record.error("databricks-trace", f"'trace': {error}", "trace", hint=error.actions[0])
        asked = self._request()
        recorded = None if self._context.is_asked else self._recorded()
        ended = self._trace.error if self._trace and recorded else ""
        self._note_step_errors()
        expectations = expectations_of(self._expected(recorded), self._context.wanted)
        turn = Turn(asked.utterance, expectations, recorded, ended)
        tags = tuple(f"{key}={value}" for key, value in record.decoded_object("tags").values.items())
        label = self._label() or (self._trace.id if self._trace else "")
        return Case(record.source.number, (turn,), asked.history, tags=tags, label=label, state=asked.state)

    def _note_step_errors(self) -> None:
        """Warn of steps that ended in an error although the agent answered, once for each step of a file."""
        for step, error in self._trace.step_errors.items() if self._trace and not self._context.is_asked else ():
            if self._record.diagnostics.is_first("a step with an error", step):
                message = f"the step {step!r:.60} of the trace ended in an error, and the agent continued: {error:.200}"
                self._record.warn("databricks-trace", message, "trace")

    def _label(self) -> str:
        """Return the id of a row, which may be a number; warn of one that an earlier row has."""
        value = self._record.raw("request_id")
        label = str(value) if type(value) is int else self._record.text("request_id")
        if label and not self._context.is_first(label):
            self._record.warn(_CODE, f"an earlier row has the 'request_id' {label!r:.100} too", "request_id")
        return label or ""

    def _request(self) -> Request:
        record, trace = self._record, self._trace
        column, read = ("inputs", read_inputs) if self._is_genai else ("request", read_request)
        error = partial(record.error, _CODE)
        if record.has(column):
            return read(record.raw(column), lambda what, path=(), hint="": error(what, column, *path, hint=hint))
        if trace is None and not record.has("trace"):
            other = next((key for key in _QUERIES if record.has(key)), None)
            hint = _ROW_HINT if other is None else f"There is {other!r}; write {column!r}."
            error(f"it has neither {column!r} nor 'trace'", hint=hint)
        elif trace is not None and trace.request is None:
            error("its trace does not say what was asked; add a 'request'", "trace")
        elif trace is not None:
            return read_inputs(
                trace.request, lambda what, _=(), hint="": error(f"its trace: {what}", "trace", hint=hint)
            )
        return _NOTHING

    def _recorded(self) -> GeneratedData | None:
        response = self._outputs() if self._is_genai else self._response()
        retrieved = None if self._is_genai else self._record.passages("retrieved_context")
        if self._trace is None:
            return None if response is None else GeneratedData(response, retrieved=retrieved)
        traced = self._trace.generated
        return replace(
            traced,
            outcome=traced.outcome if response is None else response,
            retrieved=traced.retrieved if retrieved is None else retrieved,
        )

    def _response(self) -> str | None:
        value = self._record.raw("response")
        text = known_text(value)
        if text is None and value is not None:
            self._record.mistyped(value, "a text", "response")
        return text

    def _outputs(self) -> str | None:
        value = self._record.raw("outputs")
        if not isinstance(value, str):
            return None if value is None else response_text(value)
        inner = decoded(value)
        text = known_text(inner) if isinstance(inner, dict | list) else None
        return value if text is None else text

    def _expecting(self) -> _RowRecord:
        """Return the object with the expectations: the row's, or else those that people noted in the trace."""
        record = self._record.decoded_object("expectations") if self._is_genai else self._record
        noted = self._trace.expectations if self._trace else {}
        if noted and not record.has(*_EXPECTATIONS):
            return record.at(noted, "trace", called="the trace")
        return record

    def _expected(self, recorded: GeneratedData | None) -> RowExpectations:
        record = self._expecting()
        are_apart = record is not self._record
        for key in record.values if are_apart else ():
            if key not in _EXPECTATIONS and record.diagnostics.is_first("expectations", key):
                record.warn(_CODE, f"no metric judges by the expectation {key!r}; it is ignored", key)
        facts, response = record.texts_of("expected_facts"), record.text("expected_response")
        if facts and response is not None and not are_apart:
            message = "it has both 'expected_facts' and 'expected_response'; a row can have one of them"
            hint = "Keep 'expected_facts': they say more exactly what is expected."
            record.error("databricks-expected", message, "expected_facts", hint=hint)
        guidelines = record.guidelines()
        uris = [passage.uri for passage in record.passages("expected_retrieved_context") or ()]
        is_there = {
            **dict.fromkeys(("request", "response"), True),
            "retrieved_context": recorded is None or recorded.retrieved is not None,
            "tokens": recorded is None or recorded.tokens is not None,
            "latency": recorded is None or recorded.latency_ms is not None,
            "expected": response is not None or bool(facts),
            "guidelines": bool(guidelines),
            "expected_retrieved_context": bool(uris),
        }
        return RowExpectations({name for name, has in is_there.items() if has}, response, facts, guidelines, uris)


def _shown(path: Path) -> str:
    """Return a path as users write it: `'retrieved_context[0].content'`."""
    first, *others = path
    inner = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in others)
    return f"'{first}{inner}'"


_ROLES: Final = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "agent"), "agent"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_CONVERSATIONS: Final = ("messages", "input")
_BEGUN: Final = re.compile(r'\s*\{\s*"(?:messages|input|query)"\s*:')
_QUERIES: Final = ("query", "question", "request", "input", "prompt", "message", "text")


class Request(NamedTuple):
    """One question, and what came before it."""

    utterance: str
    history: tuple[HistoryMessage, ...]
    state: JsonObject


_NOTHING: Final = Request("", (), {})


def read_request(value: JsonValue, refuse: _Refuse) -> Request:
    """Read a request: a text, `{"messages": [...]}`, `{"query": ..., "history": [...]}`, or the JSON text of one."""
    if isinstance(value, str):
        if not is_request(value):
            if _BEGUN.match(value):
                refuse(f"the request is broken JSON: {broken_json(value)}")
            return _said(value, refuse)
        value = decoded(value)
    if not isinstance(value, dict):
        refuse(f"the request is {kind_of(value)}, not a text or an object")
        return _NOTHING
    asked = _conversation(value, refuse) or _query(value, ("query",), refuse)
    if asked is None and value.get("query") is not None:
        refuse(f"'query' is {kind_of(value['query'])}, not a text", ("query",))
    elif asked is None:
        hint = 'Write {"messages": [{"role": "user", "content": "..."}]}, or the question as a text.'
        refuse("the request has neither 'messages' nor 'query'", (), hint)
    return asked or _NOTHING


def is_request(text: str) -> bool:
    """Return whether a text is a request in JSON, and not the question itself."""
    value = decoded(text)
    return isinstance(value, dict) and not {"query", *_CONVERSATIONS}.isdisjoint(value)


def is_plain(text: str) -> bool:
    """Return whether a text is the question itself, and not a request in JSON or a broken one."""
    return not is_request(text) and not _BEGUN.match(text)


def read_inputs(value: JsonValue, refuse: _Refuse) -> Request:
    """Read inputs (MLflow 3): a conversation, a text with a known name, the only text, or else all inputs as JSON."""
    value = decoded(value)
    if isinstance(value, str):
        return _said(value, refuse)
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        refuse(f"the inputs are {kind_of(value)}, not an object")
        return _NOTHING
    inner = next(iter(value.values()), None)
    if len(value) == 1 and isinstance(inner, dict):
        return read_inputs(inner, refuse)
    texts = [key for key, text in value.items() if isinstance(text, str)]
    asked = _conversation(value, refuse) or _query(value, (*_QUERIES, *(texts if len(texts) == 1 else ())), refuse)
    return asked or Request(json.dumps(value, ensure_ascii=False), (), value)


def _said(text: str, refuse: _Refuse) -> Request:
    if not text.strip():
        refuse("the request is empty")
    return Request(text, (), {})


def _conversation(value: JsonObject, refuse: _Refuse) -> Request | None:
    key = next((name for name in _CONVERSATIONS if isinstance(value.get(name), list)), None)
    if key is None:
        if value.get("messages") is not None:
            refuse(f"'messages' are {kind_of(value['messages'])}, not a list", ("messages",))
            return _NOTHING
        return None
    messages = _messages(value[key], (key,), refuse)
    if messages is None:
        return _NOTHING
    last = messages[-1] if messages else None
    if last is None or last.role != "user":
        says = "are none" if last is None else f"end with one of role {last.role!r}"
        refuse(f"the messages {says}, and an agent is asked what a user says last", (key,))
        return _NOTHING
    return Request(_said(last.message or "", refuse).utterance, tuple(messages[:-1]), _without(value, key))


def _query(value: JsonObject, names: Sequence[str], refuse: _Refuse) -> Request | None:
    for name in names:
        if isinstance(text := value.get(name), str):
            history = _messages(value.get("history"), ("history",), refuse)
            return Request(_said(text, refuse).utterance, tuple(history or ()), _without(value, name, "history"))
    return None


def _messages(values: JsonValue, path: Path, refuse: _Refuse) -> list[HistoryMessage] | None:
    """Read messages, numbered from 0; None when one is not valid. Messages that only call tools are left out."""
    if values is None:
        return []
    if not isinstance(values, list):
        refuse(f"{path[-1]!r} is {kind_of(values)}, not a list of messages", path)
        return None
    said = [_message(value, (*path, place), refuse) for place, value in enumerate(values)]
    if None in said:
        return None
    texts = [message for message in said if message and message[1] is not None]
    return [HistoryMessage(role, text, index=place) for place, (role, text) in enumerate(texts)]


def _message(value: JsonValue, path: Path, refuse: _Refuse) -> tuple[str, str | None] | None:
    if not isinstance(value, dict):
        refuse(f"a message is {kind_of(value)}, not an object", path)
        return None
    role, content = value.get("role"), value.get("content")
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        what = "has no 'role'" if role is None else f"has the role {json.dumps(role)[:50]}, which is not a valid role"
        refuse(f"a message {what}", (*path, "role"), did_you_mean(str(role), _ROLES))
        return None
    if content is None and known == "agent" and value.get("tool_calls"):
        return known, None
    text = content_text(content)
    if text is None:
        refuse(f"the content of a message is {kind_of(content)}, not a text", (*path, "content"))
        return None
    return known, text


def _without(value: JsonObject, *keys: str) -> JsonObject:
    return {key: inner for key, inner in value.items() if key not in keys and inner is not None}
