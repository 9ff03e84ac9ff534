"""Custom criteria: an operator between an actual and an expected value, either of them by reference.

Custom criteria made ready: the operator, and how to read both sides from what came back.

Overlap: how many words of the expected answer are in the agent's, and the other way round (ROUGE-1).

Source: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004. What
counts as a word differs among the tools that use this score.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from operator import attrgetter, contains, eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.engine.jsonpath import TooManyMatches, compile_reference, resolve
from evalmeta.engine.scorers.porter_stemmer import stem
from evalmeta.engine.scorers.results import averaged, broken, judged, undecided
from evalmeta.engine.statistics import parse_number
from evalmeta.model.expectations import OPERATORS, PARAMETER_NAMES, canonical_name
from evalmeta.model.generated_data import reference_root
from evalmeta.model.jsonpath import REFERENCE_ROOT, Names, ReferenceSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation, Parameter
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.jsonpath import Reference
    from evalmeta.model.run import Matches, TestResult

    Read = Callable[[GeneratedData], Sequence[JsonValue]]


_KNOWN: Final = 1_024


class _Finding(NamedTuple):
    """What came of one actual value."""

    passed: bool
    actual: str
    explanation: str


def comparison_scorer(matches: Matches = "first") -> Scorer:
    """Makes the scorer of custom criteria: passes when the operator holds; the score is 1 or 0.

    Of several values that the reference of `actual` matches, the `first`, `any` one or
    `all` must hold; of several expected ones the first counts. An explanation says how
    many there were. A value that is null, or no number where one is compared, is a
    FAILURE that says so. An unknown operator, a missing parameter, a reference that
    matches nothing and an expected value that cannot be compared with are ERRORs.
    """
    # Of the same case in every iteration; to hash parameters takes longer than to compare.
    known: dict[int, tuple[Expectation, Criterion | str]] = {}

    def prepared(expectation: Expectation, name: str) -> Criterion | str:
        found = known.get(id(expectation))
        if found is not None and found[0] is expectation:
            return found[1]
        if len(known) >= _KNOWN:
            known.clear()
        criterion = criterion_of(name, expectation.parameters)
        known[id(expectation)] = expectation, criterion
        return criterion

    def score_comparison(expectation: Expectation, exchange: Exchange) -> TestResult:
        name = canonical_name(expectation.name)
        criterion = prepared(expectation, name)
        if isinstance(criterion, str):
            return broken(expectation, criterion)
        compare = _compare_numbers if name == "numeric_comparison" else _compare_strings
        try:
            actual, expected = criterion.actual(exchange.generated), criterion.expected(exchange.generated)
            findings = [compare(criterion.operator, value, expected[0]) for value in _counted(actual, matches)]
        except Unusable as error:
            return broken(expectation, str(error))
        finding = _deciding(findings, matches)
        return judged(
            expectation,
            passed=finding.passed,
            expected=_text(expected[0]),
            actual=finding.actual,
            explanation=finding.explanation + _remarks(findings, len(actual), len(expected), matches),
        )

    return score_comparison


def _counted(actual: Sequence[JsonValue], matches: Matches) -> Sequence[JsonValue]:
    return actual[:1] if matches == "first" else actual


def _deciding(findings: Sequence[_Finding], matches: Matches) -> _Finding:
    """Gives the finding that settles it: one that holds where any may, one that fails where all must."""
    if len(findings) == 1:
        return findings[0]
    settles = matches == "any"
    return next((each for each in findings if each.passed is settles), findings[0])


def _remarks(findings: Sequence[_Finding], actual: int, expected: int, matches: Matches) -> str:
    if actual == expected == 1:
        return ""
    remark = ""
    if actual > 1:
        holding = sum(each.passed for each in findings)
        said = {"first": "only the first counts", "any": "one is enough", "all": "all must"}[matches]
        held = "" if matches == "first" else f"it holds for {holding}, "
        remark = f"; the reference of actual has {actual} matches: {held}{said}"
    return remark + (f"; the reference of expected has {expected} matches: the first counts" if expected > 1 else "")


def _compare_strings(operator: str, actual: JsonValue, expected: JsonValue) -> _Finding:
    if expected is None:
        raise Unusable("the expected value is null: there is nothing to compare with")
    found, wanted = _text(actual), _text(expected)
    if actual is None:
        return _Finding(False, found, f"the actual value is null, expected {_short(wanted)}")
    return _explained(STRINGS[operator](found, wanted), operator, found, wanted)


def _compare_numbers(operator: str, actual: JsonValue, expected: JsonValue) -> _Finding:
    wanted, found = parse_number(expected), parse_number(actual)
    if wanted is None:
        raise Unusable(f"the expected value is no number: {_short(_text(expected))}")
    if found is None:
        return _Finding(False, _text(actual), f"the actual value is no number: {_short(_text(actual))}")
    return _explained(NUMBERS[operator](found, wanted), operator, _text(actual), _text(expected))


def _explained(passed: bool, operator: str, actual: str, expected: str) -> _Finding:  # noqa: FBT001
    phrase = PHRASES[operator][0 if passed else 1]
    return _Finding(passed, actual, f"{_short(actual)} {phrase} {_short(expected)}")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:99] + "…")  # noqa: PLR2004 - enough to recognise it


STRINGS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "equals": eq,
    "contains": contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
NUMBERS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "equals": eq,
    "greater_than_or_equal": ge,
    "greater_than": gt,
    "less_than": lt,
    "less_than_or_equal": le,
}
PHRASES: Final[Mapping[str, tuple[str, str]]] = {
    "equals": ("equals", "does not equal"),
    "contains": ("contains", "does not contain"),
    "startswith": ("starts with", "does not start with"),
    "endswith": ("ends with", "does not end with"),
    "greater_than_or_equal": ("is at least", "is not at least"),
    "greater_than": ("is greater than", "is not greater than"),
    "less_than": ("is less than", "is not less than"),
    "less_than_or_equal": ("is at most", "is not at most"),
}
"""What an operator says when it holds, and when it does not."""


# What is read without the whole object that `$` stands for being made first.
_PLAIN: Final[Mapping[str, Callable[[GeneratedData], JsonValue]]] = {
    "outcome": attrgetter("outcome"),
    "generatedResponse": attrgetter("outcome"),
    "topic": attrgetter("topic"),
    "sessionId": attrgetter("session_id"),
}
_PLAIN_STEPS: Final = 2


class Unusable(Exception):
    """A criterion that cannot be judged; the message becomes the result's error."""


