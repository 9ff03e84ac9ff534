"""What one span says, by the conventions that its instrumentation follows.

Read are the GenAI conventions of OpenTelemetry up to 1.36 (events), 1.37 to 1.41 and semantic-conventions-genai 0.1.0
(attributes), those of OpenInference, OpenLLMetry and MLflow, and what pydantic-ai adds. The first rule of a table that
yields a value counts, and its name is kept with the value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evalmeta.model import json_value
from evalmeta.model.generated_data import Passage, Tokens
from evalmeta.model.steps import StepKind
from evalmeta.traces.messages import Call, Message, decoded, messages_of, plain_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.traces.spans import Span

_Fact = TypeVar("_Fact")


class Found(NamedTuple):
    """A rule's name, and the value that it gave."""

    rule: str
    value: object


_OPERATIONS: Final = {
    "chat": StepKind.MODEL,
    "generate_content": StepKind.MODEL,
    "text_completion": StepKind.MODEL,
    "retrieval": StepKind.RETRIEVAL,
    "invoke_agent": StepKind.AGENT,
    "invoke_workflow": StepKind.AGENT,
    "execute_tool": StepKind.TOOL,
}
_KINDS: Final = {
    "AGENT": StepKind.AGENT,
    "CHAIN": StepKind.AGENT,
    "WORKFLOW": StepKind.AGENT,
    "LLM": StepKind.MODEL,
    "CHAT_MODEL": StepKind.MODEL,
    "TOOL": StepKind.TOOL,
    "RETRIEVER": StepKind.RETRIEVAL,
}
_KIND_KEYS: Final = ("openinference.span.kind", "traceloop.span.kind", "mlflow.spanType")
_HANDOFF: Final = re.compile(r"(?:transfer_to_|handoff(?:_to_| to )|transfer to )(\w[\w .-]*)", re.IGNORECASE)
_HANDOFF_TOOLS: Final = frozenset({"transfer_to_agent", "handoff", "handoff_to_agent", "transfer"})
_ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "gcp.vertex.agent.tool_call_args",
    "mlflow.spanInputs",
    "input.value",
)
_RESULTS: Final = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gcp.vertex.agent.tool_response",
    "mlflow.spanOutputs",
    "output.value",
)
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_EVENT_ROLES: Final = {
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.system.message": "system",
}
_CHOICE: Final = "gen_ai.choice"
_ADK_AGENT: Final = re.compile(r"agent_run \[(.+)\]")
_PYDANTIC_MANY_TOOLS: Final = re.compile(r"running \d+ tools?")


def kind_of(span: Span) -> StepKind:
    """Return what a span is about."""
    attributes = span.attributes
    if operation := attributes.get("gen_ai.operation.name"):
        return _OPERATIONS.get(str(operation), StepKind.OTHER)
    for key in _KIND_KEYS:
        if (kind := attributes.get(key)) is not None:
            return _KINDS.get(str(kind).strip('"').upper(), StepKind.OTHER)
    if _ADK_AGENT.fullmatch(span.name):
        return StepKind.AGENT
    if "llm.request.type" in attributes or "gen_ai.request.model" in attributes:
        return StepKind.MODEL
    if "gen_ai.tool.name" in attributes and not _PYDANTIC_MANY_TOOLS.fullmatch(span.name):
        return StepKind.TOOL
    return StepKind.OTHER


def is_conversation(span: Span) -> bool:
    """Return whether a span can be that of a turn: making an agent is not."""
    return span.attributes.get("gen_ai.operation.name") != "create_agent"


def messages_to(span: Span) -> tuple[str, list[Message]]:
    """Return the messages that a model or an agent got, and the rule that found them."""
    return _first(span, _INPUT_RULES, [])


def messages_from(span: Span) -> tuple[str, list[Message]]:
    """Return the messages that a model or an agent returned, and the rule that found them."""
    return _first(span, _OUTPUT_RULES, [])


def _first(span: Span, rules: dict[str, Callable[[Span], _Fact]], absent: _Fact) -> tuple[str, _Fact]:
    for rule, read in rules.items():
        if value := read(span):
            return rule, value
    return "", absent


