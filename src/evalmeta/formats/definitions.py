"""Evaluations of other formats converted into definitions, with a list of losses.

A definition's test case has one question, so each turn becomes a test case whose history is the turns before it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.diagnostics import Loss, foreign_character, without_foreign
from evalmeta.model.checks import JSON_OPERATORS, UNJUDGED, WHOLE_ANSWERS, comparison_of, comparison_with, has_variants
from evalmeta.model.definition import ContextVariable, Definition, Expectation, HistoryMessage, Inputs, TestCase
from evalmeta.model.expectations import ACTIONS, OUTCOME, TOPIC, canonical_name, expectation_kind, render_actions
from evalmeta.model.expected_values import is_matcher
from evalmeta.model.json_value import json_text
from evalmeta.plugins import all_checks, is_check

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from evalmeta.formats.document import Document
    from evalmeta.model.evaluation import Case, Turn
    from evalmeta.model.json_value import JsonObject, JsonValue


_ANSWERS: Final = (
    *("response_match_score", "final_response_match_v2", "response_match"),
    "response/llm_judged/correctness/rating",
)
"""Metrics that compare with an expected answer, which bot_response_rating does too."""
_PASSING_RATING: Final = 3
_COUNTED: Final = re.compile(r"(?:[a-z]+[- _])?(\d+)")


def definition_of(
    document: Document, *, subject_name: str | None = None, is_metadata: bool = False, kept_checks: Collection[str] = ()
) -> tuple[Definition, tuple[Loss, ...]]:
    """Convert a document of another format into a definition; return it with the losses.

    Expected tool calls become action_sequence_match and comparisons of their arguments, expected answers
    bot_response_rating, and the state of a session context variables, as text. A turn without a known answer is missing
    in the history of later ones: orgs accept only pairs of question and answer. `is_metadata` says whether the
    histories must follow the rules of definitions, and `kept_checks` names checks that are kept although definitions
    cannot hold them. Raise FormatError if evalmeta can run none of the cases.
    """
    evaluation = document.evaluation
    converter = _Converter(is_metadata=is_metadata, kept_checks=kept_checks)
    definition = Definition(
        name=converter.text(evaluation.name, "definition"),
        subject_name=converter.text(subject_name or evaluation.subject_name, "definition"),
        subject_type=evaluation.subject_type,
        subject_version=evaluation.subject_version,
        test_cases=tuple(converter.test_cases(evaluation.cases)),
    )
    losses = converter.losses
    if not definition.test_cases and losses:
        raise FormatError(f"{evaluation.name} has no case that can be converted: {losses[0]}")
    if document.min_pass_rate not in {None, 1.0}:
        what = f"the minimum pass rate {document.min_pass_rate:g}; run it with --min-pass-rate"
        losses = (Loss("definition", what), *losses)
    if document.iterations not in {None, 1}:
        what = f"the number of iterations; run it with --iterations {document.iterations}"
        losses = (Loss("definition", what), *losses)
    return definition, losses


class _Converter:
    """Converts cases, and collects each loss once, in the order in which it is found."""

    def __init__(self, *, is_metadata: bool, kept_checks: Collection[str]) -> None:
        self._is_metadata = is_metadata
        self._kept_checks = kept_checks
        self._losses: dict[Loss, None] = {}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Return the losses of the cases so far, first those of the whole definition."""
        return tuple(sorted(self._losses, key=lambda loss: loss.where != "definition"))

    def test_cases(self, cases: Iterable[Case]) -> Iterator[TestCase]:
        """Yield a test case for each turn, numbered from 1."""
        number = 0
        for case in cases:
            if case.not_run:
                self.lose(f"case {case.label!r:.120}", f"the whole case: {case.not_run}")
                continue
            if case.review:
                self.lose(f"case {case.number}", "the whole case: a person must review it (review: true)")
                continue
            history = [(message.role, message.message, message.topic) for message in case.history]
            for place, turn in enumerate(case.turns, 1):
                number += 1
                where = f"test case {number}"
                if place == 1:
                    self._note_case(case, where)
                yield self._test_case(case, turn, history, number)
                recorded = turn.recorded
                answer = _known(turn, recorded.outcome if recorded else None, OUTCOME, *WHOLE_ANSWERS, *_ANSWERS)
                if answer is not None:
                    topic = _known(turn, recorded.topic if recorded else None, TOPIC)
                    history += (("user", turn.utterance, None), ("agent", answer, topic))
                elif place < len(case.turns):
                    what = f"the turn before it, {turn.utterance!r:.60}, because its answer is unknown"
                    self.lose(f"test case {number + 1}", what)

    def text(self, text: str, where: str) -> str:
        """Return a text without the characters that XML cannot hold."""
        if foreign := foreign_character(text):
            self.lose(where, f"the character {foreign}, which XML cannot hold")
        return without_foreign(text)

    def lose(self, where: str, what: str) -> None:
        self._losses[Loss(where, what)] = None

    def _note_case(self, case: Case, where: str) -> None:
        counted = _COUNTED.fullmatch(case.label)
        if case.label and not (counted and int(counted[1]) == case.number):
            self.lose(where, f"its name {case.label!r:.120}")
        if case.tags:
            self.lose(where, f"its tags {', '.join(case.tags)}")
        if case.metadata:
            self.lose(where, f"its metadata {', '.join(case.metadata)}")
        if case.iterations is not None:
            what = f"its number of iterations; run it with --iterations {case.iterations}"
            self.lose(where, what)
        if case.approve:
            self.lose(where, f"the approvals of {', '.join(case.approve)}")
        if case.quarantine:
            self.lose(where, f"its quarantine until {case.quarantine.until}; list it in evalmeta.toml: [[quarantine]]")

    def _test_case(
        self, case: Case, turn: Turn, history: Sequence[tuple[str | None, str | None, str | None]], number: int
    ) -> TestCase:
        where = f"test case {number}"
        messages = tuple(
            HistoryMessage(role, None if message is None else self.text(message, where), topic, index)
            for index, (role, message, topic) in enumerate(history)
        )
        if self._is_metadata:
            messages = paired(messages, lambda what: self.lose(where, what))
        if turn.recorded is not None:
            self.lose(where, "its recorded answer")
        if turn.inputs is not None:
            self.lose(where, "that its input is a value; the utterance is its JSON text")
        if turn.expected is not None:
            self.lose(where, "its expected value, which only functions read")
        if any(expectation.terms.get("empty") for expectation in turn.expectations):
            self.lose(where, "that an empty answer is valid (empty: true)")
        inputs = Inputs(self.text(turn.utterance, where), tuple(self._variables(case, where)), messages)
        return TestCase(inputs, self._expectations(turn, where), number)

    def _variables(self, case: Case, where: str) -> Iterator[ContextVariable]:
        for variable in case.context_variables:
            yield ContextVariable(self.text(variable.name, where), self.text(variable.value, where))
        taken = {context_variable.name for context_variable in case.context_variables}
        for name, value in case.state.items():
            if name in taken:
                self.lose(where, f"the state {name!r}; a context variable has the same name")
                continue
            if not isinstance(value, str):
                self.lose(where, f"the type of the state {name!r}, which is written as text")
            yield ContextVariable(self.text(name, where), self.text(json_text(value), where))

    def _expectations(self, turn: Turn, where: str) -> tuple[Expectation, ...]:
        """Return the expectations that a definition can hold: one of each kind, and any number of comparisons."""
        kept: list[Expectation] = []
        for expectation in turn.expectations:
            for converted in self._converted(expectation, where):
                name = canonical_name(converted.name)
                if (
                    converted.parameters
                    or name in self._kept_checks
                    or all(canonical_name(other.name) != name for other in kept)
                ):
                    kept.append(converted)
                elif converted not in kept:
                    what = f"the expectation {expectation.name!r}; a test case can have only one of its kind"
                    self.lose(where, what)
        return tuple(kept)

    def _converted(self, expectation: Expectation, where: str) -> Iterator[Expectation]:
        name, terms = expectation.name, expectation.terms
        if "calls" in terms:
            yield from self._actions(expectation, where)
        elif name in _ANSWERS:
            if terms.get("facts"):
                self.lose(where, f"the facts that {name!r} expects")
            if expectation.expected_value is not None:
                threshold = terms.get("threshold")
                scale = "" if threshold is None else f" and its threshold {json_text(threshold)}"
                self.lose("definition", f"the metric {name!r}{scale}; its expected answer is judged as {OUTCOME}")
                yield Expectation(OUTCOME, self.text(expectation.expected_value, where))
        elif (comparison := comparison_of(expectation, all_checks())) is not None:
            yield from self._comparison(expectation, comparison, where)
        elif name == TOPIC and terms.get("match") == "contains":
            expected = self.text(expectation.expected_value or "", where)
            yield comparison_with(expectation, "contains", "$.generatedData.topic", expected)
        elif name in self._kept_checks:
            yield expectation
        elif is_check(name) or name == UNJUDGED:
            self.lose(where, f"the check {expectation.label or name!r}, for which definitions have no expectation")
        elif expectation_kind(name) is None or expectation.is_custom:
            self.lose("definition", f"the metric {name!r}, for which definitions have no expectation")
        else:
            self._note_terms(expectation, where)
            value = expectation.expected_value
            kept = None if value is None else self.text(value, where)
            yield Expectation(name, kept, expectation.label, expectation.parameters)

    def _note_terms(self, expectation: Expectation, where: str) -> None:
        match, threshold = expectation.terms.get("match"), expectation.terms.get("threshold")
        # Orgs accept other actions beside the expected ones, and pass a rating of 3.
        if expectation.name == ACTIONS and match not in {None, "superset"}:
            how = "must match exactly" if match == "exact" else f"are matched as {match}"
            self.lose(where, f"that the actions {how}; set it with --actions {match}")
        if expectation.name == OUTCOME and threshold not in {None, _PASSING_RATING}:
            self.lose(where, f"the threshold {json_text(threshold)} of {expectation.name!r}; set it with --threshold")

    def _comparison(self, check: Expectation, comparison: Expectation, where: str) -> Iterator[Expectation]:
        row = all_checks().get(check.name)
        if row and row.takes_exact and not check.terms.get("exact") and has_variants(check.expected_value or ""):
            self.lose(where, f"that {check.label!r} ignores typographic signs and spaces; a definition does not")
        if check.name == "json" and (check.terms["operator"] == "contains" or check.terms["path"] == "$"):
            self.lose(where, f"how {check.label!r} reads JSON; a definition compares its text")
        yield comparison

    def _actions(self, expectation: Expectation, where: str) -> Iterator[Expectation]:
        terms, calls = expectation.terms, expectation.terms.get("calls")
        if not isinstance(calls, list | tuple):
            return
        if terms.get("match_type", "EXACT") != "EXACT":
            what = f"the match type {terms['match_type']} of {expectation.name!r}; set it with --actions"
            self.lose("definition", what)
        if terms.get("threshold", 1.0) != 1.0:
            scale = f"the threshold {json_text(terms.get('threshold'))} of {expectation.name!r}"
            self.lose("definition", f"{scale}; every test case is judged on its own")
        self._note_terms(expectation, where)
        taken = [call for call in calls if isinstance(call, dict)]
        if taken and not terms.get("ignore_args"):
            yield from self._arguments(taken, where)
        yield Expectation(ACTIONS, render_actions(self.text(str(call.get("name", "")), where) for call in taken))

    def _arguments(self, calls: Sequence[JsonObject], where: str) -> Iterator[Expectation]:
        """Yield a comparison for each argument; a reference can only find the call if its name is unique."""
        if any(call.get("exact") or "args" in call for call in calls):
            self.lose("definition", "that calls have no other arguments than the expected ones")
        counts = Counter(str(call.get("name", "")) for call in calls)
        for call in calls:
            name, given = str(call.get("name", "")), call.get("input", call.get("args"))
            for part in ("output", "error"):
                if call.get(part) is not None:
                    self.lose(where, f"the {part} of {name!r}, which no comparison can hold")
            if given and counts[name] > 1:
                self.lose(where, f"the arguments of its {counts[name]} calls of {name!r}; their names are kept")
                continue
            for path, value in _leaves(given, "", has_matchers="input" in call):
                yield from self._argument(name, path, value, where, has_matchers="input" in call)

    def _argument(
        self, name: str, path: str, value: JsonValue, where: str, *, has_matchers: bool
    ) -> Iterator[Expectation]:
        conditions = value if has_matchers and isinstance(value, dict) and is_matcher(value) else {"equals": value}
        for operator, expected in conditions.items():
            if operator in JSON_OPERATORS and (check := _argument_check(name, path, operator, expected)):
                yield check
            else:
                of = "" if operator == "equals" else f" ({operator})"
                self.lose(where, f"the argument {path.lstrip('.')} of {name!r}{of}, which no comparison can hold")