class Criterion(NamedTuple):
    """A criterion ready to be judged; a side gives at least one value, or raises Unusable."""

    operator: str
    actual: Read
    expected: Read


@lru_cache(maxsize=1024)
def criterion_of(name: str, parameters: tuple[Parameter, ...]) -> Criterion | str:
    """Makes a criterion ready, once for each; text is what is wrong with it.

    `name` is canonical. The operator is always a literal.
    """
    given = {parameter.name: parameter for parameter in parameters}
    missing = [each for each in PARAMETER_NAMES if each not in given]
    if missing:
        return f"the parameter {' and '.join(missing)} is missing"
    operator = given["operator"].value.strip()
    if operator not in OPERATORS[name]:
        nearest = get_close_matches(operator.lower(), OPERATORS[name], n=1, cutoff=0)
        return f"{operator!r} is no operator of {name}; the nearest is {nearest[0]}"
    try:
        return Criterion(operator, _reader(given["actual"]), _reader(given["expected"]))
    except Unusable as error:
        return str(error)


def _reader(parameter: Parameter) -> Read:
    if not parameter.is_reference:
        literal = (parameter.value,)
        return lambda _: literal
    try:
        reference = compile_reference(parameter.value)
    except ReferenceSyntax as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    plain = _plain(reference)
    if plain is not None:
        return lambda generated: (plain(generated),)
    return lambda generated: _follow(parameter, reference, generated)


def _plain(reference: Reference) -> Callable[[GeneratedData], JsonValue] | None:
    if len(reference.steps) != _PLAIN_STEPS or reference.steps[0] != Names((REFERENCE_ROOT,)):
        return None
    member = reference.steps[1]
    return _PLAIN.get(member.names[0]) if isinstance(member, Names) and len(member.names) == 1 else None


def _follow(parameter: Parameter, reference: Reference, generated: GeneratedData) -> Sequence[JsonValue]:
    try:
        matches = resolve(reference, reference_root(generated))
    except TooManyMatches as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    if not matches:
        hint = _hint(generated) if "invokedActions" in reference.text else ""
        raise Unusable(f"the reference of {parameter.name} matches nothing: {parameter.value}{hint}")
    return matches


def _hint(generated: GeneratedData) -> str:
    taken = ", ".join(dict.fromkeys(action.name for action in generated.actions))
    return f"; the agent took {taken}" if taken else "; the agent took no action"