def _attribute(key: str, *, role: str) -> Callable[[Span], list[Message]]:
    return lambda span: messages_of(_unquoted(span.attributes.get(key)), role=role)


def _unquoted(value: JsonValue) -> JsonValue:
    """Return a value as `decoded` does; MLflow also quotes texts as JSON."""
    return json_value.decoded(value) if isinstance(value, str) and value.startswith('"') else decoded(value)


def _events(*names: str) -> Callable[[Span], list[Message]]:
    def read(span: Span) -> list[Message]:
        messages = []
        for event in span.events:
            if event.name in names:
                role = _EVENT_ROLES.get(event.name, "assistant")
                messages += messages_of(_event_message(event.attributes, role), role=role)
        return messages

    return read


def _event_message(attributes: JsonObject, role: str) -> JsonValue:
    message = decoded(attributes.get("message"))
    if isinstance(message, dict):
        return {"role": role, **message}
    content = attributes.get("content", message)
    return {
        "role": role,
        "content": decoded(content),
        "tool_calls": decoded(attributes.get("tool_calls")),
        **_id(attributes),
    }


def _id(attributes: JsonObject) -> JsonObject:
    return {"id": attributes["id"]} if attributes.get("id") else {}


def _details(key: str) -> Callable[[Span], list[Message]]:
    def read(span: Span) -> list[Message]:
        found = [messages_of(event.attributes.get(key)) for event in span.events if event.name == _DETAILS]
        return next((messages for messages in found if messages), [])

    return read


def _flat(prefix: str, *, inner: str) -> Callable[[Span], list[Message]]:
    """Return a rule for messages that stand in attributes with numbers, such as `llm.input_messages.0.message.role`."""
    pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.{re.escape(inner)}(.+)")

    def read(span: Span) -> list[Message]:
        fields: dict[int, dict[str, JsonValue]] = defaultdict(dict)
        for key, value in span.attributes.items():
            if match := pattern.fullmatch(key):
                fields[int(match[1])][match[2]] = value
        return [_flat_message(fields[number]) for number in sorted(fields)]

    return read


_FLAT_CALL: Final = re.compile(r"tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)")
_FLAT_TEXT: Final = re.compile(r"contents\.(\d+)\.message_content\.text")


def _flat_message(fields: dict[str, JsonValue]) -> Message:
    calls: dict[int, dict[str, JsonValue]] = defaultdict(dict)
    texts = {}
    for key, value in fields.items():
        if match := _FLAT_CALL.fullmatch(key):
            calls[int(match[1])][match[2]] = value
        elif match := _FLAT_TEXT.fullmatch(key):
            texts[int(match[1])] = str(value)
    content = fields.get("content")
    text = content if isinstance(content, str) else "".join(texts[number] for number in sorted(texts))
    role = str(fields.get("role", "assistant"))
    made = (calls[number] for number in sorted(calls))
    named = tuple(
        Call(str(call.get("id", "")), str(call["name"]), decoded(call.get("arguments", {})))
        for call in made
        if "name" in call
    )
    call_id = fields.get("tool_call_id")
    results = ((str(call_id), decoded(text)),) if role == "tool" and call_id else ()
    return Message(role, text, named, results)


