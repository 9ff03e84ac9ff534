"""Where an answer has what a check of its text looks for, or where it differs from an answer that passed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.checks import Pattern, PatternSyntax, plain_text
from evalmeta.model.run import DECIDED, CaseResult, TestResult, Verdict
from evalmeta.report.details import exchanges
from evalmeta.report.text import SHOWN_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evalmeta.store.run_lists import ListedRun


_QUOTE: Final = '"'
_BEFORE_CHARS: Final = SHOWN_CHARS // 4
# The search for a match tries a pattern about thirty times.
_MAX_HALVED: Final = 20_000
# How far a part is widened to the left and to the right.
_WIDENED: Final = 100


class Place(NamedTuple):
    """A text with a marked part; `before` and `after` are the numbers of characters that are not shown."""

    start: str
    marked: str
    end: str
    before: int = 0
    after: int = 0


class EarlierAnswers(NamedTuple):
    """The answers of a case in an earlier run by turn, and which of its expectations passed."""

    run: ListedRun
    passed: frozenset[tuple[str, str, str | None, int]]
    answers: Sequence[str | None]


class PassedAnswer(NamedTuple):
    """An answer of an earlier run that passed, beside the one that failed, both from near their difference on."""

    run: ListedRun
    passed: str
    failed: str
    before: int


def place_of_match(result: TestResult) -> Place | None:
    """Return the answer with the part that a check of its text is about; None if there is none.

    Of a check that failed, this is what it must not contain, or what differs from the expected text in case only.
    """
    if result.verdict not in DECIDED or not result.actual:
        return None
    span = next(filter(None, _spans(result)), None)
    return None if span is None else _place(result.actual, *span)


def earlier_answers(past: Iterable[tuple[ListedRun, CaseResult]]) -> list[EarlierAnswers]:
    """Return earlier results of a case in their order."""
    return [
        EarlierAnswers(
            run,
            frozenset(_key(result) for result in case.results if result.verdict is Verdict.PASS),
            [exchange.generated.outcome if exchange.generated else None for exchange in exchanges(case)],
        )
        for run, case in past
    ]


def passed_answer(result: TestResult, turn: int, earlier: Iterable[EarlierAnswers]) -> PassedAnswer | None:
    """Return the first of earlier answers in a turn that passed an expectation whose result failed now."""
    key = _key(result)
    for run, passed, answers in earlier:
        answer = answers[turn - 1] if turn <= len(answers) else None
        if key in passed and answer is not None:
            return _beside(run, answer, result.actual)
    return None


def _key(result: TestResult) -> tuple[str, str, str | None, int]:
    return result.name, result.expected, result.label, result.turn


def _beside(run: ListedRun, passed: str, failed: str) -> PassedAnswer:
    pairs = enumerate(zip(passed, failed, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(passed), len(failed)))
    before = 0 if max(len(passed), len(failed)) <= SHOWN_CHARS else max(same - _BEFORE_CHARS, 0)
    return PassedAnswer(run, passed[before:], failed[before:], before)


def _spans(result: TestResult) -> Iterator[tuple[int, int] | None]:
    answer, expected = result.actual, result.expected
    if result.name == "matches":
        yield _pattern_span(answer, expected)
    elif result.name in {"contains_any", "not_contains"}:
        for text in _quoted_texts(expected):
            yield _text_span(answer, text)
    elif result.name == "contains":
        yield _text_span(answer, expected)
    elif result.name == "starts_with" and (span := _text_span(answer, expected)) and not answer[: span[0]].strip():
        yield span
    elif result.name == "ends_with" and expected:
        start = _folded(answer).rfind(_folded(expected))
        yield (start, start + len(expected)) if start >= 0 and not answer[start + len(expected) :].strip() else None


def _text_span(answer: str, text: str) -> tuple[int, int] | None:
    """Return where a text is, or else where it is with other quotes, dashes, blanks or case."""
    start = answer.find(text)
    if start < 0:
        start = _folded(answer).find(_folded(text))
    return (start, start + len(text)) if text and start >= 0 else None


def _folded(text: str) -> str:
    """Return a text in lower case and without typographic variants, unless this changes the places of characters."""
    folded = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    plain = plain_text(folded)
    return plain if len(plain) == len(text) else folded


def _quoted_texts(text: str) -> Iterator[str]:
    """Yield the JSON strings in a text such as `"Paris" or "Rome"`; those that were cut are not found in answers."""
    decoder, at = json.JSONDecoder(), text.find(_QUOTE)
    while at >= 0:
        try:
            quoted, end = decoder.raw_decode(text, at)
        except ValueError:
            return
        yield quoted
        at = text.find(_QUOTE, end)


def _pattern_span(answer: str, text: str) -> tuple[int, int] | None:
    """Return the part that a pattern matches. The engine only says whether it matches, so that parts are tried."""
    with suppress(PatternSyntax):
        pattern, whole = Pattern(text), Pattern(rf"\A(?:{text})\z")
        if len(answer) > _MAX_HALVED or not pattern.is_in(answer):
            return None
        end = _first(len(answer), lambda to: pattern.is_in(answer[:to]))
        start = end - _first(end, lambda length: pattern.is_in(answer[end - length : end]))
        # This is the shortest part. Matches begin as early and are as long as they can be.
        starts = range(max(start - _WIDENED, 0), start + 1)
        start = next((at for at in starts if whole.is_in(answer[at:end])), start)
        ends = range(min(end + _WIDENED, len(answer)), end - 1, -1)
        end = next((to for to in ends if whole.is_in(answer[start:to])), end)
        # Anchors and borders of words can match a part otherwise than the whole.
        if start < end and pattern.is_in(answer[start:end]):
            return start, end
    return None


def _first(most: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number up to `most`, for which it holds, from which on it holds."""
    least = 0
    while least < most:
        middle = (least + most) // 2
        if holds(middle):
            most = middle
        else:
            least = middle + 1
    return most


def _place(text: str, start: int, end: int) -> Place:
    """Return a text with a marked part, cut around it if the text is long."""
    first = 0 if len(text) <= SHOWN_CHARS else max(start - _BEFORE_CHARS, 0)
    last = min(len(text), first + SHOWN_CHARS)
    end = min(end, last)
    return Place(text[first:start], text[start:end], text[end:last], first, len(text) - last)
