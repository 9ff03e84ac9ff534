"""Rows of an evaluation set as cases: the columns of Agent Evaluation (MLflow 2), and rows of MLflow 3.

A conversation becomes its last message, which must be the user's, and the history before it. Roles keep their
meaning: `assistant` is an agent's, `developer` a system's; system and tool messages stay in the history. The other
keys of a request, such as `custom_inputs`, are the initial state of the session.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.databricks.metrics import RowExpectations, expectations_of
from evalmeta.formats.databricks.texts import broken_json, content_text, decoded, known_text, response_text
from evalmeta.formats.databricks.traces import read_trace
from evalmeta.formats.diagnostics import did_you_mean
from evalmeta.formats.records import kind_of
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import GeneratedData, Passage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.formats.databricks.metrics import MetricSelection
    from evalmeta.formats.databricks.traces import MlflowTrace
    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.formats.json_source import JsonFile
    from evalmeta.model.json_value import JsonObject, JsonValue

    Path: TypeAlias = tuple[str | int, ...]
    Refuse: TypeAlias = Callable[[str, Path, str], None]


COLUMNS: Final = (
    "request_id",
    "request",
    "response",
    "expected_facts",
    "expected_response",
    "guidelines",
    "expected_retrieved_context",
    "retrieved_context",
    "trace",
)
"""The columns of Agent Evaluation."""


GENAI_COLUMNS: Final = ("inputs", "outputs", "expectations", "tags", "trace")
"""The columns of `mlflow.genai.evaluate`."""


_KNOWN: Final = tuple(dict.fromkeys((*COLUMNS, *GENAI_COLUMNS)))
_EXPECTATIONS: Final = ("expected_response", "expected_facts", "guidelines", "expected_retrieved_context")
_LIST_HINT: Final = 'Write ["...", "..."].'
_ROW_HINT: Final = "A row has 'request', and 'response' or 'trace' when its answer is given."


class Row(NamedTuple):
    """A row, and where it stands.

    Attributes:
        number: its place among the rows, from 1.
        file: what it was read from.
        path: the keys and indexes that lead to it there.
    """

    number: int
    file: JsonFile
    path: Path = ()


class RowContext(NamedTuple):
    """How rows are read.

    Attributes:
        wanted: what is judged.
        is_asked: whether an agent is asked, so that given answers do not matter.
        noted: what was warned of already, which is not repeated for every row.
        labels: hashes of the ids of rows.
    """

    wanted: MetricSelection
    is_asked: bool
    noted: set[str]
    labels: set[int]

    def is_first(self, label: str) -> bool:
        """Return whether no earlier row has an id, and remember it; only the first ids of many rows are compared."""
        known = hash(label)
        if known in self.labels:
            return False
        if len(self.labels) < limits.MAX_COMPARED_IDS:
            self.labels.add(known)
        return True


def read_row(row: Row, terms: RowContext, diagnostics: Diagnostics) -> Case:
    """Read a row as a case of one turn; every problem is added to the diagnostics with its place."""
    return _RowReader(row, terms, diagnostics).case()


class _RowReader:
    def __init__(self, row: Row, terms: RowContext, diagnostics: Diagnostics) -> None:
        self._row = row
        self._terms = terms
        self._diagnostics = diagnostics
        value = row.file.at(row.path)
        self._is_object = isinstance(value, dict)
        self._values: JsonObject = _columns(value) if isinstance(value, dict) else {}
        if not self._is_object:
            self._refuse(f"it is {kind_of(value)}, not an object", code="json-type", hint=_ROW_HINT)

    def case(self) -> Case:
        if not self._is_object:
            return Case(self._row.number, ())
        self._note_unknown()
        is_genai = self._has("inputs") or (
            not self._has("request") and (self._has("outputs") or self._has("expectations"))
        )
        if is_genai and self._has("request"):
            self._refuse("it has both 'request' and 'inputs', which are of two formats", ("inputs",))
        trace = self._trace()
        asked = self._request(is_genai=is_genai, trace=trace)
        recorded = None if self._terms.is_asked else self._recorded(is_genai=is_genai, trace=trace)
        asks = self._genai_asks(recorded) if is_genai else self._asks(recorded)
        turn = Turn(asked.utterance, expectations_of(asks, self._terms.wanted), recorded)
        tags = tuple(f"{key}={each}" for key, each in self._object("tags").items())
        label = self._label() or (trace.id if trace else "")
        return Case(self._row.number, (turn,), asked.history, tags=tags, label=label, state=asked.state)

    def _label(self) -> str:
        """Return the id of a row, which may be a number; warn of one that an earlier row has."""
        value = self._values.get("request_id")
        label = str(value) if type(value) is int else self._text("request_id")
        if label and not self._terms.is_first(label):
            self._note(f"an earlier row has the 'request_id' {label!r:.100} too", ("request_id",))
        return label or ""

    def _request(self, *, is_genai: bool, trace: MlflowTrace | None) -> Request:
        for column, read in (("inputs", read_inputs), ("request", read_request)):
            if self._has(column) and is_genai == (column == "inputs"):
                return read(
                    self._values[column],
                    lambda what, path, hint, column=column: self._refuse(what, (column, *path), hint=hint),  # type: ignore[misc]
                )
        if trace is None and not self._has("trace"):
            self._refuse(f"it has neither {'inputs' if is_genai else 'request'!r} nor 'trace'", hint=_ROW_HINT)
        elif trace is not None and trace.request is None:
            self._refuse("its trace does not say what was asked; add a 'request'", ("trace",))
        elif trace is not None:
            return read_inputs(
                trace.request, lambda what, _, hint: self._refuse(f"its trace: {what}", ("trace",), hint=hint)
            )
        return Request("", (), {})

    def _trace(self) -> MlflowTrace | None:
        if not self._has("trace"):
            return None
        try:
            return read_trace(self._values["trace"])
        except FormatError as error:
            self._refuse(f"'trace': {error}", ("trace",), code="databricks-trace", hint=error.actions[0])
            return None

    def _recorded(self, *, is_genai: bool, trace: MlflowTrace | None) -> GeneratedData | None:
        response = self._outputs() if is_genai else self._response()
        retrieved = None if is_genai else self._passages("retrieved_context")
        if trace is None:
            return None if response is None else GeneratedData(response, retrieved=retrieved)
        told = trace.generated
        return GeneratedData(
            told.outcome if response is None else response,
            None,
            told.actions,
            told.latency_ms,
            told.session_id,
            told.tokens,
            told.trace,
            told.retrieved if retrieved is None else retrieved,
        )

    def _response(self) -> str | None:
        value = self._values.get("response")
        if value is None or isinstance(value, str):
            return value
        text = known_text(value)
        if text is None:
            self._mistyped(("response",), value, "a text")
        return text

    def _outputs(self) -> str | None:
        value = self._values.get("outputs")
        if isinstance(value, str):
            inner = decoded(value)
            text = known_text(inner) if isinstance(inner, dict | list) else None
            return value if text is None else text
        return None if value is None else response_text(value)

    def _asks(self, recorded: GeneratedData | None) -> RowExpectations:
        facts, response = self._texts(("expected_facts",)), self._text("expected_response")
        if facts and response is not None:
            self._refuse(
                "it has both 'expected_facts' and 'expected_response', and at most one may be there",
                ("expected_facts",),
                code="databricks-expected",
                hint="Keep 'expected_facts': they say more exactly what is expected.",
            )
        return self._row_expectations(recorded, (), response, facts)

    def _genai_asks(self, recorded: GeneratedData | None) -> RowExpectations:
        expected = self._object("expectations")
        for key in expected:
            if key not in _EXPECTATIONS and self._is_new(f"expectations.{key}"):
                self._note(f"no metric judges by {key!r} of 'expectations'; it is ignored", ("expectations", key))
        response = expected.get("expected_response")
        if response is not None and not isinstance(response, str):
            self._mistyped(("expectations", "expected_response"), response, "a text")
            response = None
        return self._row_expectations(
            recorded, ("expectations",), response, self._texts(("expectations", "expected_facts"))
        )

    def _row_expectations(
        self, recorded: GeneratedData | None, within: Path, response: str | None, facts: Sequence[str]
    ) -> RowExpectations:
        guidelines = self._guidelines((*within, "guidelines"))
        uris = [each.uri for each in self._passages(*within, "expected_retrieved_context") or ()]
        is_there = {
            "request": True,
            "response": True,
            "retrieved_context": recorded is None or recorded.retrieved is not None,
            "tokens": recorded is None or recorded.tokens is not None,
            "latency": recorded is None or recorded.latency_ms is not None,
            "expected": response is not None or bool(facts),
            "guidelines": bool(guidelines),
            "expected_retrieved_context": bool(uris),
        }
        return RowExpectations({name for name, has in is_there.items() if has}, response, facts, guidelines, uris)

    # Values of columns.

    def _has(self, column: str) -> bool:
        return self._values.get(column) is not None

    def _at(self, path: Path) -> JsonValue:
        value: JsonValue = self._values
        for step in path:
            value = decoded(value)
            value = value.get(step) if isinstance(value, dict) and isinstance(step, str) else None
        return value

    def _text(self, column: str) -> str | None:
        value = self._values.get(column)
        if value is None or isinstance(value, str):
            return value
        self._mistyped((column,), value, "a text")
        return None

    def _list(self, path: Path, of: str) -> Sequence[JsonValue]:
        """Return a list, which may be written as JSON; an empty one when there is none."""
        value = decoded(self._at(path))
        if value is None or value == "":
            return ()
        if isinstance(value, list):
            return value
        self._mistyped(path, value, f"a list of {of}")
        return ()

    def _texts(self, path: Path, of: str = "texts") -> list[str]:
        found = []
        for place, each in enumerate(self._list(path, of)):
            if isinstance(each, str):
                found.append(each)
            else:
                self._mistyped((*path, place), each, "a text")
        return found

    def _object(self, column: str) -> JsonObject:
        value = decoded(self._values.get(column))
        if value is None or isinstance(value, dict):
            return value or {}
        self._mistyped((column,), value, "an object")
        return {}

    def _guidelines(self, path: Path) -> Mapping[str, Sequence[str]]:
        """Return guidelines in groups: a list, lists by name, or, of MLflow 3, one text."""
        value = decoded(self._at(path))
        if isinstance(value, str) and value and len(path) > 1:
            return {"": [value]}
        if isinstance(value, dict):
            groups = {name: self._texts((*path, name), "guidelines") for name in value}
        else:
            groups = {"": self._texts(path, "guidelines")}
        return {name: group for name, group in groups.items() if group}

    def _passages(self, *path: str | int) -> tuple[Passage, ...] | None:
        """Return the passages that were, or should be, retrieved; None when the column is missing."""
        if self._at(path) is None:
            return None
        places = enumerate(self._list(path, "objects with 'doc_uri'"))
        return tuple(found for place, each in places if (found := self._passage(each, (*path, place))))

    def _passage(self, value: JsonValue, path: Path) -> Passage | None:
        if not isinstance(value, dict):
            self._mistyped(path, value, "an object with 'doc_uri'")
            return None
        uri, content = value.get("doc_uri"), value.get("content")
        if not isinstance(uri, str):
            what = "has no 'doc_uri'" if uri is None else f"has a 'doc_uri' that is {kind_of(uri)}, not a text"
            self._refuse(f"{_shown(path)} {what}", path, code="json-missing" if uri is None else "json-type")
            return None
        if content is not None and not isinstance(content, str):
            self._mistyped((*path, "content"), content, "a text")
            return None
        return Passage(uri, content)

    # Problems.

    def _note_unknown(self) -> None:
        for key in self._values:
            if key not in _KNOWN and self._is_new(key):
                hint = self._diagnostics.suggest(key, _KNOWN)
                self._note(f"there is no column {key!r}; it is ignored", (key,), code="databricks-column", hint=hint)

    def _is_new(self, key: str) -> bool:
        if key in self._terms.noted or len(self._terms.noted) >= limits.MAX_PROBLEMS:
            return False
        self._terms.noted.add(key)
        return True

    def _mistyped(self, path: Path, value: JsonValue, expected: str) -> None:
        broken = broken_json(value) if isinstance(value, str) else None
        if broken is not None:
            self._refuse(f"{_shown(path)} is broken JSON: {broken}", path, code="json-syntax")
            return
        hint = _LIST_HINT if expected.startswith("a list of") and "objects" not in expected else ""
        self._refuse(f"{_shown(path)} is {kind_of(value)}, not {expected}", path, code="json-type", hint=hint)

    def _refuse(self, message: str, path: Path = (), *, code: str = "databricks-row", hint: str = "") -> None:
        if self._diagnostics.has_all_errors:
            return
        line, column = self._row.file.place((*self._row.path, *path))
        self._diagnostics.error(code, f"row {self._row.number}: {message}", line=line, column=column, hint=hint)

    def _note(self, message: str, path: Path, *, code: str = "databricks-row", hint: str = "") -> None:
        line, column = self._row.file.place((*self._row.path, *path))
        self._diagnostics.warn(code, f"row {self._row.number}: {message}", line=line, column=column, hint=hint)


def _columns(value: JsonObject) -> JsonObject:
    """Return a row's columns; a trace by itself is a row with nothing else."""
    is_trace = {"info", "data"} <= value.keys() and {*_KNOWN}.isdisjoint(value)
    return {"trace": value} if is_trace else value


