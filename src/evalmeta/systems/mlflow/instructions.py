"""Judges by instructions in words: `make_judge`, with the kind of value that each returns.

A judge becomes the prompt of a custom scorer, which the project's rater carries out. Texts of the conversation never
become part of the prompt: it refers to the message that has them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, get_args, get_origin

from evalmeta.errors import UsageError
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import PROMPT
from evalmeta.model.json_value import json_text, plain_value, read_json
from evalmeta.model.run import Verdict
from evalmeta.systems.mlflow.builtin_scorers import JudgedScorer
from evalmeta.systems.mlflow.judging import judge_answer
from evalmeta.systems.mlflow.rows import read_rows
from evalmeta.systems.mlflow.sessions import session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.systems.mlflow.assessments import Feedback
    from evalmeta.systems.mlflow.entities import Trace

_LAST: Final = "{!$SalesforceDataAction:getLastInteraction}"
WORDS: Final = {
    "inputs": f"the question (the last message of the user in {_LAST}, and inputs in {{!$Input:Session}})",
    "outputs": f"the answer (the last message of the agent in {_LAST})",
    "trace": f"the trace (the messages and the agent's steps in {_LAST})",
    "conversation": "the conversation (all messages and steps in {!$Input:Session})",
}
_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_TYPES: Final[Mapping[object, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_VERDICTS: Final = {Verdict.PASS: "Pass", Verdict.FAILURE: "Fail"}
_OUTCOMES: Final[Mapping[object, str]] = {"yes": "Pass", True: "Pass", "no": "Fail", False: "Fail"}


class JudgeValues(NamedTuple):
    """The values that a judge returns: their JSON type, or the labels that mean them with their outcomes."""

    json_type: str = "string"
    item_type: str = ""
    by_label: Mapping[str, JsonValue] = {}
    outcomes: Mapping[str, JsonValue] = {}

    def terms(self) -> JsonObject:
        """Return the terms of an expectation, as `scorer_of_terms` reads them."""
        return {"type": self.json_type, "items": self.item_type, "labels": dict(self.outcomes)}

    def value_of(self, result: TestResult) -> JsonValue:
        """Return the value of a result; None if it was not judged."""
        outcome = _VERDICTS.get(result.verdict)
        if self.by_label:
            # A rater that is a function returns a verdict, and perhaps no label.
            labels = [label for label, known in self.outcomes.items() if outcome is None or known == outcome]
            label = result.actual if result.is_measured or result.actual in labels else next(iter(labels), "")
            return self.by_label.get(label) if result.is_measured or outcome else None
        if self.json_type in {"integer", "number"} and result.score is not None:
            return int(result.score) if self.json_type == "integer" else result.score
        if not result.is_measured:
            return None
        return read_json(result.actual) if self.json_type == "array" else result.actual


def _labels(values: tuple[JsonValue, ...]) -> JudgeValues:
    """Return the values of a Literal: yes and True pass, no and False fail, and all others are only reported."""
    by_label = {str(value): value for value in values}
    outcomes: dict[str, JsonValue] = {}
    for label, value in by_label.items():
        known = value if isinstance(value, bool) else label.lower()
        outcomes[label] = _OUTCOMES.get(known, "")
    return JudgeValues(by_label=by_label, outcomes=outcomes)


def _values_of(name: str, kind: object) -> JudgeValues:
    """Return the values of a `feedback_value_type`; raise UsageError if the rater cannot return such values."""
    if kind is bool:
        return JudgeValues(by_label={"yes": True, "no": False}, outcomes={"yes": "Pass", "no": "Fail"})
    if get_origin(kind) is Literal:
        return _labels(get_args(kind))
    if kind is None or kind in _TYPES:
        return JudgeValues(_TYPES[kind or str])
    [item, *others] = get_args(kind) if get_origin(kind) is list else (None,)
    if item in _TYPES and not others:
        return JudgeValues("array", _TYPES[item])
    raise UsageError(
        f"the judge {name!r} returns {kind}, which evalmeta's rater cannot return",
        actions=[
            "Use bool, int, float, str, a Literal, or a list of one of them as feedback_value_type.",
            "For a mapping, make a judge for each of its keys.",
        ],
    )


_YES_NO: Final = JudgeValues(by_label={"yes": "yes", "no": "no"}, outcomes={"yes": "Pass", "no": "Fail"})


class PromptJudge(JudgedScorer):
    """A judge that is carried out as a prompt: about one answer, or about the conversation of a session."""

    metric: ClassVar[str] = PROMPT
    values: ClassVar[JudgeValues] = JudgeValues(
        by_label={"yes": "yes", "no": "no"}, outcomes={"yes": "Pass", "no": "Fail"}
    )

    @property
    def is_session_level_scorer(self) -> bool:
        """Return whether the judge reads whole sessions."""
        return False

    def feedback_values(self) -> JudgeValues:
        """Return the values that the judge returns."""
        return self.values

    def prompt(self, expectations: Mapping[str, JsonValue]) -> str:
        """Return the prompt for a row with these expectations."""
        raise NotImplementedError

    @property
    def judges_actions(self) -> bool:
        """Return whether nothing can be judged if the agent's actions are unknown."""
        return False

    def expectation(self, expectations: Mapping[str, JsonValue], session: JsonObject | None = None) -> Expectation:
        """Return what the rater judges in a row with these expectations, or in the session that the row begins."""
        terms: dict[str, JsonValue] = {"prompt": self.prompt(expectations), **self.feedback_values().terms()}
        if session is not None:
            terms["session"] = session
        if self.judges_actions:
            terms["judges_actions"] = True
        return Expectation(self.metric, label=self.name, terms=terms)

    def value_of(self, result: TestResult) -> JsonValue:
        """Return the value of a result; None if it was not judged."""
        return self.feedback_values().value_of(result)

    def __call__(
        self,
        *,
        inputs: object = None,
        outputs: object = None,
        expectations: Mapping[str, object] | None = None,
        trace: Trace | None = None,
        session: object = None,
    ) -> Feedback:
        """Judge one answer or one session now, with the rater of the project around the current folder."""
        if self.is_session_level_scorer and not session:
            raise UsageError(f"the scorer {self.name!r} judges a session", actions=["Pass session=[...], its traces."])
        view, expected = None, plain_value(dict(expectations or {}))
        if self.is_session_level_scorer:
            read = read_rows(session, is_asked=False)
            view = session_of(read, [*read.rows])
            inputs, outputs = {}, "-"
        wanted = self.expectation(expected if isinstance(expected, dict) else {}, view)
        return judge_answer(
            wanted, inputs=inputs, outputs=outputs, trace=trace, model=self.model, value_of=self.value_of
        )


