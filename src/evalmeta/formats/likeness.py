"""How much a value that was read from YAML or JSON is like a test spec, also one with mistakes in its keys.

A newcomer writes `contians`, `testcases`, or the words of another tool. The same words are keys of data, of fixtures
and of other programs' settings, so that only combinations of them make a file a test. JSON and tables have more data
than YAML: there, one key of a check must be evalmeta's own.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from evalmeta.formats.document import CASE_FILES
from evalmeta.formats.registry import all_formats
from evalmeta.formats.spec_cases import ANSWERS, ASSERTIONS, QUESTIONS, case_hints, case_keys, check_keys
from evalmeta.plugins import all_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.model.json_value import JsonObject, JsonValue


_NOT_IN_WORDS: Final = re.compile(r"[\W_]+")
# Shorter words are near too many others.
_MIN_NEAR: Final = 5
# Translations of user interfaces have most words.
_MOST_STRANGE: Final = 12
_EXAMINED: Final = 200

_HEADERS: Final = ("subjectName", "subjectType", "testCases")
_SPEC_WORDS: Final = ("subject", "defaults", "iterations", "min_pass_rate", "subjectVersion")
_CASES: Final = ("testCases", "cases")
_OTHER_CASES: Final = ("tests", "test", "scenarios", "evals")
_ASKS: Final = ("input", "utterance", "turns")
# Only sf has these checks.
_OF_SF: Final = ("expectedTopic", "expectedActions", "expectedOutcome", "customEvaluations")
# In JSON and tables. Data sets for judges of texts have a prompt with rubrics.
_QUESTIONS: Final = ("question", "prompt")
_RUBRIC: Final = {"rubric"}
# A recorded answer has the handoffs that the agent reported.
_OF_RECORDINGS: Final = {"handoffs"}
# Words of training data and agents, which are not misspelt.
_OTHERS: Final = ("utterances", "topics")
_SYNONYMS: Final = (
    *("icontains", "contains_ignore_case", "llm-rubric", "llm_rubric"),
    *("expectedSubagent", "expectedResponse"),
)


class Likeness(IntEnum):
    """How much a mapping is like a test case; a higher one is more certain."""

    NONE = 0
    UNCHECKED = 1
    """It has a message to the agent and other keys of test cases, but no check."""
    FOREIGN = 2
    """Its message and its checks are words of other tools."""
    MIXED = 3
    """It has evalmeta's message, and a check with a common name or of another tool."""
    OWN = 4
    """It has a message, and a check that only evalmeta has."""


@cache
def _strong() -> frozenset[str]:
    return frozenset((*_OF_SF, *(name for name, check in all_checks().items() if check.rarity == "unique")))


@cache
def _weak() -> frozenset[str]:
    return frozenset(name for name, check in all_checks().items() if check.rarity == "usual")


@cache
def _foreign_checks() -> frozenset[str]:
    words = (word for word in (*ASSERTIONS, *ANSWERS) if word != "output")
    return frozenset((*words, *(word for word in case_hints() if word.startswith("expected"))))


def is_spec(value: JsonValue, *, is_yaml: bool) -> bool:
    """Return whether a value is a test spec, also one with mistakes in its keys."""
    if isinstance(value, list):
        return _best(value, is_yaml=is_yaml) >= (Likeness.MIXED if is_yaml else Likeness.OWN)
    if not isinstance(value, dict):
        return False
    meant = {meant_key(key) for key in value}
    if len(meant.intersection(_HEADERS)) > 1:
        return True
    if any(_has_cases(key, item, meant, is_yaml=is_yaml) for key, item in value.items()):
        return True
    # One test case, without the list around it.
    likeness = _likeness(_words(value), is_yaml=is_yaml, is_own=True)
    return likeness == Likeness.OWN or (likeness == Likeness.MIXED and is_yaml and set(value) <= {*case_keys()})


def is_damaged_spec(root: Iterable[str], words: Iterable[str], *, is_yaml: bool) -> bool:
    """Return whether the keys of a text that cannot be parsed are those of a test spec: those at its root, and all."""
    headers = {meant_key(key) for key in root}.intersection(_HEADERS)
    if len(headers) > 1 or (is_yaml and "testCases" in headers):
        return True
    return is_case(words) and (is_yaml or not {meant_key(key) for key in root}.isdisjoint(_CASES))


def has_key_of_format(root: Iterable[str]) -> bool:
    """Return whether a key is one that certainly shows a format other than a test spec, also with a mistake."""
    return not {meant_key(key) for key in root}.isdisjoint(_keys_of_formats())


def has_words(words: Iterable[str]) -> bool:
    """Return whether keys can be those of a test spec, so that their places must be known."""
    meant = {meant_key(word) for word in words}
    if not meant.isdisjoint((*_HEADERS, *_CASES, *_OTHER_CASES)):
        return True
    return not meant.isdisjoint((*_ASKS, *QUESTIONS)) and not meant.isdisjoint(_strong() | _weak() | _foreign_checks())