_INPUT_RULES: Final[dict[str, Callable[[Span], list[Message]]]] = {
    "gen_ai.input.messages": _attribute("gen_ai.input.messages", role="user"),
    "event operation.details": _details("gen_ai.input.messages"),
    "llm.input_messages": _flat("llm.input_messages", inner="message."),
    "gen_ai.prompt": _flat("gen_ai.prompt", inner=""),
    "pydantic_ai.all_messages": _attribute("pydantic_ai.all_messages", role="user"),
    "events gen_ai.*.message": _events(*_EVENT_ROLES),
    "gcp.vertex.agent.llm_request": _attribute("gcp.vertex.agent.llm_request", role="user"),
    "mlflow.spanInputs": _attribute("mlflow.spanInputs", role="user"),
    "input.value": _attribute("input.value", role="user"),
    "traceloop.entity.input": lambda span: _traceloop(span, "input"),
}
_OUTPUT_RULES: Final[dict[str, Callable[[Span], list[Message]]]] = {
    "gen_ai.output.messages": _attribute("gen_ai.output.messages", role="assistant"),
    "event operation.details": _details("gen_ai.output.messages"),
    "llm.output_messages": _flat("llm.output_messages", inner="message."),
    "gen_ai.completion": _flat("gen_ai.completion", inner=""),
    "event gen_ai.choice": _events(_CHOICE),
    "gcp.vertex.agent.llm_response": _attribute("gcp.vertex.agent.llm_response", role="assistant"),
    "mlflow.spanOutputs": _attribute("mlflow.spanOutputs", role="assistant"),
    "output.value": _attribute("output.value", role="assistant"),
    "traceloop.entity.output": lambda span: _traceloop(span, "output"),
}


def _traceloop(span: Span, way: str) -> list[Message]:
    value = decoded(span.attributes.get(f"traceloop.entity.{way}"))
    return (
        messages_of(value.get(f"{way}s"), role="user" if way == "input" else "assistant")
        if isinstance(value, dict)
        else []
    )


def final_result(span: Span) -> str:
    """Return the answer that the span of an agent of pydantic-ai has; empty for others."""
    return _text(span.attributes.get("final_result"))


def agent_of(span: Span) -> tuple[str, str]:
    """Return the name of the agent that a span belongs to, and the rule that found it."""
    for key in ("gen_ai.agent.name", "agent.name", "gen_ai.workflow.name", "traceloop.workflow.name", "agent_name"):
        if name := _text(span.attributes.get(key)):
            return key, name
    metadata = decoded(span.attributes.get("metadata"))
    if isinstance(metadata, dict) and (name := _text(metadata.get("lc_agent_name"))):
        return "metadata.lc_agent_name", name
    if match := _ADK_AGENT.fullmatch(span.name):
        return "name of the span agent_run", match[1]
    kind = _text(span.attributes.get("openinference.span.kind"))
    return ("name of the AGENT span", span.name) if kind == "AGENT" or _is_mlflow_agent(span) else ("", "")


def _is_mlflow_agent(span: Span) -> bool:
    return _text(span.attributes.get("mlflow.spanType")).strip('"') == "AGENT"


def session_of(span: Span) -> str:
    """Return the conversation that a span belongs to; empty if it names none."""
    keys = (
        "gen_ai.conversation.id",
        "session.id",
        "traceloop.association.properties.thread_id",
        "mlflow.trace.session",
        "gcp.vertex.agent.session_id",
    )
    return next((text for key in keys if (text := _text(span.attributes.get(key)))), "")


def tokens_of(span: Span) -> Tokens | None:
    """Return the tokens that one call of a model used; None if its span has none."""
    attributes = span.attributes
    pairs = (
        ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        ("llm.token_count.prompt", "llm.token_count.completion"),
        ("gen_ai.aggregated_usage.input_tokens", "gen_ai.aggregated_usage.output_tokens"),
    )
    for into, out in pairs:
        if into in attributes or out in attributes:
            cached = attributes.get(
                "gen_ai.usage.cache_read.input_tokens", attributes.get("llm.token_count.prompt_details.cache_read")
            )
            return Tokens(_count(attributes.get(into)), _count(attributes.get(out)), _count(cached), model_of(span))
    usage = decoded(attributes.get("mlflow.chat.tokenUsage"))
    if isinstance(usage, dict):
        return Tokens(_count(usage.get("input_tokens")), _count(usage.get("output_tokens")), None, model_of(span))
    return None


def model_of(span: Span) -> str:
    """Return the model of a call; empty if it is unknown."""
    keys = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "mlflow.llm.model")
    names = (_text(_unquoted(span.attributes.get(key))) for key in keys)
    return next((name for name in names if name and name != "unknown"), "")


def tool_of(span: Span) -> str:
    """Return the name of the tool that a span calls."""
    named = span.attributes.get("gen_ai.tool.name") or span.attributes.get("tool.name")
    return _text(named) or span.name.removeprefix("execute_tool ").removesuffix(".tool")