class InstructionsJudge(PromptJudge):
    """A judge by instructions in words, which returns values of one type."""

    instructions: str
    feedback_value_type: object = None

    def feedback_values(self) -> JudgeValues:
        """Return the values that the judge returns."""
        return _values_of(self.name, self.feedback_value_type)

    @property
    def is_session_level_scorer(self) -> bool:
        """Return whether the judge reads whole sessions."""
        return "conversation" in self._variables

    @property
    def judges_actions(self) -> bool:
        """Return whether nothing can be judged if the agent's actions are unknown."""
        return "trace" in self._variables

    @property
    def _variables(self) -> list[str]:
        return _VARIABLE.findall(self.instructions)

    def prompt(self, expectations: Mapping[str, JsonValue]) -> str:
        """Return the instructions with words for their variables, and the expectations of the row."""

        def word(variable: re.Match[str]) -> str:
            return json_text(dict(expectations)) if variable[1] == "expectations" else WORDS[variable[1]]

        return _VARIABLE.sub(word, self.instructions)


def make_judge(
    name: str,
    instructions: str,
    model: str | None = None,
    description: str | None = None,
    feedback_value_type: object = None,
    **_: object,
) -> InstructionsJudge:
    """Make a judge by instructions, which name `{{ inputs }}`, `{{ outputs }}`, `{{ conversation }}` or others.

    Raise UsageError if it cannot return values of `feedback_value_type`, or if it names a variable that evalmeta does
    not fill.
    """
    known = ", ".join(f"{{{{ {known} }}}}" for known in (*WORDS, "expectations"))
    variables = set(_VARIABLE.findall(instructions))
    if unknown := sorted(variables.difference(WORDS, {"expectations"})):
        raise UsageError(f"the judge {name!r} names {{{{ {unknown[0]} }}}}", actions=[f"It can name {known}."])
    if not variables:
        raise UsageError(f"the judge {name!r} does not name what it judges", actions=[f"Name one of {known}."])
    if "conversation" in variables and variables - {"conversation", "expectations"}:
        raise UsageError(
            f"the judge {name!r} judges sessions and single answers",
            actions=["Name {{ conversation }} alone or with {{ expectations }}, and make another judge for the rest."],
        )
    judge = InstructionsJudge(
        name=name,
        instructions=instructions,
        model=model,
        description=description,
        feedback_value_type=feedback_value_type,
    )
    judge.feedback_values()
    return judge