_ARGUMENT: Final = "$.generatedData.invokedActions[*][?(@.function.name=='{}')].function.input{}"
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTABLE: Final = re.compile(r"[^'\"\\\x00-\x1f]*")


def _leaves(value: JsonValue, path: str, *, has_matchers: bool = False) -> Iterator[tuple[str, JsonValue]]:
    """Yield every matcher and every value without items, and its path; None if no path can be written."""
    if has_matchers and is_matcher(value):
        yield path, value
    elif isinstance(value, dict) and (value or not path):
        for name, inner in value.items():
            step = f".{name}" if _PLAIN_NAME.fullmatch(name) else f"['{name}']"
            yield from _leaves(inner if _QUOTABLE.fullmatch(name) else None, path + step, has_matchers=has_matchers)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{place}]", has_matchers=has_matchers)
    elif path:
        yield path, value


def _argument_check(name: str, path: str, operator: str, value: JsonValue) -> Expectation | None:
    if not _QUOTABLE.fullmatch(name) or not isinstance(value, str | int | float) or value == "":
        return None
    terms: JsonObject = {"path": _ARGUMENT.format(name, path), "operator": operator, "expected": value}
    comparison = comparison_of(Expectation("json", label=f"argument {path.lstrip('.')} of {name}", terms=terms))
    texts = [parameter.value for parameter in comparison.parameters] if comparison else []
    if any(len(text) > limits.MAX_PARAMETER_CHARS or foreign_character(text) for text in texts):
        return None
    return comparison


