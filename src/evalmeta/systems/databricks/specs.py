"""Evaluation sets as test specs, which keep names, tags, system messages, facts and guidelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.formats.translation import TranslatedCase, Translation
from evalmeta.systems.databricks.evaluation_sets import read_databricks_file
from evalmeta.systems.databricks.metrics import CORRECTNESS, DOCUMENT_RECALL, GUIDELINES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.formats.diagnostics import Written
    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue


def write_spec(path: Path, *, label: str, subject: str | None) -> Written:
    """Write an evaluation set as a test spec: an expected response is compared, facts and guidelines are rubrics.

    The metrics that Databricks computes for every row, such as safety, are not kept, nor are recorded answers.
    """
    # What the file has recorded is left out, so that each row has all of its expectations.
    document = read_databricks_file(path, label=label, name="", is_asked=True)
    read = read_databricks_file(path, label=label, name="").evaluation
    has_answers = any(case.turns[0].recorded is not None for case in read.cases)
    cases = [_case(case, document.lines.get(case.number, 0)) for case in document.evaluation.cases]
    left_out = ["the metrics of Databricks without an expectation, such as safety and groundedness"]
    left_out += ["recorded answers; the agent is asked"] if has_answers else []
    return Translation(label, cases, left_out=tuple(left_out)).spec(subject=subject)


def _case(case: Case, line: int) -> TranslatedCase:
    [turn] = case.turns
    history: list[JsonValue] = [{"role": message.role, "message": message.message} for message in case.history]
    rubrics, unjudged = [*_rubrics(turn.expectations)], []
    values: dict[str, JsonValue] = {"name": case.label} if case.label else {}
    values["input"] = turn.utterance
    if history:
        values["conversationHistory"] = history
    if case.state:
        values["context"] = dict(case.state)
    if case.tags:
        values["tags"] = list(case.tags)
    for expectation in turn.expectations:
        if expectation.name == CORRECTNESS and expectation.expected_value is not None:
            values["expectedOutcome"] = expectation.expected_value
        elif expectation.name == DOCUMENT_RECALL:
            unjudged.append("the documents that must be retrieved")
    if rubrics:
        values["rubric"] = rubrics
    return TranslatedCase(values, line, tuple(unjudged))


def _rubrics(expectations: tuple[Expectation, ...]) -> Iterator[str]:
    for expectation in expectations:
        if expectation.name == CORRECTNESS:
            yield from (f"The answer states this fact: {fact}" for fact in _texts(expectation.terms, "facts"))
        elif expectation.name == GUIDELINES:
            yield from _texts(expectation.terms, "guidelines")


def _texts(terms: JsonObject, key: str) -> list[str]:
    texts = terms.get(key)
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
