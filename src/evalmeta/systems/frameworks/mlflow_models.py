"""Agents of MLflow: `ResponsesAgent`, `ChatAgent`, and models that `mlflow.pyfunc.load_model` returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast
from uuid import uuid4

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import chat_messages, context_of
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.kinds import AgentKind
from evalmeta.errors import SubjectError

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


class _Model(Protocol):
    def predict(self, request: object) -> object: ...


def _open(agent: object, case: Case) -> _Conversation:
    # What MLflow notes with a model that it saves.
    noted = getattr(getattr(agent, "metadata", None), "metadata", None) or {}
    names = {ancestor.__name__ for ancestor in type(agent).__mro__}
    if "ResponsesAgent" in names or noted.get("task") == "agent/v1/responses":
        return _Conversation(cast("_Model", agent), case, key="input")
    is_chat = "ChatAgent" in names or noted.get("task") == "agent/v2/chat"
    return _Conversation(cast("_Model", agent), case, key="messages" if is_chat else "")


# Members of a request which MLflow knows. A ChatAgent does not receive others, so they are custom inputs.
_OWN: Final = ("context", "custom_inputs")


class _Conversation(NothingToClose):
    """One conversation: every request has all messages so far."""

    def __init__(self, model: _Model, case: Case, *, key: str) -> None:
        self._model = model
        self._key = key
        self._id = uuid4().hex
        given = context_of(case)
        own = [value if isinstance(value := given.pop(name, None), dict) else {} for name in _OWN]
        self._context = {"conversation_id": self._id, **own[0]}
        self._custom = {**own[1], **given}
        self._messages: list[object] = [*chat_messages(case)]

    # A plain function, because models are called synchronously: it runs in a thread.
    def ask(self, utterance: JsonValue) -> object:
        if isinstance(utterance, Mapping):
            # A request as Databricks sends it to any agent has messages; a ResponsesAgent calls them input.
            request = {self._key or key if key == "messages" else key: value for key, value in utterance.items()}
            reply = self._model.predict(request)
            return self._answer(_members(reply)) if self._key else reply
        if not self._key:
            raise SubjectError(
                "the model is not a ResponsesAgent or a ChatAgent, so it cannot be asked a text",
                actions=("Write the input of the case as a mapping with the model's inputs.",),
            )
        self._messages += utterance if isinstance(utterance, list) else [{"role": "user", "content": utterance}]
        custom = {"custom_inputs": self._custom} if self._custom else {}
        reply = self._model.predict({self._key: [*self._messages], "context": self._context, **custom})
        members = _members(reply)
        said = members.get("output" if self._key == "input" else "messages")
        self._messages += said if isinstance(said, list) else []
        return self._answer(members)

    def _answer(self, reply: Mapping[str, object]) -> Mapping[str, object]:
        custom = reply.get("custom_outputs")
        topic = custom.get("topic") if isinstance(custom, Mapping) else None
        answer = answer_of(reply) or {"outcome": reply}
        return {
            **answer,
            "topic": topic if isinstance(topic, str) else None,
            "tokens": answer.get("tokens") or _tokens(reply.get("usage")),
            "session_id": self._id,
        }


def _members(reply: object) -> Mapping[str, object]:
    dump = getattr(reply, "model_dump", None)
    members: object = dump(exclude_none=True) if callable(dump) else reply
    if not isinstance(members, Mapping):
        raise SubjectError(f"the model returned {type(reply).__name__}; expected a response with its messages")
    return cast("Mapping[str, object]", members)


def _tokens(usage: object) -> dict[str, object] | None:
    if not isinstance(usage, Mapping):
        return None
    return {"input": usage.get("prompt_tokens"), "output": usage.get("completion_tokens")}


MLFLOW: Final = AgentKind(
    classes=frozenset({"ResponsesAgent", "ChatAgent", "PyFuncModel"}),
    open=_open,
    needs=("predict",),
    requires="mlflow>=3.1",
)