def _known(turn: Turn, recorded: str | None, *names: str) -> str | None:
    """Return the first expected value of these names, or else the recorded value."""
    values = (expected.expected_value for expected in turn.expectations if canonical_name(expected.name) in names)
    return next((value for value in values if value is not None), recorded)


_UNKNOWN_TOPIC: Final = "unknown"
_SHOWN_CHARS: Final = 60


def paired(messages: Sequence[HistoryMessage], lose: Callable[[str], None]) -> tuple[HistoryMessage, ...]:
    """Return a history that satisfies the rules history-role, history-order, history-index and history-topic.

    Only pairs of a user's question and the agent's answer are kept; an unknown topic is written as `unknown`, because
    definitions must name one. `lose` receives a text for each loss.
    """
    kept: list[HistoryMessage] = []
    asked: HistoryMessage | None = None
    for message in messages:
        is_said = bool(message.message and message.message.strip())
        if message.role == "agent" and is_said and asked is not None:
            kept += (asked, message)
            asked = None
        elif message.role == "user" and is_said:
            _leave_out(asked, lose)
            asked = message
        else:
            _leave_out(message, lose)
    _leave_out(asked, lose)
    topics = [(message.topic or "").strip() or message.role != "agent" for message in kept]
    if not all(topics):
        lose(f"the missing topic of an answer in the history; it is written as {_UNKNOWN_TOPIC!r}")
    return tuple(
        replace(message, topic=message.topic if is_known else _UNKNOWN_TOPIC, index=place)
        for place, (message, is_known) in enumerate(zip(kept, topics, strict=True))
    )


def _leave_out(message: HistoryMessage | None, lose: Callable[[str], None]) -> None:
    if message is not None:
        text = (message.message or "")[:_SHOWN_CHARS]
        lose(f"the {message.role} message {text!r} of the history, which has only pairs of question and answer")
