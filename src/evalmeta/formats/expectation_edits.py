"""Replacing the expected value of one expectation in a definition or test spec; all other bytes stay the same."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from evalmeta.errors import FormatError, Suggestion, UsageError
from evalmeta.formats.diagnostics import foreign_character
from evalmeta.formats.files import format_of
from evalmeta.model.checks import WHOLE_ANSWERS
from evalmeta.model.evaluation import Case, Evaluation, evaluation_of
from evalmeta.model.expectations import ACTIONS, OPERATORS, OUTCOME, TOPIC, canonical_name, parse_actions
from evalmeta.model.expected_calls import NO_CALL, read_call
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.package.files import shown
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.formatter import replace_text
from evalmeta.xmlio.reader import local_name, read_xml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.model.aggregation import NamedResult
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import CaseResult, TestResult


class ExpectationPlace(NamedTuple):
    """Where an expectation is: its case, the index of its turn, and its position in the turn; both from 0."""

    case: Case
    turn: int
    position: int

    @property
    def expectation(self) -> Expectation:
        """Return the expectation."""
        return self.case.turns[self.turn].expectations[self.position]


def read_evaluation(path: Path, data: bytes) -> Evaluation:
    """Return the evaluation in a file; a UsageError says which files cannot be edited."""
    label, file_format = shown(path), format_of(path, label=shown(path))
    if file_format == "definition":
        return evaluation_of(read_definition(read_xml(data, label=label)), name=path.name)
    if file_format != "testspec":
        message = f"{label} is neither a definition nor a test spec"
        raise UsageError(message, actions=[f"Edit {label} with another program."])
    from evalmeta.formats.testspec import read_spec

    spec = read_spec(data, label=label, folder=path.parent)
    if spec.definition.type == TESTING_DEFINITION:
        message = f"{label} has scorers that several inputs share, so that one answer cannot replace their value"
        raise UsageError(message, actions=[f"Edit {label} with a text editor."])
    return spec.document(path.name).evaluation


def find_expectation(
    evaluation: Evaluation, judged: CaseResult, chosen: NamedResult, *, label: str
) -> ExpectationPlace:
    """Return the place of the expectation of a result; a UsageError says how the case has changed since the run."""
    case = next((case for case in evaluation.cases if case.number == judged.number), None)
    asked = [*(turn.utterance for turn in judged.earlier), judged.utterance]
    if case is None or [turn.utterance.strip() for turn in case.turns] != [text.strip() for text in asked]:
        _changed(judged, "its utterance is another one", label)
    turn, result = max(chosen.turn, 1) - 1, chosen.result
    expectations = case.turns[turn].expectations if turn < len(case.turns) else ()
    named = canonical_name(result.name), result.label or ""
    names = [(canonical_name(expectation.name), expectation.label or "") for expectation in expectations]
    indexes = [at for at, name in enumerate(names) if name == named]
    of_value = [at for at in indexes if _expects(expectations[at], result, result.expected)]
    indexes = of_value or indexes
    of_turn = [result for result in judged.results if result.turn == chosen.turn]
    if len(of_turn) == len(expectations) and chosen.place in indexes:
        indexes = [chosen.place]
    if len(indexes) != 1:
        _changed(judged, f"{result.label or result.name} is not one of its expectations", label)
    return ExpectationPlace(case, turn, indexes[0])


def check_unchanged(
    place: ExpectationPlace, judged: CaseResult, chosen: NamedResult, *, label: str, is_accepted: bool | None = None
) -> None:
    """Raise UsageError if an expectation is another one than in the run, or already accepts the answer.

    `is_accepted` says the latter of calls with arguments; None compares the texts.
    """
    result, expectation = chosen.result, place.expectation
    if is_accepted is None:
        is_accepted = _expects(expectation, result, result.actual)
    if is_accepted:
        raise UsageError(f"{label} already expects this", actions=["Run the test again."])
    if not _expects(expectation, result, result.expected):
        _changed(judged, f"{result.label or result.name} expects something else", label)


def replace_value(path: Path, data: bytes, place: ExpectationPlace, value: str) -> bytes:
    """Return the bytes of a file in which an expectation expects another value."""
    if foreign := foreign_character(value):
        reason = "which definitions and test specs cannot contain"
        message = f"the answer contains the character {foreign}, {reason}"
        raise UsageError(message, actions=["Edit the test by hand."])
    expectation, label = place.expectation, shown(path)
    if canonical_name(expectation.name) in OPERATORS:
        _check_operator(expectation)
    if format_of(path, label=label) == "definition":
        return _edited_definition(path, data, place, value)
    where = {"number": place.case.number, "turn": place.turn, "place": place.position}
    return replace_expected(data, label=label, expectation=expectation, value=value, **where)


def replace_calls(
    path: Path, data: bytes, place: ExpectationPlace, calls: Sequence[tuple[JsonValue, int | None]]
) -> bytes:
    """Return the bytes of a test spec in which actions with arguments expect other calls.

    Each call has the index of the earlier one that it is, whose text is kept; None if it is new or changed.
    """
    edit, case = _opened(data, place.case.number, place.turn, shown(path))
    return edit.replace_calls(*_own_pair(case, ACTIONS, shown(path)), calls)


def is_only_change(
    before: Evaluation,
    after: Evaluation,
    place: ExpectationPlace,
    value: str,
    *,
    calls: Sequence[JsonValue] | None = None,
) -> bool:
    """Return whether two evaluations are the same except for one expected value, or calls, which are then these."""
    old, new = tuple(before.cases), tuple(after.cases)
    if len(old) != len(new):
        return False
    for one, other in zip(old, new, strict=True):
        if one.number != place.case.number:
            if one != other:
                return False
            continue
        was, now = place._replace(case=one), place._replace(case=other)
        has_value = _has_value(now.expectation, value) if calls is None else _has_calls(now.expectation, calls)
        if not has_value or _without_value(was) != _without_value(now):
            return False
    return True


def expected_value(expectation: Expectation) -> str:
    """Return the value that an expectation compares the answer with; empty if there is none."""
    if canonical_name(expectation.name) not in OPERATORS:
        return expectation.expected_value or ""
    return next((parameter.value for parameter in expectation.parameters if parameter.name == "expected"), "")


def _edited_definition(path: Path, data: bytes, place: ExpectationPlace, value: str) -> bytes:
    document = read_xml(data, label=shown(path))
    definition, expectation = read_definition(document), place.expectation
    cases = evaluation_of(definition, name="").cases
    at = next(at for at, case in enumerate(cases) if case.number == place.case.number)
    steps = [("testCase", at), (definition.type.expectation, place.position)]
    names = [parameter.name for parameter in expectation.parameters]
    is_custom = canonical_name(expectation.name) in OPERATORS
    inner = [("parameter", names.index("expected")), ("value", 0)] if is_custom else [("expectedValue", 0)]
    element = document.find([*steps, *inner])
    if (tag := inner[-1][0]) != local_name(element):
        line = document.location(element).line
        message = f"{shown(path)}:{line}: {expectation.name} has no <{tag}> to write the answer into"
        raise UsageError(message, actions=[f"Add <{tag}></{tag}> there, and run this command again."])
    return replace_text(document, element, value)


def _check_operator(expectation: Expectation) -> None:
    parameters = {parameter.name: parameter for parameter in expectation.parameters}
    expected, fault = parameters.get("expected"), ""
    operator = parameters["operator"].value.strip() if "operator" in parameters else ""
    if expected is None or operator != "equals":
        fault = f"has the operator {operator!r}; only equals has one expected value"
    elif expected.is_reference:
        fault = f"expects what {expected.value} refers to, not a fixed value"
    if fault:
        raise UsageError(f"the criterion {expectation.label} {fault}", actions=["Edit the test by hand."])


def _has_value(expectation: Expectation, value: str) -> bool:
    expected = expected_value(expectation)
    is_actions = canonical_name(expectation.name) == ACTIONS
    return parse_actions(expected) == parse_actions(value) if is_actions else expected == value


def _has_calls(expectation: Expectation, calls: Sequence[JsonValue]) -> bool:
    named = [call if isinstance(call, dict) else {"name": call} for call in calls]
    if parse_actions(expectation.expected_value or "") != tuple(str(call["name"]).strip() for call in named):
        return False
    return expectation.terms.get("calls", [{"name": call["name"]} for call in named]) == named


def _without_value(place: ExpectationPlace) -> Case:
    """Return a case without one expected value; the labels of checks are made of their values."""
    turns, expectations = [*place.case.turns], [*place.case.turns[place.turn].expectations]
    expectation = place.expectation
    parameters = tuple(one._replace(value="") if one.name == "expected" else one for one in expectation.parameters)
    label = None if expectation.name in WHOLE_ANSWERS else expectation.label
    terms = {name: term for name, term in expectation.terms.items() if name != "calls"}
    expectations[place.position] = replace(
        expectation, expected_value=None, parameters=parameters, label=label, terms=terms
    )
    turns[place.turn] = replace(turns[place.turn], expectations=tuple(expectations))
    return replace(place.case, turns=tuple(turns))


def _expects(expectation: Expectation, result: TestResult, text: str) -> bool:
    """Return whether an expectation expects what a result shows as expected or actual."""
    calls = expectation.terms.get("calls")
    if not isinstance(calls, list):
        return _is_same(result, expected_value(expectation), text)
    # A failure shows the calls line by line, beside those that were made.
    wanted = [str(read_call(call, (), [])) for call in calls]
    lines = sorted(line for line in text.split("\n") if line != NO_CALL)
    return text == f"[{', '.join(wanted)}]" or lines == sorted(" ".join(call.splitlines()) for call in wanted)


def _is_same(result: TestResult, one: str, other: str) -> bool:
    """Return whether two expected values are the same for a result, which may have one in another spelling."""
    if canonical_name(result.name) == ACTIONS:
        return parse_actions(one) == parse_actions(other) and (parse_actions(one) is not None or one == other)
    return one.strip() == other.strip()


def _changed(judged: CaseResult, how: str, label: str) -> NoReturn:
    way_out = Suggestion("Run the test again, and accept a new answer", "run", label)
    raise UsageError(f"case {judged.number} of {label} has changed since the run: {how}", actions=[way_out])


EXPECTATION_KEYS: Final = {
    TOPIC: ("expectedTopic", "topic"),
    ACTIONS: ("expectedActions", "actions"),
    OUTCOME: ("expectedOutcome",),
    **{name: (name,) for name in WHOLE_ANSWERS},
}
"""The keys of test cases by the names of their expectations."""
# A text that YAML 1.1 and 1.2 read as itself without quotes: words that begin with a letter.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?: [A-Za-z0-9_.,]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
# YAML 1.2, section 5.1; NEL, LS and PS are line ends in YAML 1.1.
_UNPRINTABLE: Final = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def replace_expected(
    data: bytes, *, label: str, number: int, turn: int, expectation: Expectation, place: int, value: str
) -> bytes:
    """Return the bytes of a test spec in which one check, found by its index in its turn, expects another value.

    The value of actions is their list as `render_actions` writes it. Raise FormatError if it has no place of its own.
    """
    edit, case = _opened(data, number, turn, label)
    if (name := canonical_name(expectation.name)) in OPERATORS:
        return edit.replace(*_expected_parameter(case, place, label, line=_line(case)), value)
    return edit.replace(*_own_pair(case, name, label), value, items=parse_actions(value) if name == ACTIONS else None)


def _opened(data: bytes, number: int, turn: int, label: str) -> tuple[_Edit, Node]:
    """Return the text of a test spec to edit, and the node of a turn."""
    text = data.decode()
    mark = len(text) - len(text.removeprefix("\ufeff"))
    root = yaml.compose(text[mark:], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    case = _case(root, number, label)
    return _Edit(text, mark, label), _items(_value(case, "turns"))[turn] if _value(case, "turns") else case


def _own_pair(case: Node, name: str, label: str) -> tuple[Node, Node]:
    """Return the key of a check and its value."""
    pair = next((pair for key in EXPECTATION_KEYS.get(name, ()) if (pair := _pair(case, key))), None)
    if pair is None:
        _refuse(label, _line(case), f"the test case does not have its own key for {name}; it is in defaults")
    return pair


@dataclass(frozen=True, slots=True)
class _Edit:
    """The text of a file, and where its nodes begin."""

    _text: str
    _shift: int
    _label: str

    def replace(self, key: Node, node: Node, value: str, *, items: tuple[str, ...] | None = None) -> bytes:
        start, old = self._old(key, node)
        end = start + len(old)
        if isinstance(node, ScalarNode):
            written = self._flow(items or ())
            if items is None or (len(items) == 1 and old):
                written = _text(items[0] if items else value, can_be_plain=not node.style and not self._is_json)
            written = f" {written}" if self._text[start - 1 : start] == ":" else written
        elif isinstance(node, SequenceNode) and items is not None:
            is_flow = node.flow_style
            texts = [_text(item, can_be_plain=not (is_flow and self._is_json)) for item in items]
            start, written = self._list(key, node, start, old, texts)
        else:
            _refuse(self._label, _line(node), "the value is not a text")
        return (self._text[:start] + written + self._text[end:]).encode()

    def replace_calls(self, key: Node, node: Node, calls: Sequence[tuple[JsonValue, int | None]]) -> bytes:
        """Return the bytes with other calls; those with an index in the old list keep their text."""
        start, old = self._old(key, node)
        end, items = start + len(old), _items(node) or [node]
        texts = [self._flow_value(call) if kept is None else self._source(items[kept]) for call, kept in calls]
        if isinstance(node, SequenceNode):
            start, written = self._list(key, node, start, old, texts)
        elif len(texts) == 1:
            written = texts[0]
        else:
            written = f"[{', '.join(self._flow_value(call) for call, _ in calls)}]"
        return (self._text[:start] + written + self._text[end:]).encode()

    def _old(self, key: Node, node: Node) -> tuple[int, str]:
        """Return where a value begins, and its text."""
        start, old = node.start_mark.index + self._shift, self._source(node)
        if old[:1] in {"&", "!", "*"} or start < key.end_mark.index:
            _refuse(self._label, _line(node), "the value has an anchor, an alias or a tag")
        return start, old

    def _source(self, node: Node) -> str:
        last = node
        # The end of a block list or mapping is after the comments that follow it.
        while isinstance(last, SequenceNode | MappingNode) and last.value and not last.flow_style:
            last = last.value[-1] if isinstance(last, SequenceNode) else last.value[-1][1]
        return self._text[node.start_mark.index + self._shift : last.end_mark.index + self._shift].rstrip()

    def _flow_value(self, value: JsonValue) -> str:
        """Return a value on one line."""
        if isinstance(value, dict):
            return (
                "{" + ", ".join(f"{self._name(name)}: {self._flow_value(part)}" for name, part in value.items()) + "}"
            )
        if isinstance(value, list):
            return f"[{', '.join(map(self._flow_value, value))}]"
        return self._name(value) if isinstance(value, str) else json.dumps(value)

    def _name(self, text: str) -> str:
        return _text(text, can_be_plain=not self._is_json and text.isidentifier())

    def _flow(self, items: tuple[str, ...]) -> str:
        return "[" + ", ".join(_text(item, can_be_plain=not self._is_json) for item in items) + "]"

    def _list(self, key: Node, node: SequenceNode, start: int, old: str, texts: Sequence[str]) -> tuple[int, str]:
        """Return where the new list of items with these texts begins, and its text."""
        if "#" in old:
            _refuse(self._label, _line(node), "the list may have comments, which would be lost")
        if node.flow_style:
            return start, f"[{', '.join(texts)}]"
        if not texts:
            return key.end_mark.index + self._shift, ": []"
        line_end = "\r\n" if "\r\n" in self._text else "\n"
        between = f"{line_end}{' ' * node.start_mark.column}- "
        return start, "- " + between.join(texts)

    @property
    def _is_json(self) -> bool:
        return self._text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def _case(root: Node | None, number: int, label: str) -> Node:
    cases = [item for key in ("testCases", "cases") for item in _items(_value(root, key))]
    mappings = [case for case in cases if isinstance(case, MappingNode)]
    if number > len(mappings):
        _refuse(label, 1, f"test case {number} is in another file")
    return mappings[number - 1]


def _expected_parameter(case: Node, place: int, label: str, *, line: int) -> tuple[Node, Node]:
    criteria = _items(_value(case, "customEvaluations"))
    if place >= len(criteria):
        _refuse(label, line, "the test case does not have its own custom evaluation; it is in defaults")
    named = ((_value(item, "name"), item) for item in _items(_value(criteria[place], "parameters")))
    expected = (node for name, node in named if isinstance(name, ScalarNode) and name.value == "expected")
    pair = _pair(next(expected, None), "value")
    if pair is None:
        _refuse(label, _line(criteria[place]), "the custom evaluation has no expected value")
    return pair


def _items(node: Node | None) -> list[Node]:
    return node.value if isinstance(node, SequenceNode) else []


def _value(node: Node | None, key: str) -> Node | None:
    pair = _pair(node, key)
    return pair[1] if pair else None


def _pair(node: Node | None, key: str) -> tuple[Node, Node] | None:
    pairs: list[tuple[Node, Node]] = node.value if isinstance(node, MappingNode) else []
    return next((pair for pair in pairs if pair[0].value == key), None)


def _text(value: str, *, can_be_plain: bool) -> str:
    r"""Return a scalar; in double quotes, it is also a JSON string, except for `\Uxxxxxxxx`."""
    if can_be_plain and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", quoted)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse(label: str, line: int, reason: str) -> NoReturn:
    way_out = f"Edit {label}, line {line}, with a text editor."
    raise FormatError(f"{label}:{line}: the expected value cannot be replaced: {reason}", actions=[way_out])
