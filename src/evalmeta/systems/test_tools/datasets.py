"""Datasets with one object for each test case: OpenAI evals, inspect, LangSmith and deepeval.

Sources: github.com/openai/evals, docs/build-eval.md; inspect.aisi.org.uk/datasets.html; docs.langchain.com/langsmith,
"Manage datasets"; deepeval.com/docs/evaluation-datasets. Only deepeval's files say how an answer is compared; the
other tools say it in programs. Each function says what evalmeta compares instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.errors import FormatError
from evalmeta.formats.translation import (
    Row,
    TranslatedCase,
    Translation,
    ask_inputs,
    ask_messages,
    kept_metadata,
    message_text,
    rows_of,
)
from evalmeta.model.json_value import json_text
from evalmeta.systems.test_tools.checks import CaseChecks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue


_INSPECT_KEYS: Final = ("input", "target", "id", "metadata", "choices", "files", "sandbox", "setup")


def translate_openai_evals(path: Path, *, label: str) -> Translation:
    """Read samples: the answer must contain one of the ideal ones, as in `evals.elsuite.basic.includes`."""
    left_out = ("which class of OpenAI evals compares; contains_any compares here",)
    return _translation(path, label, _openai_sample, left_out=left_out)


def translate_inspect(path: Path, *, label: str) -> Translation:
    """Read samples: the answer must contain a target, in upper or lower case, as with the scorer `includes()`."""
    left_out = ("which scorer of inspect compares; matches compares here, as includes() does",)
    return _translation(path, label, _inspect_sample, left_out=left_out)


def translate_langsmith(path: Path, *, label: str) -> Translation:
    """Read examples: the rater compares the answer with the only text of the outputs, or with the last message."""
    left_out = ("which evaluators judge; the project's rater compares with the reference output here",)
    return _translation(path, label, _langsmith_example, key="examples", left_out=left_out)


def translate_deepeval(path: Path, *, label: str) -> Translation:
    """Read goldens: the rater compares with the expected output, and the expected tools must be called."""
    return _translation(path, label, _golden, key="goldens")


def _translation(
    path: Path, label: str, read: Callable[[Row, str], TranslatedCase], *, key: str = "", left_out: tuple[str, ...] = ()
) -> Translation:
    rows = rows_of(path, label=label, key=key)
    if not rows:
        raise FormatError(f"{label} has no test cases")
    return Translation(label, [read(row, label) for row in rows], left_out=left_out)


def _openai_sample(row: Row, label: str) -> TranslatedCase:
    values, checks = row.values, CaseChecks()
    ideal = values.get("ideal")
    texts = [json_text(item) for item in (ideal if isinstance(ideal, list) else [ideal]) if item is not None]
    if not checks.contain_any(texts):
        checks.lose("a sample without an ideal answer")
    rest = {name: value for name, value in values.items() if name not in {"input", "ideal"}}
    return _case(_asked(values.get("input"), row, label), checks, rest, row.line)


def _inspect_sample(row: Row, label: str) -> TranslatedCase:
    values, checks = row.values, CaseChecks()
    target, choices = values.get("target"), values.get("choices")
    targets = [json_text(item) for item in (target if isinstance(target, list) else [target]) if item is not None]
    if choices:
        checks.lose("the letter of the right choice")
    elif not checks.contain_any(targets, ignores_case=True):
        checks.lose("a sample without a target")
    for name in ("files", "sandbox", "setup"):
        if values.get(name):
            checks.lose(f"a sample with {name}")
    metadata = values.get("metadata")
    other = {name: value for name, value in values.items() if name not in _INSPECT_KEYS}
    rest = {**other, **(metadata if isinstance(metadata, dict) else {})}
    rest |= {"choices": choices, "target": target} if choices else {}
    called: JsonObject = {"name": str(values["id"])} if values.get("id") not in (None, "") else {}
    return _case({**called, **_asked(values.get("input"), row, label)}, checks, rest, row.line)


def _langsmith_example(row: Row, label: str) -> TranslatedCase:
    values, checks = row.values, CaseChecks()
    inputs, outputs = values.get("inputs"), values.get("outputs")
    if not isinstance(inputs, dict) or not inputs:
        raise FormatError(f"{label}:{row.line}: an example has no inputs")
    reference = _reference_of(outputs)
    if reference is None or not checks.put("expectedOutcome", reference):
        checks.lose("an example whose outputs are not one text")
    metadata = values.get("metadata")
    rest: dict[str, JsonValue] = dict(metadata) if isinstance(metadata, dict) else {}
    rest |= {name: values[name] for name in ("id", "split", "splits") if values.get(name)}
    rest |= {"outputs": outputs} if reference is None else {}
    return _case(ask_inputs(inputs), checks, rest, row.line)


def _reference_of(outputs: JsonValue) -> str | None:
    """Return the only text of outputs, or the text of their last message; None if there is no such text."""
    if not isinstance(outputs, dict) or len(outputs) != 1:
        return None
    [value] = outputs.values()
    last = value[-1] if isinstance(value, list) and value else value
    text = message_text(last.get("content")) if isinstance(last, dict) else last
    return text if isinstance(text, str) and text.strip() else None


def _golden(row: Row, label: str) -> TranslatedCase:
    values, checks = row.values, CaseChecks()
    name: JsonObject = {"name": values["name"]} if isinstance(values.get("name"), str) else {}
    if "scenario" in values:
        return _conversation(row, label, name)
    _expect_output(values.get("expected_output"), checks)
    tools = values.get("expected_tools")
    if isinstance(tools, str):
        tools = [{"name": tool.strip()} for tool in re.split(r"[;,]", tools) if tool.strip()]
    if tools and not checks.call([_tool(tool) for tool in tools] if isinstance(tools, list) else tools, "superset"):
        checks.lose("the expected tools")
    for key, what in (("actual_output", "a recorded answer"), ("tools_called", "recorded calls of tools")):
        if values.get(key):
            checks.left_out.append(f"{key}, {what}: the agent is asked")
    for key in ("context", "retrieval_context"):
        if values.get(key):
            checks.left_out.append(f"{key}, for metrics of retrieval")
    return _case({**name, **_asked(values.get("input"), row, label)}, checks, _golden_metadata(values), row.line)


def _expect_output(expected: JsonValue, checks: CaseChecks) -> None:
    if expected is not None and not isinstance(expected, str):
        checks.lose("an expected output that is not a text")
    elif expected and expected.strip():
        checks.put("expectedOutcome", expected)


def _conversation(row: Row, label: str, name: JsonObject) -> TranslatedCase:
    """Return the test case of a conversation: what its user says is asked turn by turn."""
    values = row.values
    turns = values.get("turns")
    texts = [
        turn["content"]
        for turn in (turns if isinstance(turns, list) else [])
        if isinstance(turn, dict) and turn.get("role") == "user" and isinstance(turn.get("content"), str)
    ]
    if not texts:
        raise FormatError(
            f"{label}:{row.line}: a scenario without turns needs a simulated user, which evalmeta does not have",
            actions=["Save the dataset with the turns of conversations, or leave the scenario out."],
        )
    asked: list[JsonValue] = [{"input": text} for text in texts]
    outcome = values.get("expected_outcome")
    unjudged: tuple[str, ...] = ("a conversation without an expected outcome as text",)
    if isinstance(outcome, str) and outcome.strip():
        asked[-1], unjudged = {"input": texts[-1], "rubric": outcome}, ()
    left_out = ("recorded answers in turns: the agent is asked",)
    kept, too_long = kept_metadata({**_golden_metadata(values), "scenario": values.get("scenario")})
    return TranslatedCase({**name, "turns": asked, **kept}, row.line, unjudged, (*left_out, *too_long))


def _golden_metadata(values: JsonObject) -> JsonObject:
    own = values.get("additional_metadata")
    comments = values.get("comments")
    return {**(own if isinstance(own, dict) else {}), **({"comments": comments} if comments else {})}


def _tool(tool: JsonValue) -> JsonValue:
    if not isinstance(tool, dict):
        return tool
    arguments = tool.get("input_parameters", tool.get("inputParameters"))
    return {"name": tool.get("name"), **({"input": arguments} if isinstance(arguments, dict) and arguments else {})}


def _asked(value: JsonValue, row: Row, label: str) -> JsonObject:
    """Return the keys of a test case for an input, which is a text or a list of messages."""
    asked: JsonObject | None = {"input": value} if isinstance(value, str) else None
    if isinstance(value, list):
        asked = ask_messages(value)
    if asked is None:
        raise FormatError(
            f"{label}:{row.line}: the input is not a text, nor messages of which the last is the user's",
            actions=["Write a text, or messages with role and content as text."],
        )
    return asked


def _case(asked: JsonObject, checks: CaseChecks, metadata: JsonObject, line: int) -> TranslatedCase:
    kept, left_out = kept_metadata(metadata)
    return TranslatedCase({**asked, **checks.keys(), **kept}, line, checks.unjudged, (*checks.left_out, *left_out))
