"""The texts of a case result that the search over all runs finds, their words, and where words are in a text."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.evaluation import all_tags
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evalmeta.model.run import CaseResult

# Thai, Japanese and Chinese are written without spaces: each character is a word.
_APART: Final = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(f"(?![\\W_])[{_APART}]|[^\\W_{_APART}]+")
# Longer words, such as encoded files, are cut.
_WORD_CHARS: Final = 64
_BEFORE_CHARS: Final = 60


class SearchedText(NamedTuple):
    """A text of a case result, and what it is, in a word for people."""

    what: str
    text: str


class Piece(NamedTuple):
    """A part of a text that is shown; `is_match` says whether it is a word of the search."""

    text: str
    is_match: bool


def searched_texts(case: CaseResult) -> Iterator[SearchedText]:
    """Yield what the search finds of a case result: what was said, its tags, and why it did not pass."""
    turns = [(turn.utterance, turn.generated.outcome) for turn in case.earlier]
    for utterance, answer in (*turns, (case.utterance, case.generated.outcome if case.generated else "")):
        yield SearchedText("asked", utterance)
        yield SearchedText("answer", answer)
    yield SearchedText("name", case.label)
    yield SearchedText("error", case.error or "")
    for tag in all_tags(case.tags, case.metadata):
        yield SearchedText("tag", tag)
    for result in case.results:
        if result.verdict is not Verdict.PASS:
            yield SearchedText("reason", result.explanation)
            yield SearchedText("error", result.error or "")
            yield SearchedText("expected", result.expected)
            yield SearchedText("actual", result.actual)


def words_of_case(case: CaseResult) -> list[str]:
    """Return the words of a case result, each once, in order; at most `limits.MAX_SEARCHED_WORDS`."""
    words: dict[str, None] = {}
    for _, text in searched_texts(case):
        words |= dict.fromkeys(words_of(text))
        if len(words) > limits.MAX_SEARCHED_WORDS:
            break
    return [*words][: limits.MAX_SEARCHED_WORDS]


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are compared: without case and accents."""
    return [word[:_WORD_CHARS] for word in _WORD.findall(folded(text[: limits.MAX_SEARCHED_CHARS]))]


def excerpt(text: str, words: Collection[str], *, is_prefix: bool, chars: int) -> list[Piece]:
    """Return the part of a text around the first of these words, with all of them marked; empty if it has none."""
    every = _WORD.finditer(text[: limits.MAX_SEARCHED_CHARS])
    matches = [match for match in every if _is_one(match[0], words, is_prefix=is_prefix)]
    if not matches:
        return []
    start = max(0, matches[0].start() - _BEFORE_CHARS)
    end = start + chars
    pieces, at = [Piece("…", False)] if start else [], start
    for match in matches:
        if match.start() >= end:
            break
        pieces += [Piece(text[at : match.start()], False), Piece(match[0], True)]
        at = match.end()
    pieces.append(Piece(text[at : max(at, end)], False))
    return [piece for piece in (*pieces, Piece("…" * (len(text) > max(at, end)), False)) if piece.text]


def _is_one(found: str, words: Collection[str], *, is_prefix: bool) -> bool:
    parts = words_of(found)
    if is_prefix:
        return any(part.startswith(word) for part in parts for word in words)
    return any(part in words for part in parts)


def folded(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
