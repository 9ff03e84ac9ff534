"""What chooses the next step of an agent: a language model, rules, a function of the project, or a recorded run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.errors import SubjectError

if TYPE_CHECKING:
    from evalmeta.engine.subjects.calls import Call
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import Tokens
    from evalmeta.model.json_value import JsonObject, JsonValue

_ANSWER_KEYS: Final = frozenset({"answer", "call", "with"})


@dataclass(frozen=True, slots=True)
class Input:
    """An input that the model chooses."""

    name: str
    type: str
    description: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class Tool:
    """What the model may call, and the inputs that it chooses."""

    name: str
    description: str
    inputs: tuple[Input, ...]

    @property
    def schema(self) -> JsonObject:
        """Return the JSON Schema of the inputs."""
        properties: dict[str, JsonValue] = {
            given.name: {**json_type(given.type), "description": given.description} for given in self.inputs
        }
        required: list[JsonValue] = [given.name for given in self.inputs if given.is_required]
        return {"type": "object", "properties": properties, "required": required}

    def fault(self, chosen: JsonObject) -> str:
        """Return why the tool cannot be called with the inputs that the model chose; empty if it can."""
        if unknown := sorted(chosen.keys() - {given.name for given in self.inputs}):
            return f"{self.name} has no input {', '.join(unknown)}"
        if missing := [given.name for given in self.inputs if given.is_required and chosen.get(given.name) is None]:
            return f"{self.name} needs {', '.join(missing)}"
        return ""


@dataclass(frozen=True, slots=True)
class Request:
    """What the model is asked.

    Attributes:
        turn: the number of the turn, from 1.
        is_first: whether this is the first choice of the turn; it is again if a turn is asked again.
        subagent: the name of the active subagent.
        instructions: the instructions of the script as they are now.
        messages: the conversation as messages of chat completions, with the calls of this turn and their results.
        tools: what may be called now.
        must_call: whether the model must call the only tool instead of answering.
        variables: the values of the script's variables.
        outputs: the outputs of the last action that was called in this turn.
    """

    turn: int
    is_first: bool
    utterance: str
    subagent: str
    instructions: str
    messages: tuple[JsonObject, ...]
    tools: tuple[Tool, ...]
    must_call: bool
    variables: JsonObject
    outputs: JsonObject

    @property
    def offered(self) -> str:
        """Return the names of the tools for a message."""
        return ", ".join(tool.name for tool in self.tools) or "nothing"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model chose; the id is empty if the model gave none."""

    name: str
    inputs: JsonObject
    id: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model chose: calls, or an answer if there are none."""

    answer: str = ""
    calls: tuple[ToolCall, ...] = ()
    tokens: Tokens | None = None


class Chooser(Protocol):
    """Chooses the steps of one conversation."""

    async def choose(self, request: Request) -> Decision:
        """Return the next step; raise SubjectError if there is none."""
        ...


class Model(Protocol):
    """Makes the chooser of each conversation."""

    name: str

    def open(self, case: Case) -> Chooser:
        """Return what chooses the steps of the conversation of a case."""
        ...

    async def close(self) -> None:
        """Release resources."""
        ...


class FunctionModel:
    """A function of the project: it receives the request as a mapping, and returns an answer or a call.

    An answer is a text, or a mapping with `answer`; a call is a mapping with `call`, the name of a tool, and `with`.
    """

    def __init__(self, call: Call, target: str) -> None:
        self._call = call
        self.name = target

    def open(self, case: Case) -> Chooser:
        """Return the function itself: it keeps nothing."""
        return self

    async def choose(self, request: Request) -> Decision:
        """Return what the function chooses."""
        tools: list[JsonObject] = [
            {"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in request.tools
        ]
        asked: JsonObject = {
            "utterance": request.utterance,
            "subagent": request.subagent,
            "instructions": request.instructions,
            "messages": list(request.messages),
            "tools": tools,
            "variables": request.variables,
            "outputs": request.outputs,
        }
        return _decision(await self._call(asked), self.name)

    async def close(self) -> None:
        """Do nothing: threads end with the subject."""


def _decision(result: object, called: str) -> Decision:
    if isinstance(result, str):
        return Decision(answer=result)
    if isinstance(result, dict) and result and result.keys() <= _ANSWER_KEYS:
        answer, call, inputs = result.get("answer"), result.get("call"), result.get("with", {})
        if isinstance(answer, str) and call is None:
            return Decision(answer=answer)
        if isinstance(call, str) and answer is None and isinstance(inputs, dict):
            return Decision(calls=(ToolCall(call, inputs),))
    raise SubjectError(
        f"the model {called} returned {type(result).__name__}; expected a text,"
        ' {"answer": text} or {"call": name, "with": {...}}'
    )


def json_type(kind: str) -> JsonObject:
    """Return the JSON Schema of a type of the language."""
    plain = {"number": "number", "boolean": "boolean", "object": "object", "string": "string"}
    if kind.startswith("list"):
        inner: JsonValue = json_type(kind[len("list[") : -1]) if "[" in kind else {}
        return {"type": "array", "items": inner}
    return {"type": plain[kind]} if kind in plain else {"type": "string"}
