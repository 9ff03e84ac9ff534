"""A custom scorer as a value: an AiAgentScorerDefinition, the version of it that judges, and its prompt.

Sources of the merge fields in prompts: @salesforce/agents, `agentScorers/promptContent` and
`engines/promptTemplateEngine` (the inputs of a template and their values); the data actions `getSession` and
`getLastInteraction` feed the same data. Texts of the conversation never become a part of the prompt: the prompt
refers to the message that has them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from evalmeta.model.definition import HistoryMessage
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import EarlierTurn


_JSON_TYPES: Final = {f"lightning__{name}Type": name for name in ("number", "integer", "boolean")}
_TEXT_TYPES: Final = ("text", "multilineText", "richText")
_OTHER_TYPES: Final = ("date", "dateTime", "dateTimeString", "url", "object", "list")
LIGHTNING_TYPES: Final = tuple(
    f"lightning__{name}Type" for name in (*_TEXT_TYPES, *_JSON_TYPES.values(), *_OTHER_TYPES)
)
"""The types of scores that the sf CLI accepts (@salesforce/agents, `agentScorers/types`)."""
_FIELD: Final = re.compile(r"\{!\s*\$?([^{}]*?)\s*\}")
_DATA: Final = (
    (re.compile(r"SalesforceDataAction:getSession\.chatTranscript"), "transcript"),
    (re.compile(r"(?:Input|SalesforceDataAction):(?:Session|getSession)((?:\.\w+)*)"), "session"),
    (re.compile(r"SalesforceDataAction:getLastInteraction((?:\.\w+)*)"), "lastInteraction"),
)
_INPUTS: Final = ("Input:AllowedLabels", "Input:FallbackLabel", "Input:AllowedRange")


@dataclass(frozen=True, slots=True)
class OutputValue:
    """A label that a scorer can give."""

    value: str
    outcome: str
    is_fallback: bool = False
    is_system_fallback: bool = False


@dataclass(frozen=True, slots=True)
class AgentAssociation:
    """An agent whose sessions a scorer version scores; `sampling_rate` is None if the file has none."""

    agent: str
    is_active: bool
    sampling_rate: str | None = None


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The range of numeric scores, and the least score that passes; None where the file says nothing."""

    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class ScorerVersion:
    """One version of a scorer; `number` is None if it is not a whole number."""

    number: int | None
    status: str
    engine: str
    engine_ref: str = ""
    outputs: tuple[OutputValue, ...] = ()
    associations: tuple[AgentAssociation, ...] = ()
    values: ValueRange = ValueRange()


@dataclass(frozen=True, slots=True)
class AgentScorer:
    """A custom scorer of Agentforce Studio."""

    data_type: str = ""
    lightning_type: str | None = None
    versions: tuple[ScorerVersion, ...] = ()

    @property
    def version_in_use(self) -> ScorerVersion | None:
        """Return the Available version with the highest number (@salesforce/agents, `selectScorerVersion`)."""
        available = [version for version in self.versions if version.status == "Available"]
        return max(available, key=lambda version: version.number or 0, default=None)

    @property
    def version_list(self) -> str:
        """Return the versions with their statuses, for messages."""
        return ", ".join(f"{version.number} is {version.status}" for version in self.versions) or "it has none"

    @property
    def json_type(self) -> str:
        """Return the JSON type of the scores: `number`, `integer`, `boolean` or `string`."""
        if self.data_type == "Number":
            return "number"
        return _JSON_TYPES.get(self.lightning_type or "", "string")


@dataclass(frozen=True, slots=True)
class PromptScorer:
    """A scorer that a language model can carry out: the version in use, and the text of its prompt template."""

    name: str
    version: int
    prompt: str  # the text of the template, with its merge fields
    json_type: str = "string"  # the JSON type of the scores, if there are no labels
    labels: tuple[OutputValue, ...] = ()  # the labels that can be given
    values: ValueRange = ValueRange()
    item_type: str = ""  # the JSON type of the items, if the scores are lists

    @property
    def fallback(self) -> str:
        """Return the label if no other applies; without one, the last label (@salesforce/agents, `deriveInputs`)."""
        named = [label.value for label in self.labels if label.is_fallback]
        return (named or [label.value for label in self.labels[-1:]] or [""])[0]

    @property
    def is_numeric(self) -> bool:
        """Return whether the scores are numbers."""
        return not self.labels and self.json_type in {"number", "integer"}


def scorer_of_terms(name: str, terms: JsonObject) -> PromptScorer:
    """Return the scorer whose prompt an expectation has itself: `prompt`, `type`, `items` and `labels`.

    A label passes or fails by its outcome, Pass or Fail, and is only reported without one.
    """
    labels = terms.get("labels")
    given = labels if isinstance(labels, dict) else {}
    outputs = tuple(OutputValue(label, str(outcome)) for label, outcome in given.items())
    item_type, json_type = str(terms.get("items", "")), str(terms.get("type", "string"))
    return PromptScorer(name, 1, str(terms["prompt"]), json_type, outputs, item_type=item_type)