def call_id_of(span: Span) -> str:
    """Return the id of a call of a tool; empty if the span has none."""
    return _text(span.attributes.get("gen_ai.tool.call.id")) or _text(span.attributes.get("tool_call.id"))


def arguments_of(span: Span) -> JsonObject | None:
    """Return the arguments of a tool's span; None if they are absent or not an object."""
    keys = (
        "gen_ai.tool.call.arguments",
        "tool_arguments",
        "gcp.vertex.agent.tool_call_args",
        "mlflow.spanInputs",
        "input.value",
    )
    for key in keys:
        if isinstance(value := decoded(span.attributes.get(key)), dict):
            return value
    sent = [message for message in _events("gen_ai.tool.message")(span) if message.text or message.results]
    value = decoded(sent[0].text) if sent else None
    return value if isinstance(value, dict) else None


def result_of(span: Span) -> JsonValue:
    """Return what a tool's span says that the tool returned; None if it is absent."""
    for key in (
        "gen_ai.tool.call.result",
        "tool_response",
        "gcp.vertex.agent.tool_response",
        "mlflow.spanOutputs",
        "output.value",
    ):
        if key in span.attributes:
            return plain_result(_content(_unquoted(span.attributes[key])))
    choices = _events(_CHOICE)(span)
    if choices:
        return decoded(choices[0].text)
    results = [value for message in _details("gen_ai.output.messages")(span) for _, value in message.results]
    return plain_result(results[0]) if results else None


def _content(value: JsonValue) -> JsonValue:
    """Return the content of a message of LangChain, which OpenLLMetry writes into `output`; others unchanged."""
    if not isinstance(value, dict):
        return value
    if isinstance(output := value.get("output"), dict) and "lc" in output:
        return _content(output)
    for key in ("data", "kwargs"):
        if isinstance(data := value.get(key), dict) and data.get("type") == "tool":
            return decoded(data.get("content"))
    return value


def error_of(span: Span) -> str | None:
    """Return why a span failed; None if it did not."""
    if span.error is None:
        return None
    for event in span.events:
        if event.name == "exception":
            kind, message = (_text(event.attributes.get(f"exception.{key}")) for key in ("type", "message"))
            return ": ".join(filter(None, (kind, message))) or "an exception"
    return span.error or _text(span.attributes.get("error.type")) or "an error without a message"


def is_handoff(name: str) -> bool:
    """Return whether a tool hands the conversation to another agent."""
    return name in _HANDOFF_TOOLS or bool(_HANDOFF.fullmatch(name))


def passages_of(span: Span) -> list[Passage]:
    """Return the passages that a retrieval found."""
    documents = decoded(span.attributes.get("gen_ai.retrieval.documents"))
    if not isinstance(documents, list):
        documents = list(_flat_documents(span)) or _mlflow_documents(span)
    return [_passage(document) for document in documents if isinstance(document, dict)]


def _flat_documents(span: Span) -> Iterator[JsonObject]:
    pattern = re.compile(r"retrieval\.documents\.(\d+)\.document\.(\w+)")
    fields: dict[int, dict[str, JsonValue]] = defaultdict(dict)
    for key, value in span.attributes.items():
        if match := pattern.fullmatch(key):
            fields[int(match[1])][match[2]] = decoded(value)
    for number in sorted(fields):
        yield fields[number]


def _mlflow_documents(span: Span) -> list[JsonValue]:
    value = decoded(span.attributes.get("mlflow.spanOutputs"))
    return value if isinstance(value, list) else []


def _passage(document: JsonObject) -> Passage:
    metadata = document.get("metadata")
    sources = metadata if isinstance(metadata, dict) else {}
    named = next((text for key in ("doc_uri", "source", "url", "uri") if (text := _text(sources.get(key)))), "")
    content = next((document[key] for key in ("content", "page_content") if key in document), None)
    return Passage(named or str(document.get("id") or ""), content if isinstance(content, str) else None)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
