"""Datasets of `agents-cli eval`: a prompt, or a conversation that ends with the user, with a reference and rubrics.

Source: github.com/google/agents-cli, dataset_schema.md and cmd_generate.py; files of google/adk-samples. Metrics are in
another file, eval_config.yaml, which also chooses among groups of rubrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.errors import FormatError
from evalmeta.formats.translation import Row, TranslatedCase, Translation, kept_metadata, rows_of
from evalmeta.model.json_value import json_text
from evalmeta.protocol.json_fields import list_of_objects, number
from evalmeta.systems.test_tools.checks import CaseChecks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue


_READ: Final = frozenset(
    {*("eval_case_id", "prompt", "agent_data", "reference", "responses", "rubric_groups", "context")}
)
_METRICS: Final = "the metrics of eval_config.yaml; the rater judges the reference and each rubric here"


def translate(path: Path, *, label: str) -> Translation:
    """Read a dataset: the rater compares with the reference, and judges each rubric of all groups."""
    rows = rows_of(path, label=label, key="eval_cases")
    if not rows:
        raise FormatError(f"{label} has no test cases")
    return Translation(label, [_case(row, label) for row in rows], left_out=(_METRICS,))


def _case(row: Row, label: str) -> TranslatedCase:
    values, checks = row.values, CaseChecks()
    asked = _asked(row, label, checks)
    if reference := _text(_object(_object(values.get("reference")).get("response"))):
        checks.put("expectedOutcome", reference)
    elif values.get("reference"):
        checks.lose("a reference without text")
    rubrics = [*_rubrics(_object(values.get("rubric_groups")), checks)]
    for rubric in rubrics:
        checks.add("rubric", rubric)
    if not (rubrics or reference):
        checks.lose("a case without a reference or rubrics, which only metrics of eval_config.yaml judge")
    if values.get("responses"):
        checks.left_out.append("responses, recorded answers: the agent is asked")
    if _object(values.get("agent_data")).get("agents"):
        checks.left_out.append("agents of agent_data, the settings of the agents")
    if values.get("context"):
        checks.left_out.append("context, for the metric grounding")
    kept, too_long = kept_metadata({name: value for name, value in values.items() if name not in _READ})
    name: JsonObject = {"name": str(values["eval_case_id"])} if values.get("eval_case_id") else {}
    left_out = (*checks.left_out, *too_long)
    return TranslatedCase({**name, **asked, **checks.keys(), **kept}, row.line, checks.unjudged, left_out)


def _rubrics(groups: JsonObject, checks: CaseChecks) -> Iterator[str]:
    for key, group in groups.items():
        rubrics = _object(group).get("rubrics")
        for rubric in rubrics if isinstance(rubrics, list) else []:
            text = _object(_object(_object(rubric).get("content")).get("property")).get("description")
            if isinstance(text, str) and text.strip():
                yield text
            else:
                checks.lose(f"a rubric without a description in the group {key!r}")


def _asked(row: Row, label: str, checks: CaseChecks) -> JsonObject:
    """Return the keys of a test case for the last message of the user, and what was said before it."""
    events = [*_events(_object(row.values.get("agent_data")))]
    prompt = row.values.get("prompt")
    if prompt and events:
        raise FormatError(f"{_named(row, label)} has a prompt and turns of agent_data; write one of them")
    if prompt:
        return {"input": prompt if isinstance(prompt, str) else _sent(_object(prompt), row, label)}
    users = [place for place, event in enumerate(events) if event.get("author") == "user" and event.get("content")]
    if not users:
        raise FormatError(
            f"{_named(row, label)} has neither a prompt nor a message of the user in agent_data",
            actions=["Write the question as prompt: {role: user, parts: [{text: ...}]}."],
        )
    *_, last = users
    if any(event.get("content") for event in events[last + 1 :]):
        checks.left_out.append("a recorded answer in agent_data: the agent is asked")
    state = {key: value for event in events for key, value in _object(event.get("state_delta")).items()}
    history = [*_history(events[:last], checks)]
    return {
        "input": _sent(_object(events[last].get("content")), row, label),
        **({"conversationHistory": history} if history else {}),
        **({"context": {key: json_text(value) for key, value in state.items()}} if state else {}),
    }


def _named(row: Row, label: str) -> str:
    name = row.values.get("eval_case_id")
    return f"{label}:{row.line}: {f'the case {name!r:.100}' if name else 'a case'}"


def _events(agent_data: JsonObject) -> Iterator[JsonObject]:
    """Yield the events in the order of the turns, which is that of their indices if they have some."""
    turns = list_of_objects(agent_data, "turns")
    numbered = sorted((number(turn, "turn_index", place), place) for place, turn in enumerate(turns))
    for _, place in numbered:
        events = turns[place].get("events")
        yield from map(_object, events if isinstance(events, list) else [])


def _history(events: list[JsonObject], checks: CaseChecks) -> Iterator[JsonValue]:
    for event in events:
        content, author = _object(event.get("content")), event.get("author")
        if any(not isinstance(part.get("text"), str) for part in _parts(content)):
            checks.left_out.append("calls of tools and other parts without text in the history")
        if not (text := _text(content)):
            continue
        if author == "user":
            yield {"role": "user", "message": text}
        else:
            yield {"role": "agent", "message": text, **({"topic": author} if isinstance(author, str) else {})}


def _sent(content: JsonObject, row: Row, label: str) -> str:
    text = _text(content)
    if not text or any(not isinstance(part.get("text"), str) for part in _parts(content)):
        raise FormatError(
            f"{_named(row, label)} has a message of the user that is not only text",
            actions=["Leave the case out, or write what its files say as text."],
        )
    return text


def _text(content: JsonObject) -> str:
    texts = (part.get("text") for part in _parts(content) if not part.get("thought"))
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _parts(content: JsonObject) -> list[JsonObject]:
    parts = content.get("parts")
    return [*map(_object, parts)] if isinstance(parts, list) else []


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