def _shown(path: Path) -> str:
    """Return a path as users write it: `'retrieved_context[0].content'`."""
    first, *others = path
    inner = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in others)
    return f"'{first}{inner}'"


_ROLES: Final = {
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "agent": "agent",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_CONVERSATIONS: Final = ("messages", "input")
_BEGUN: Final = re.compile(r'\s*\{\s*"(?:messages|input|query)"\s*:')
_QUERIES: Final = ("query", "question", "request", "input", "prompt", "message", "text")


class Request(NamedTuple):
    """One question, and what came before it."""

    utterance: str
    history: tuple[HistoryMessage, ...]
    state: JsonObject


def read_request(value: JsonValue, refuse: Refuse) -> Request:
    """Read a request: a text, `{"messages": [...]}`, `{"query": ..., "history": [...]}`, or the JSON text of one.

    Args:
        value: the request.
        refuse: takes what is wrong: a message, keys and indexes that lead to the value, a hint.
    """
    if isinstance(value, str):
        if not is_request(value):
            if _BEGUN.match(value):
                refuse(f"the request is broken JSON: {broken_json(value)}", (), "")
            return _said(value, refuse)
        value = decoded(value)
    if not isinstance(value, dict):
        refuse(f"the request is {kind_of(value)}, not a text or an object", (), "")
        return Request("", (), {})
    asked = _conversation(value, refuse) or _query(value, ("query",), refuse)
    if asked is None and value.get("query") is not None:
        refuse(f"'query' is {kind_of(value['query'])}, not a text", ("query",), "")
    elif asked is None:
        refuse(
            "the request has neither 'messages' nor 'query'",
            (),
            'Write {"messages": [{"role": "user", "content": "..."}]}, or the question as a text.',
        )
    return asked or Request("", (), {})


def is_request(text: str) -> bool:
    """Return whether a text is a request in JSON, and not the question itself."""
    value = decoded(text)
    return isinstance(value, dict) and not {"query", *_CONVERSATIONS}.isdisjoint(value)


def is_plain(text: str) -> bool:
    """Return whether a text is the question itself, and not a request in JSON or a broken one."""
    return not is_request(text) and not _BEGUN.match(text)


def read_inputs(value: JsonValue, refuse: Refuse) -> Request:
    """Read the inputs of an agent (MLflow 3), in which the question may have any name.

    It is a conversation, the value of a known name such as `question`, the only text that there is, or else all
    inputs as JSON; the state has the others. Takes the same as `read_request`.
    """
    value = decoded(value)
    if isinstance(value, str):
        return _said(value, refuse)
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        refuse(f"the inputs are {kind_of(value)}, not an object", (), "")
        return Request("", (), {})
    inner = next(iter(value.values()), None)
    if len(value) == 1 and isinstance(inner, dict):
        return read_inputs(inner, refuse)
    texts = [key for key, each in value.items() if isinstance(each, str)]
    asked = _conversation(value, refuse) or _query(value, (*_QUERIES, *(texts if len(texts) == 1 else ())), refuse)
    return asked or Request(json.dumps(value, ensure_ascii=False), (), value)


def _said(text: str, refuse: Refuse) -> Request:
    if not text.strip():
        refuse("the request is empty", (), "")
    return Request(text, (), {})


def _conversation(value: JsonObject, refuse: Refuse) -> Request | None:
    """Read a whole conversation; None when there is none."""
    key = next((each for each in _CONVERSATIONS if isinstance(value.get(each), list)), None)
    if key is None:
        if value.get("messages") is not None:
            refuse(f"'messages' are {kind_of(value['messages'])}, not a list", ("messages",), "")
            return Request("", (), {})
        return None
    messages = _messages(value[key], (key,), refuse)
    if messages is None:
        return Request("", (), {})
    last = messages[-1] if messages else None
    if last is None or last.role != "user":
        says = "are none" if last is None else f"end with one of role {last.role!r}"
        refuse(f"the messages {says}, and an agent is asked what a user says last", (key,), "")
        return Request("", (), {})
    return Request(_said(last.message or "", refuse).utterance, tuple(messages[:-1]), _without(value, key))


def _query(value: JsonObject, names: Sequence[str], refuse: Refuse) -> Request | None:
    key = next((each for each in names if isinstance(value.get(each), str)), None)
    text = value[key] if key else None
    if key is None or not isinstance(text, str):
        return None
    history = _messages(value.get("history"), ("history",), refuse)
    return Request(_said(text, refuse).utterance, tuple(history or ()), _without(value, key, "history"))


def _messages(values: JsonValue, path: Path, refuse: Refuse) -> list[HistoryMessage] | None:
    """Read messages, numbered from 0; None when one is not valid. Messages that only call tools are left out."""
    if values is None:
        return []
    if not isinstance(values, list):
        refuse(f"{path[-1]!r} is {kind_of(values)}, not a list of messages", path, "")
        return None
    said = [_message(each, (*path, place), refuse) for place, each in enumerate(values)]
    if None in said:
        return None
    texts = [each for each in said if each and each[1] is not None]
    return [HistoryMessage(role, text, index=place) for place, (role, text) in enumerate(texts)]


def _message(value: JsonValue, path: Path, refuse: Refuse) -> tuple[str, str | None] | None:
    """Read a message's role and text; None when it is not valid."""
    if not isinstance(value, dict):
        refuse(f"a message is {kind_of(value)}, not an object", path, "")
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
        refuse(f"the content of a message is {kind_of(content)}, not a text", (*path, "content"), "")
        return None
    return known, text


def _without(value: JsonObject, *keys: str) -> JsonObject:
    return {key: each for key, each in value.items() if key not in keys and each is not None}