FindScorer: TypeAlias = Callable[[str], PromptScorer | str]
"""Finds a custom scorer by its name; the text says why nothing can judge by it, and what to do."""


def read_number(text: str | None) -> float | None:
    """Return a number that a file contains as text; None if it is not a finite number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def unknown_fields(prompt: str) -> tuple[str, ...]:
    """Return the merge fields that only an org can fill, such as `{!$Flow:Orders}`, each once."""
    fields = (match for match in _FIELD.finditer(prompt) if match[1] not in _INPUTS and not _data_of(match[1])[0])
    return tuple(dict.fromkeys(match[0] for match in fields))


def data_keys(prompt: str) -> frozenset[str]:
    """Return which data the prompt refers to: `session`, `transcript` or `lastInteraction`."""
    return frozenset(key for match in _FIELD.finditer(prompt) if (key := _data_of(match[1])[0]))


def filled_prompt(scorer: PromptScorer) -> str:
    """Return a scorer's prompt with its merge fields filled; those of the conversation name a key of the message."""
    labels = ", ".join(label.value for label in scorer.labels)
    inputs = dict(zip(_INPUTS, (labels, scorer.fallback, range_text(scorer.values)), strict=True))

    def value(field: re.Match[str]) -> str:
        key, path = _data_of(field[1])
        return f"(the value of {key}{path} in the user message)" if key else inputs.get(field[1], field[1])

    return _FIELD.sub(value, scorer.prompt)


def range_text(values: ValueRange) -> str:
    """Return a range of numbers as text: `1 to 5 in steps of 1`; empty if there is none."""
    least, most = values.minimum, values.maximum
    if least is None and most is None:
        return ""
    text = f"{least:g} to {most:g}" if least is not None and most is not None else ""
    text = text or (f"{most:g} or less" if least is None else f"{least:g} or more")
    return text if values.step is None else f"{text} in steps of {values.step:g}"


def _data_of(field: str) -> tuple[str, str]:
    """Return the key of the data that a merge field refers to, and the path into it; both are empty for others."""
    matches = ((pattern.fullmatch(field), key) for pattern, key in _DATA)
    return next(((key, match[1] if match.re.groups else "") for match, key in matches if match), ("", ""))


ACTION_STEP: Final = "ACTION_STEP"
"""The type of a step that invoked an action (ssot__AiAgentInteractionStepType__c)."""


def session_view(
    history: Sequence[HistoryMessage], earlier: Iterable[EarlierTurn], utterance: str, generated: GeneratedData
) -> JsonObject:
    """Return the conversation up to an answer, a run for each turn; unknown actions are null."""
    runs: list[JsonValue] = []
    messages: list[JsonValue] = []
    for message in history:
        messages.append({"message": message.message or "", "actorRole": message.role or "user"})
        if message.role == "agent":
            runs.append(_run(message.topic, messages, None))
            messages = []
    if messages:
        runs.append(_run(None, messages, None))
    for question, answer in (*((turn.utterance, turn.generated) for turn in earlier), (utterance, generated)):
        said = {"message": question, "actorRole": "user"}, {"message": answer.outcome, "actorRole": "agent"}
        runs.append(_run(answer.topic, said, answer.actions))
    return {"metrics": {"turns": len(runs)}, "runs": runs}


def knows_steps(session: JsonObject, *, of_all: bool) -> bool:
    """Return whether the agent's steps in the last turn of a session are known, or those in all of its turns."""
    runs = [*_objects(session.get("runs"))]
    loops = [run.get("agentLoop") for run in (runs if of_all else runs[-1:])]
    return all(isinstance(loop, dict) and loop.get("steps") is not None for loop in loops)


def transcript_of(session: JsonObject) -> str:
    """Return who said what in a session, a line for each message."""
    messages = (message for run in _objects(session.get("runs")) for message in _objects(run.get("messages")))
    return "\n".join(f"{message.get('actorRole', '')}: {message.get('message', '')}" for message in messages)


def _objects(value: JsonValue) -> Iterator[JsonObject]:
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else iter(())


def _run(topic: str | None, messages: Sequence[JsonValue], actions: Sequence[Action] | None) -> JsonObject:
    steps: JsonValue = None if actions is None else [_step(action) for action in actions]
    return {"topicName": topic, "messages": list(messages), "agentLoop": {"steps": steps}}


def _step(action: Action) -> JsonObject:
    texts = {"input": action.input, "output": action.output}
    written = {key: json.dumps(value, ensure_ascii=False) for key, value in texts.items()}
    return {"type": ACTION_STEP, "name": action.name, **written}
