"""Definitions that are much alike, every change of one field, and files in all the forms that are allowed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
    fields_of,
)
from evalmeta.model.registry import TYPES
from evalmeta.xmlio.reader import NAMESPACE
from strategies import xml_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from evalmeta.model.definition import Fields
    from evalmeta.model.registry import MetadataType

__all__ = ["alike_definitions", "files_of", "mutations"]

T = TypeVar("T")

_XSI = "http://www.w3.org/2001/XMLSchema-instance"

TEXTS = st.sampled_from(["a", "b", "]]>", " \r\n"]) | xml_texts
NAMES = st.sampled_from(
    ["topic_sequence_match", "topic_assertion", "bot_response_rating", "coherence", "string_comparison"]
)
MAYBE = st.none() | TEXTS
NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)
PARAMETERS = st.builds(
    Parameter, st.sampled_from(["operator", "actual", "expected"]) | TEXTS, TEXTS, st.none() | st.booleans()
)
EXPECTATIONS = st.builds(Expectation, NAMES | TEXTS, MAYBE, MAYBE, st.lists(PARAMETERS, max_size=3).map(tuple), MAYBE)
PROMPT_INPUTS = st.builds(PromptInput, TEXTS, TEXTS)
VARIABLES = st.builds(ContextVariable, TEXTS, TEXTS)
MESSAGES = st.builds(HistoryMessage, MAYBE, MAYBE, MAYBE, NUMBERS)
INPUTS = st.builds(
    Inputs,
    TEXTS,
    st.lists(VARIABLES, max_size=3).map(tuple),
    st.lists(MESSAGES, max_size=4).map(tuple),
    st.lists(PROMPT_INPUTS, max_size=3).map(tuple),
)
CASES = st.builds(TestCase, INPUTS, st.lists(EXPECTATIONS, max_size=4).map(tuple), st.none() | st.integers(1, 6))


def _has_own_number(case: TestCase) -> object:
    return object() if case.number is None else case.number


def alike_definitions() -> st.SearchStrategy[Definition]:
    """Gives definitions whose parts often have the same names, numbers and values."""
    cases = st.lists(CASES, max_size=4, unique_by=_has_own_number).map(tuple)
    return st.builds(Definition, TEXTS, TEXTS, st.just("AGENT"), MAYBE, MAYBE, cases, st.sampled_from(TYPES))


def mutations(definition: Definition) -> Iterator[tuple[str, Definition]]:
    """Gives every definition that differs in one field, with the field's name."""
    for name in ("name", "subject_name", "subject_version", "description"):
        yield _camel(name), replace(definition, **{name: _other(getattr(definition, name))})
    for place, case in enumerate(definition.test_cases):
        for name, changed in _cases(case):
            yield name, replace(definition, test_cases=_put(definition.test_cases, place, changed))


def files_of(definition: Definition, chance: Random) -> bytes:
    """Gives a definition's file in some form: any order, any layout, comments, CDATA, a prefix."""
    return _Writer(chance).write(definition)


def _cases(case: TestCase) -> Iterator[tuple[str, TestCase]]:
    yield "number", replace(case, number=None if case.number else 77)
    yield "number", replace(case, number=78)
    yield "utterance", replace(case, inputs=replace(case.inputs, utterance=_other(case.inputs.utterance)))
    for name, changed in _each(case.inputs.context_variables, {"variableName": "name", "variableValue": "value"}):
        yield name, replace(case, inputs=replace(case.inputs, context_variables=changed))
    prompt_inputs = {"referenceName": "reference_name", "value": "value"}
    for name, changed in _each(case.inputs.prompt_inputs, prompt_inputs):
        yield name, replace(case, inputs=replace(case.inputs, prompt_inputs=changed))
    for name, changed in _each(
        case.inputs.conversation_history, {"role": "role", "message": "message", "topic": "topic"}
    ):
        yield name, replace(case, inputs=replace(case.inputs, conversation_history=changed))
    for place, message in enumerate(case.inputs.conversation_history):
        index = None if message.index is not None else 7
        changed = _put(case.inputs.conversation_history, place, replace(message, index=index))
        yield "index", replace(case, inputs=replace(case.inputs, conversation_history=changed))
    fields = {"name": "name", "label": "label", "expectedValue": "expected_value", "scorerType": "scorer_type"}
    for name, changed in _each(case.expectations, fields):
        yield name, replace(case, expectations=changed)
    for place, expectation in enumerate(case.expectations):
        for name, changed in _each(expectation.parameters, {"name": "name", "value": "value"}):
            yield (
                name,
                replace(case, expectations=_put(case.expectations, place, replace(expectation, parameters=changed))),
            )
        for number, parameter in enumerate(expectation.parameters):
            turned = _put(expectation.parameters, number, parameter._replace(is_reference=not parameter.is_reference))
            yield (
                "isReference",
                replace(case, expectations=_put(case.expectations, place, replace(expectation, parameters=turned))),
            )


