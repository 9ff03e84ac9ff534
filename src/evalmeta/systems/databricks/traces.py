"""MLflow traces (schemas 2 and 3), read as an agent's answer, actions and passages.

Every attribute of a span is a JSON text. Tools are the spans of type TOOL by their start; the passages are the output
of the last RETRIEVER span that is not inside another one; request and response are the root span's inputs and outputs.
A trace without spans does not say which tools were called.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.diagnostics import kind_of
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.json_value import JsonObject, JsonValue, decoded
from evalmeta.model.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_TEXT_KEYS: Final = ("response", "content", "output", "answer", "text", "result", "output_text")


def broken_json(text: str) -> str | None:
    """Describe the error in a text that begins like a list or object of JSON; None for any other text."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f"{error.msg} at character {error.pos + 1}"
    return None


def response_text(value: JsonValue) -> str:
    """Return an answer's text; JSON for a value of an unknown shape, and an empty text for None."""
    if value is None:
        return ""
    text = known_text(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def known_text(value: JsonValue) -> str | None:
    """Return the text of a text, a chat completion, messages or the Responses API; None for anything else.

    A list of messages has the text of the last one, any other list that of the first, as in MLflow.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _last_text(value) if all(isinstance(item, dict) for item in value) else known_text(value[0])
    return _object_text(value) if isinstance(value, dict) else None


def _object_text(value: JsonObject) -> str | None:
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return known_text(choices[0].get("message"))
    for key in ("messages", "output"):
        if isinstance(value.get(key), list):
            return _last_text(value[key])
    for key in _TEXT_KEYS:
        if (text := content_text(value.get(key))) is not None:
            return text
    return None


def _last_text(values: JsonValue) -> str | None:
    """Return the text of the last message that has one; arguments of tool calls do not count."""
    if not isinstance(values, list):
        return None
    texts = (known_text(value) for value in reversed(values))
    return next((text for text in texts if text is not None), None)


def content_text(content: JsonValue) -> str | None:
    """Return a message's content: a text, or the joined texts of a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    said = [text for text in texts if isinstance(text, str)]
    return "".join(said) if said else None


_SECONDS: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")
_TOKEN_KEYS: Final = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
_MOST: Final = 2**63


@dataclass(frozen=True, slots=True)
class MlflowTrace:
    """A trace, read."""

    id: str  # empty when it has none
    request: JsonValue  # the question, from the root span or the trace; None when neither has it
    generated: GeneratedData  # the answer, which is empty when the trace has none, and the actions
    error: str = ""  # in which the agent ended; empty if it answered
    step_errors: Mapping[str, str] = field(default_factory=dict)  # by the names of spans, if the agent answered
    expectations: JsonObject = field(default_factory=dict)  # values by their names, such as `expected_response`


def read_trace(value: JsonValue) -> MlflowTrace:
    """Read a trace, an object or its JSON text; raise FormatError, without a place, if it is not a valid trace."""
    value = decoded(value)
    if not isinstance(value, dict):
        raise _no_trace(f"it is {kind_of(value)}, not an object or the JSON text of one")
    info, data = value.get("info"), value.get("data")
    if not isinstance(info, dict) or not isinstance(data, dict):
        missing = " and ".join(repr(key) for key in ("info", "data") if not isinstance(value.get(key), dict))
        raise _no_trace(f"it has no {missing}")
    spans = data.get("spans", [])
    if not isinstance(spans, list):
        raise _no_trace(f"its spans are {kind_of(spans)}, not a list")
    return _Reader(value, info, data, [_Span(span, place) for place, span in enumerate(spans, 1)]).trace()


def _no_trace(reason: str) -> FormatError:
    return FormatError(
        f"this is not a valid MLflow trace: {reason}",
        actions=("Write what `Trace.to_json()` or `Trace.to_dict()` of MLflow returns.",),
    )


class _Span:
    """One step of the agent, of either schema."""

    def __init__(self, value: JsonValue, place: int) -> None:
        if not isinstance(value, dict):
            raise _no_trace(f"span {place} is {kind_of(value)}, not an object")
        context = value.get("context")
        own = context if isinstance(context, dict) else value
        attributes = value.get("attributes")
        self._attributes: JsonObject = attributes if isinstance(attributes, dict) else {}
        self.id = _text(own.get("span_id"))
        self.parent = _text(value.get("parent_span_id") or value.get("parent_id"))
        self.own_name = _text(value.get("name"))
        self.start = _number(value.get("start_time_unix_nano", value.get("start_time")))
        self.end = _number(value.get("end_time_unix_nano", value.get("end_time")))
        self.type = _text(self.attribute("mlflow.spanType"))
        self.inputs = self.attribute("mlflow.spanInputs")
        self.outputs = self.attribute("mlflow.spanOutputs")
        self.error = _span_error(value)

    def attribute(self, name: str) -> JsonValue:
        return decoded(self._attributes.get(name))

    @property
    def name(self) -> str:
        """Return the tool's name: that of its call, or else that of the span."""
        call = self.inputs.get("call") if isinstance(self.inputs, dict) else None
        called = call.get("tool_name") if isinstance(call, dict) else None
        return called if isinstance(called, str) and called else self.own_name

    @property
    def latency_ms(self) -> float | None:
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return (self.end - self.start) / 1_000_000

    @property
    def usage(self) -> Tokens | None:
        """Return its tokens: those that MLflow recorded, or else those in the model's answer."""
        usage = self.attribute("mlflow.chat.tokenUsage")
        if not isinstance(usage, dict) and self.type in {"LLM", "CHAT_MODEL"} and isinstance(self.outputs, dict):
            usage = self.outputs.get("usage")
        return _tokens(usage)

    def action(self) -> Action:
        given = {} if self.inputs is None else {"input": self.inputs}
        return Action(self.name, self.inputs if isinstance(self.inputs, dict) else given, self.outputs, self.latency_ms)


class _Reader:
    def __init__(self, value: JsonObject, info: JsonObject, data: JsonObject, spans: Sequence[_Span]) -> None:
        self._value = value
        self._info = info
        self._data = data
        self._spans = sorted(spans, key=lambda span: span.start or 0)
        self._by_id = {span.id: span for span in spans if span.id}
        self._root = next((span for span in spans if not span.parent), None)
        groups = (info.get(key) for key in ("trace_metadata", "request_metadata"))
        self._metadata: JsonObject = next((group for group in groups if isinstance(group, dict)), {})

    def trace(self) -> MlflowTrace:
        trace_id = _text(self._info.get("trace_id") or self._info.get("request_id"))
        request = self._first(self._root.inputs if self._root else None, "request", "mlflow.traceInputs")
        generated = self._generated()
        error = self._error(generated)
        steps = {} if error else {span.own_name: span.error for span in self._spans if span.error}
        return MlflowTrace(trace_id, request, generated, error, steps, dict(self._expectations()))

    def _error(self, generated: GeneratedData) -> str:
        states = (place.get(key) for place in (self._info, self._value) for key in ("state", "status"))
        state = next((text for text in states if isinstance(text, str)), "").upper()
        if state.endswith("IN_PROGRESS") and not generated.outcome:
            return "the trace was recorded before the agent had answered"
        if not state.endswith("ERROR"):
            return ""
        root = self._root.error if self._root else ""
        step = next((f"{span.own_name}: {span.error}" for span in self._spans if span.error), "")
        return f"the recorded agent ended in an error: {root or step or 'the trace does not say which'}"

    def _expectations(self) -> Iterator[tuple[str, JsonValue]]:
        """Yield what people noted as expected (`mlflow.log_expectation`); values other than texts may be serialised."""
        assessments = self._info.get("assessments")
        for assessment in assessments if isinstance(assessments, list) else ():
            noted = assessment.get("expectation") if isinstance(assessment, dict) else None
            if isinstance(assessment, dict) and isinstance(noted, dict) and assessment.get("valid") is not False:
                serialised = noted.get("serialized_value")
                value = decoded(serialised.get("value")) if isinstance(serialised, dict) else noted.get("value")
                yield _text(assessment.get("assessment_name") or assessment.get("name")), value

    def _first(self, of_root: JsonValue, name: str, in_metadata: str) -> JsonValue:
        """Return the first that exists: the value of the root span, of the data, of the metadata, or the preview."""
        candidates = (self._data.get(name), self._metadata.get(in_metadata), self._info.get(f"{name}_preview"))
        return next((decoded(value) for value in candidates if value is not None), None) if of_root is None else of_root

    def _generated(self) -> GeneratedData:
        response = self._first(self._root.outputs if self._root else None, "response", "mlflow.traceOutputs")
        return GeneratedData(
            response_text(response),
            actions=self._actions(),
            latency_ms=self._latency(),
            session_id=_text(self._metadata.get("mlflow.trace.session")) or None,
            tokens=self._tokens(),
            trace=self._value if len(json.dumps(self._value)) <= limits.MAX_ANSWER_CHARS else None,
            retrieved=self._retrieved(),
        )

    def _actions(self) -> tuple[Action, ...] | None:
        """Return the tool calls: spans of type TOOL, or else those in what chat models answered (autologging)."""
        if not self._spans:
            return None
        tools = tuple(span.action() for span in self._spans if span.type == "TOOL")
        return tools or tuple(_called_tools([span for span in self._spans if span.type == "CHAT_MODEL"]))

    def _latency(self) -> float | None:
        for key in ("execution_duration_ms", "execution_time_ms", "execution_duration"):
            value = self._info.get(key)
            if isinstance(value, str) and (seconds := _SECONDS.fullmatch(value)):
                return float(seconds[1]) * 1000
            if (number := _number(value)) is not None and number >= 0:
                return float(number)
        return None if self._root is None else self._root.latency_ms

    def _tokens(self) -> Tokens | None:
        noted = _tokens(decoded(self._metadata.get("mlflow.trace.tokenUsage")))
        if noted is not None:
            return noted
        # The tokens of a span include those of the spans inside it.
        outermost = (span for span in self._spans if all(above.usage is None for above in self._above(span)))
        used = [usage for span in outermost if (usage := span.usage)]
        counts = _sum([tokens.input for tokens in used]), _sum([tokens.output for tokens in used])
        return Tokens(*counts) if used else None

    def _above(self, span: _Span) -> Iterator[_Span]:
        """Yield the ancestors of a span, each once even in a damaged trace."""
        seen = {span.id}
        while (above := self._by_id.get(span.parent)) is not None and above.id not in seen:
            seen.add(above.id)
            yield above
            span = above

    def _retrieved(self) -> tuple[Passage, ...] | None:
        spans = [span for span in self._spans if span.type == "RETRIEVER"]
        outermost = [span for span in spans if all(above.type != "RETRIEVER" for above in self._above(span))]
        if not outermost:
            return None
        chunks = outermost[-1].outputs
        return tuple(_passage(chunk) for chunk in chunks if isinstance(chunk, dict)) if isinstance(chunks, list) else ()


def _called_tools(models: Sequence[_Span]) -> Iterator[Action]:
    """Yield the calls in the answers of chat models, each once, with the outputs that a later model received."""
    outputs: dict[str, JsonValue] = {}
    for span in models:
        for message in _messages(span.inputs):
            # The Responses API has items of its own for outputs.
            if message.get("role") == "tool":
                outputs[_text(message.get("tool_call_id"))] = decoded(message.get("content"))
            elif message.get("type") == "function_call_output":
                outputs[_text(message.get("call_id"))] = decoded(message.get("output"))
    seen = set[str]()
    for call in (call for span in models for call in _calls(span.outputs)):
        function = call.get("function")
        named = function if isinstance(function, dict) else call
        call_id = _text(call.get("call_id") or call.get("id"))
        if not call_id or call_id not in seen:
            seen.add(call_id)
            given = decoded(named.get("arguments"))
            yield Action(_text(named.get("name")), given if isinstance(given, dict) else {}, outputs.get(call_id))


def _messages(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        value = value.get("messages") or value.get("input")
    return (message for message in value if isinstance(message, dict)) if isinstance(value, list) else iter(())


def _calls(value: JsonValue) -> Iterator[JsonObject]:
    """Yield the tool calls in a chat completion, a message, or a response of the Responses API."""
    if not isinstance(value, dict):
        return
    choices, output = value.get("choices"), value.get("output")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield from _calls(choice.get("message"))
    for item in output if isinstance(output, list) else ():
        if isinstance(item, dict) and item.get("type") == "function_call":
            yield item
    calls = value.get("tool_calls")
    yield from (call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()


def _span_error(span: JsonObject) -> str:
    """Return the exception or the status of a span that ended in an error, without the stack; else an empty text."""
    status = span.get("status")
    code, message = (status.get("code"), status.get("message")) if isinstance(status, dict) else (status, None)
    if not _text(span.get("status_code") or code).upper().endswith("ERROR"):
        return ""
    events = span.get("events")
    for event in reversed(events) if isinstance(events, list) else ():
        attributes = event.get("attributes") if isinstance(event, dict) else None
        if isinstance(attributes, dict) and (text := _exception(attributes)):
            return text
    return redacted(_text(message or span.get("status_message"))) or "it does not say which"


def _exception(attributes: JsonObject) -> str:
    parts = (_text(attributes.get(f"exception.{name}")) for name in ("type", "message"))
    return redacted(": ".join(filter(None, parts)))


def _passage(chunk: JsonObject) -> Passage:
    metadata = chunk.get("metadata")
    uri = metadata.get("doc_uri") if isinstance(metadata, dict) else None
    content = next((chunk[key] for key in ("page_content", "content", "text") if isinstance(chunk.get(key), str)), None)
    return Passage(_text(uri or chunk.get("doc_uri")), content if isinstance(content, str) else None)


def _tokens(usage: JsonValue) -> Tokens | None:
    if not isinstance(usage, dict):
        return None
    counts = [
        next((count for key in keys if (count := _count(usage.get(key))) is not None), None) for keys in _TOKEN_KEYS
    ]
    return None if counts == [None, None] else Tokens(counts[0], counts[1])


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _count(value: JsonValue) -> int | None:
    number = _number(value)
    return int(number) if number is not None and 0 <= number < _MOST and number == int(number) else None


def _number(value: JsonValue) -> float | None:
    """Return a number; protobuf writes long ones as texts."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= limits.MAX_NUMBER_CHARS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < _MOST else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
