"""Test specs made of a few words: the same expectations for every question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalmeta.errors import UsageError
from evalmeta.interop.findings import did_you_mean
from evalmeta.interop.testspec import ACTIONS, METRICS, OUTCOME, TOPIC
from evalmeta.model.actions import render_actions
from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
from evalmeta.model.expectations import scorer_kind, scorer_names
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.registry import MetadataType

__all__ = ["Outline", "TestRunner", "definition_of"]

TestRunner = Literal["testing-center", "agentforce-studio"]


@dataclass(frozen=True, slots=True)
class Outline:
    """What a spec is made of.

    Attributes:
        utterances: questions, each a test case.
        topic: expected of every test case, as `actions`, `outcome` and `metrics` are where they are given.
    """

    name: str | None = None
    subject_name: str | None = None
    subject_version: str | None = None
    description: str | None = None
    test_runner: TestRunner = "testing-center"
    utterances: tuple[str, ...] = ()
    topic: str | None = None
    actions: tuple[str, ...] = ()
    outcome: str | None = None
    metrics: tuple[str, ...] = ()


def definition_of(outline: Outline) -> Definition:
    """Makes the definition that an outline describes.

    Raises:
        UsageError: it has no name, subject or question, or names a metric that the runner does not know.
    """
    if not (outline.name and outline.subject_name and outline.utterances):
        raise UsageError(
            "A spec needs a name, a subject and a question.",
            actions=["Give --name, --subject-name and --utterance, or a file: --from-definition."],
        )
    kind = TESTING_DEFINITION if outline.test_runner == "agentforce-studio" else EVALUATION_DEFINITION
    expectations = tuple(_expectations(outline, kind))
    cases = tuple(TestCase(Inputs(text), expectations, number) for number, text in enumerate(outline.utterances, 1))
    return Definition(
        outline.name,
        outline.subject_name,
        subject_version=outline.subject_version,
        description=outline.description,
        test_cases=cases,
        type=kind,
    )


def _expectations(outline: Outline, kind: MetadataType) -> Iterator[Expectation]:
    if outline.topic is not None:
        yield Expectation(TOPIC, outline.topic)
    if outline.actions:
        yield Expectation(ACTIONS, render_actions(outline.actions))
    if outline.outcome is not None:
        yield Expectation(OUTCOME, outline.outcome)
    known = METRICS if kind == EVALUATION_DEFINITION else _studio_metrics()
    for name in outline.metrics:
        if name not in known:
            raise UsageError(f"{name!r} is no metric of {kind.name}.", actions=[did_you_mean(name, known)])
        yield Expectation(name)


def _studio_metrics() -> tuple[str, ...]:
    kinds = ((name, scorer_kind(name)) for name in scorer_names("AGENT"))
    return tuple(name for name, kind in kinds if kind is not None and kind.needs == "nothing")
