"""Definitions in the form that orgs write, whose test cases expect the same again and again: each text is read once."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.definition import Inputs, TestCase
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import excess_elements, line_and_column, read_xml
from evalmeta.xmlio.structure import find_fault

if TYPE_CHECKING:
    from evalmeta.model.definition import Definition, Expectation

_BEGIN: Final = f'<?xml version="1.0" encoding="UTF-8"?>\n<{EVALUATION_DEFINITION.name} xmlns="'
_CASE: Final = "<testCase>"
_CASE_END: Final = "</testCase>"
_EXPECTATION: Final = "<expectation>"
_EXPECTATION_END: Final = "</expectation>"
_NAME: Final = "<name>"
# Comments, CDATA sections and processing instructions, which may contain tags, and line breaks that XML changes.
_SPECIAL: Final = ("<!", "<?", "\r")
# The utterance has no character that XML changes or does not allow.
_REST: Final = re.compile(
    r"[ \t\n]*+<inputs>[ \t\n]*+<utterance>([^<>&\x00-\x08\x0b-\x1f\ufffe\uffff]*+)</utterance>"
    r"[ \t\n]*+</inputs>[ \t\n]*+"
    r"(?:<number>([0-9]{1,9})</number>[ \t\n]*+)?</testCase>[ \t\n]*+"
)


class ReadDefinition(NamedTuple):
    """A definition that fits its type, and line and column of its name."""

    definition: Definition
    place_of_name: tuple[int, int]


def read_repetitions(data: bytes, *, label: str) -> ReadDefinition | None:
    """Return a definition that is written as orgs write it; None if it is written otherwise or does not fit its type.

    The document that is parsed, and checked with the schema, has no expectation twice, and no test case of which
    nothing else is new: its inputs are an utterance, and it may have a number. What is left out has the same text, in
    the same place, as something that fits, so it fits too.
    """
    text = _text(data)
    head, *pieces = text.split(_CASE)
    body, end, tail = pieces[-1].rpartition(_CASE_END) if pieces else ("", "", "")
    reader = _Reader()
    if len(pieces) >= limits.MAX_XML_CHILDREN / 2 or not end or not all(map(reader.add, (*pieces[:-1], body + end))):
        return None
    new = "".join((head, *reader.kept, tail))
    # Only what is left out needs no look: it has the form of a usual case, or is known.
    if new.count("xmlns") > 1 or any(new.find(special, 1) >= 0 for special in _SPECIAL):
        return None
    try:
        document = read_xml(new.encode(), label=label)
    except InvalidMetadata:
        return None
    definition = read_leniently(document)
    if len(definition.test_cases) != reader.kept_cases or find_fault(document, EVALUATION_DEFINITION.xsd):
        return None
    cases = reader.cases(definition)
    numbers = [case.number for case in cases if case.number is not None]
    name = head.find(_NAME)
    name = text.find(_NAME, len(text) - len(tail)) if name < 0 else name
    if name < 0 or len(set(numbers)) < len(numbers):
        return None
    return ReadDefinition(replace(definition, test_cases=cases), line_and_column(text, name))


def _text(data: bytes) -> str:
    """Return the text of a file that begins as orgs write it and is not too large; empty for others."""
    if len(data) > limits.MAX_XML_BYTES or excess_elements(data, limits.MAX_XML_ELEMENTS):
        return ""
    if not data.startswith(_BEGIN.encode()):
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


class _Reader:
    """Collects the test cases of a definition; `kept` are the texts of those that have something new."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.kept_cases = 0
        self._cases: list[tuple[tuple[int, ...], str | None, str | None]] = []
        # The numbers of expectations by their text, alone and all of a case.
        self._numbers: dict[str, int] = {}
        self._lists: dict[str, tuple[int, ...]] = {}

    def add(self, piece: str) -> bool:
        """Add the text of a case after its start tag; return whether it has the usual form."""
        before, end, rest = piece.rpartition(_EXPECTATION_END)
        numbers, new = self._lists.get(before) if end else (), ""
        if numbers is None:
            texts = before.split(_EXPECTATION_END)
            unknown = [text for text in dict.fromkeys(texts) if text not in self._numbers]
            if not all(map(_is_expectation, unknown)) or len(texts) > limits.MAX_XML_CHILDREN / 2:
                return False
            self._numbers.update((text, number) for number, text in enumerate(unknown, len(self._numbers)))
            numbers = self._lists[before] = tuple(self._numbers[text] for text in texts)
            new = "".join(f"{text}{_EXPECTATION_END}" for text in unknown)
        usual = _REST.fullmatch(rest)
        if usual and not new and self.kept:
            self._cases.append((numbers, usual[1], usual[2]))
        elif usual or _is_one_case(rest):
            self.kept += (_CASE, new, rest)
            self.kept_cases += 1
            self._cases.append((numbers, None, None))
        else:
            return False
        return True

    def cases(self, definition: Definition) -> tuple[TestCase, ...]:
        """Return all cases, from the definition that has what is new in each."""
        kept = iter(definition.test_cases)
        known = list(chain.from_iterable(case.expectations for case in definition.test_cases))
        lists: dict[tuple[int, ...], tuple[Expectation, ...]] = {}
        cases = []
        for numbers, utterance, number in self._cases:
            expectations = lists.get(numbers)
            if expectations is None:
                expectations = lists[numbers] = tuple(known[place] for place in numbers)
            if utterance is None:
                cases.append(replace(next(kept), expectations=expectations))
            else:
                cases.append(TestCase(Inputs(utterance), expectations, None if number is None else int(number)))
        return tuple(cases)


def _is_expectation(text: str) -> bool:
    """Return whether a text up to the end tag of an expectation is this expectation alone."""
    return text.lstrip(" \t\n").startswith(_EXPECTATION) and text.count("<expectation") == 1


def _is_one_case(rest: str) -> bool:
    """Return whether a case's text after its expectations ends with the case, and has no other expectation."""
    return rest.rstrip(" \t\n").endswith(_CASE_END) and rest.count(_CASE_END) == 1 and "<expectation" not in rest