def is_case(words: Iterable[str]) -> bool:
    """Return whether keys or columns are certainly those of a test case, also with mistakes."""
    return _likeness(words, is_yaml=False) == Likeness.OWN


@lru_cache(10_000)
def meant_key(word: str) -> str:
    """Return the key of test specs that a word is or resembles, or the word of another tool; empty for others."""
    small = _small(word)
    if known := _known().get(small):
        return known
    if len(small) < _MIN_NEAR:
        return ""
    nearby = (known for cut in _cuts(small) for known in _by_cut().get(cut, ()))
    return next((_known()[known] for known in nearby if _is_near(small, known)), "")


@cache
def _by_cut() -> dict[str, list[str]]:
    """Return the known words by what is left of them without one letter, so that near ones are found at once."""
    words: dict[str, list[str]] = {}
    for word in _known():
        for cut in _cuts(word) if len(word) >= _MIN_NEAR else ():
            words.setdefault(cut, []).append(word)
    return words


def _cuts(word: str) -> list[str]:
    return [word, *(word[:place] + word[place + 1 :] for place in range(len(word)))]


@cache
def _known() -> dict[str, str]:
    own = (*_HEADERS, *_CASES, *case_keys())
    foreign = (*QUESTIONS, *ASSERTIONS, *ANSWERS, *_OTHER_CASES, *_SPEC_WORDS, *_OTHERS, *case_hints())
    words = (*foreign, *_keys_of_formats(), *own)
    return {_small(word): word for word in words} | {_small(word): "contains" for word in _SYNONYMS}


@cache
def _keys_of_formats() -> list[str]:
    return [key for declared in all_formats().values() for key in declared.similar_keys]


def _small(word: str) -> str:
    return _NOT_IN_WORDS.sub("", word[:40]).casefold()


def _is_near(word: str, known: str) -> bool:
    """Return whether a word has one letter too many, too few, a wrong one, or two that are swapped."""
    differing = (place for place, pair in enumerate(zip(word, known, strict=False)) if pair[0] != pair[1])
    begin = next(differing, min(len(word), len(known)))
    rest, right = word[begin:], known[begin:]
    return rest[1:] == right or rest == right[1:] or rest[1:] == right[1:] or rest[1::-1] + rest[2:] == right


def _has_cases(key: str, value: JsonValue, others: set[str], *, is_yaml: bool) -> bool:
    """Return whether a key of a spec, or what a user took for it, has test cases or names a file with them."""
    meant = meant_key(key)
    if meant in _CASES:
        if key == "testCases" and is_yaml:
            return True
        names = (name.lower() for name in (value if isinstance(value, list) else [value]) if isinstance(name, str))
        has_files = any(name.endswith(CASE_FILES) for name in names)
        if has_files or (not value and (meant == "testCases" or not others.isdisjoint(_SPEC_WORDS))):
            return is_yaml
    needed = Likeness.OWN
    if is_yaml:
        needed = Likeness.UNCHECKED if meant in _CASES else Likeness.FOREIGN if meant in _OTHER_CASES else needed
    elif key == "testCases":
        needed = Likeness.MIXED
    # What may be the test cases: the items of a list, or a mapping and its values.
    items = [value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return _best(items, is_yaml=is_yaml, is_own=meant in _CASES) >= needed


def _best(items: Iterable[JsonValue], *, is_yaml: bool, is_own: bool = False) -> Likeness:
    cases = (case for case in islice(items, _EXAMINED) if isinstance(case, dict))
    likenesses = (_likeness(_words(case), is_yaml=is_yaml, is_own=is_own) for case in cases)
    return max(likenesses, default=Likeness.NONE)


def _words(case: JsonObject) -> Iterator[str]:
    """Yield the keys of a test case and of its turns."""
    yield from case
    for key, value in case.items():
        for turn in value[:_EXAMINED] if isinstance(value, list) and meant_key(key) == "turns" else ():
            yield from turn if isinstance(turn, dict) else ()


def _likeness(words: Iterable[str], *, is_yaml: bool, is_own: bool = False) -> Likeness:
    words = [*words]
    meant = {meant_key(word) for word in words}
    if len(words) > _MOST_STRANGE and sum(not meant_key(word) for word in words) > len(words) / 2:
        return Likeness.NONE
    asks, asks_otherwise = not meant.isdisjoint(_ASKS), not meant.isdisjoint(QUESTIONS if is_yaml else _QUESTIONS)
    checks = meant & _strong()
    if checks == _OF_RECORDINGS and "outcome" in words and not is_yaml:
        return Likeness.NONE
    if checks and (asks or (asks_otherwise and (is_yaml or checks != _RUBRIC))):
        return Likeness.OWN
    common = _weak() | (_foreign_checks() if is_yaml else frozenset())
    if is_own:
        # Programs call their data as some checks, too.
        common = common.union(check_keys()) - _strong()
    if asks and not meant.isdisjoint(common):
        return Likeness.MIXED
    if asks_otherwise and not meant.isdisjoint(common) and is_yaml:
        return Likeness.FOREIGN
    return Likeness.UNCHECKED if asks and is_yaml and meant <= {*case_keys()} else Likeness.NONE