_NO_REFERENCE: Final = "the case gives no reference to compare the answer with"
_NO_REFERENCE_IS_0: Final = "the case gives no reference, which counts as 0"
_STEMMED_FROM: Final = 4
_SHOWN_WORDS: Final = 10
_SHOWN_CHARS: Final = 40
_ASCII_WORD: Final = re.compile("[a-z0-9]+")
_SCRIPT_WORD: Final = re.compile("[a-z0-9_]+")
# Long runs of combining marks take the square of their length to normalise, so a text is normalised in pieces that end
# before a base character where there is one. The excluded ones would have joined what stands before them.
_PIECE: Final = re.compile(r"(?s:.{1,1000}(?=[^\W\u1160-\u11ff\uff9e\uff9f\uffa0-\uffdc]|\s|\Z)|.{1,1000})")
# Chinese, Japanese and Korean characters are words; in Thai, Lao, Myanmar and Khmer a letter with its marks is one.
_CHARACTER_WORDS: Final = (("\u3040", "\u30ff"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7af"))
_LETTER_WORDS: Final = (("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"))


class Overlap(NamedTuple):
    """Shares of words, 0 to 1.

    Attributes:
        precision: of the answer's words, how many are expected.
        recall: of the expected words, how many are in the answer.
        score: the F1 of both.
    """

    precision: float
    recall: float
    score: float


class _Words(NamedTuple):
    """One way of telling words.

    Attributes:
        split: gives the words of a text, in lower case.
        are_stemmed: whether longer words in ASCII count by their stems.
        are_unique: whether a word counts once, however often it stands there.
    """

    split: Callable[[str], Sequence[str]]
    are_stemmed: bool = True
    are_unique: bool = False


def score_response_match(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Gives the overlap of the answer with the expectedValue, 0 to 1; the mean of a case must reach the threshold.

    The terms choose what words are (`tokens`): `unicode` (words of all scripts), `ascii`
    (others are left out) or `typescript` (each word once, and not stemmed). Without an
    expectedValue it is UNDECIDED, or 0 where the terms say `"missing": "zero"`. Other
    `tokens` give ERROR.
    """
    actual, tokens = exchange.generated.outcome, expectation.terms.get("tokens", "unicode")
    words = _WORDS.get(tokens) if isinstance(tokens, str) else None
    if words is None:
        return broken(expectation, f"tokens is {tokens!r:.50}; it can be {', '.join(_WORDS)}", actual=actual)
    reference = expectation.expected_value
    if reference is None and expectation.terms.get("missing") != "zero":
        return undecided(expectation, _NO_REFERENCE, actual=actual)
    found, missing = _compare(reference or "", actual, words)
    return averaged(
        expectation,
        score=found.score,
        expected=reference or "",
        actual=actual,
        explanation=_NO_REFERENCE_IS_0 if reference is None else _explanation(found, missing),
    )


def overlap(reference: str, answer: str, *, tokens: str = "unicode") -> Overlap:
    """Gives the ROUGE-1 overlap of two texts; a word counts at most as often as it stands in both."""
    return _compare(reference, answer, _WORDS[tokens])[0]


def _compare(reference: str, answer: str, words: _Words) -> tuple[Overlap, list[str]]:
    """Gives the overlap, and the words of the reference that are not in the answer."""
    named, given = words.split(reference), words.split(answer)
    if words.are_unique:
        named, given = list(dict.fromkeys(named)), list(dict.fromkeys(given))
    expected, said = (map(_token, named), map(_token, given)) if words.are_stemmed else (named, given)
    open_counts = Counter(said)
    missing = []
    for word, token in zip(named, expected, strict=True):
        count = open_counts.get(token)
        if count:
            open_counts[token] = count - 1
        else:
            missing.append(word)
    common = len(named) - len(missing)
    precision, recall = common / max(len(given), 1), common / max(len(named), 1)
    score = 2 * precision * recall / (precision + recall) if common else 0.0
    return Overlap(precision, recall, score), missing


def _token(word: str) -> str:
    return stem(word) if len(word) >= _STEMMED_FROM and word.isascii() else word


def _explanation(found: Overlap, missing: Sequence[str]) -> str:
    shares = f"ROUGE-1 is {found.score:.3f}: precision {found.precision:.3f}, recall {found.recall:.3f}"
    if not missing:
        return shares
    distinct = dict.fromkeys(missing)
    shown = ", ".join(word[:_SHOWN_CHARS] for word in islice(distinct, _SHOWN_WORDS))
    more = f" and {len(distinct) - _SHOWN_WORDS} more" if len(distinct) > _SHOWN_WORDS else ""
    return f"{shares}; missing: {shown}{more}"


def _ascii_words(text: str) -> Sequence[str]:
    return _ASCII_WORD.findall(text.lower())


def _script_words(text: str) -> Sequence[str]:
    return _SCRIPT_WORD.findall(text.lower())


def _unicode_words(text: str) -> Sequence[str]:
    """Gives the words of a text in any script, in its compatibility form (NFKC)."""
    if text.isascii():
        return _ascii_words(text)
    normal = "".join([unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(text)])
    return "".join(map(_spaced, normal.lower())).split()


@lru_cache(maxsize=8_192)
def _spaced(character: str) -> str:
    """Gives a character of a word, with blanks where a word of its own begins or ends; a blank for all others."""
    is_mark = unicodedata.category(character).startswith("M")
    if any(first <= character <= last for first, last in _CHARACTER_WORDS):
        return f" {character} "
    if any(first <= character <= last for first, last in _LETTER_WORDS):
        return character if is_mark else f" {character}"
    return character if is_mark or character.isalnum() else " "


_WORDS: Final[Mapping[str, _Words]] = {
    "unicode": _Words(_unicode_words),
    "ascii": _Words(_ascii_words),
    "typescript": _Words(_script_words, are_stemmed=False, are_unique=True),
}