def _each(items: tuple[T, ...], fields: Mapping[str, str]) -> Iterator[tuple[str, tuple[T, ...]]]:
    for place, item in enumerate(items):
        for name, attribute in fields.items():
            change = getattr(item, "_replace", None) or partial(replace, item)
            yield name, _put(items, place, change(**{attribute: _other(getattr(item, attribute))}))


def _put(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _other(text: str | None) -> str:
    return f"{text or ''}~"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


class _Writer:
    """Writes XML in any of its forms; `chance` decides."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._prefix = chance.choice(["", "", "m:"])

    def write(self, definition: Definition) -> bytes:
        kind = definition.type
        body = self._parent(
            kind.name,
            [*self._leaves(fields_of(definition)), *(self._case(case, kind) for case in definition.test_cases)],
        )
        xmlns = f'xmlns:{self._prefix[:-1]}="{NAMESPACE}"' if self._prefix else f"xmlns='{NAMESPACE}'"
        body = body.replace(kind.name, f'{kind.name} {xmlns} xmlns:xsi="{_XSI}" xsi:schemaLocation="a b"', 1)
        declaration = self._chance.choice(
            ["", "<?xml version='1.0'?>\n", '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>']
        )
        return f"{declaration}{self._between()}{body}{self._between()}".encode()

    def _case(self, case: TestCase, kind: MetadataType) -> str:
        inputs = [*self._leaves({"utterance": case.inputs.utterance})]
        inputs += [self._parent("promptInput", self._leaves(fields_of(given))) for given in case.inputs.prompt_inputs]
        variables = [
            self._parent("contextVariable", self._leaves(fields_of(variable)))
            for variable in case.inputs.context_variables
        ]
        history = [
            self._parent("conversationHistory", self._leaves(fields_of(each)))
            for each in case.inputs.conversation_history
        ]
        expectations = [self._expectation(expectation, kind) for expectation in case.expectations]
        number = self._leaves(fields_of(case))
        return self._parent(
            "testCase", [*number, self._parent("inputs", [*inputs, *variables, *history]), *expectations]
        )

    def _expectation(self, expectation: Expectation, kind: MetadataType) -> str:
        parameters = [
            self._parent("parameter", self._leaves(fields_of(parameter))) for parameter in expectation.parameters
        ]
        return self._parent(kind.expectation, [*self._leaves(fields_of(expectation)), *parameters])

    def _parent(self, name: str, children: Sequence[str]) -> str:
        mixed = self._mixed(children)
        inside = self._between() + "".join(child + self._between() for child in mixed)
        return f"<{self._prefix}{name}>{inside}</{self._prefix}{name}>"

    def _mixed(self, children: Sequence[str]) -> list[str]:
        """Changes the order of elements with different names only."""
        names = [child.partition(">")[0] for child in children]
        order = self._chance.sample(sorted(set(names)), k=len(set(names)))
        return [child for name in order for child, own in zip(children, names, strict=True) if own == name]

    def _leaves(self, fields: Fields) -> list[str]:
        return [self._leaf(name, text) for name, text in fields.items() if text is not None]

    def _leaf(self, name: str, text: str) -> str:
        if not text and self._chance.random() < 0.5:
            return f"<{self._prefix}{name} />"
        return f"<{self._prefix}{name}\n>{self._text(text)}</{self._prefix}{name}>"

    def _text(self, text: str) -> str:
        cut = self._chance.randint(0, len(text))
        pieces = [self._piece(text[:cut]), self._piece(text[cut:])]
        return self._chance.choice(["", "", "<!-- in between -->"]).join(pieces)

    def _piece(self, text: str) -> str:
        if "]]>" not in text and "\r" not in text and not text.endswith("]") and self._chance.random() < 0.3:
            return f"<![CDATA[{text}]]>"
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")

    def _between(self) -> str:
        choices = [
            "",
            "\n",
            " ",
            "\n\n\t",
            "<!-- a -->",
            " <!-- b's\n two --> ",
            "\n<!--c-->\n",
            "<?keep it?>",
            " <!-- d --> <!--e-->\n",
        ]
        return "".join(self._chance.choices(choices, k=2))
