"""Whether an answer says all that was expected, in order, with nothing beside it that could change it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.raters.offline.contrasts import contraries
from evalmeta.engine.raters.offline.facts import with_plain_numbers
from evalmeta.engine.raters.offline.vocabulary import DOUBTS, HARMLESS, NEUTRAL, WEEKDAYS, word_list
from evalmeta.engine.raters.offline.words import content_words, is_content, missing_words, negations, raw_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["changes", "doubts"]

_TOKEN: Final = re.compile(r"\w+(?:['.,:@+-]\w+)*|[,.!?;:\N{EM DASH}\N{EN DASH}]| - ")
# What may follow in the same sentence and only adds to it; `for`, `if`, `on` and the like narrow it down.
_ADDING: Final = frozenset(word_list(", to by at of as from and which where who so . ! ? ; :"))
_NARROWING: Final = frozenset(
    word_list(
        "for if when with on in during until till while unless over above below under without after before once within "
        "per provided or than not every each since"
    )
)
_LEADING: Final = frozenset(word_list("for in on at by from within until after before every during with to since per"))
_OPENING: Final = re.compile(r"^\W*(?:yes|no|sorry|unfortunately|sure|of course)\s*[,.!]\s+", re.IGNORECASE)
_BEFORE_DAY: Final = re.compile(rf"\b(?:on|this|at)\s+(?=\d|(?:{'|'.join(WEEKDAYS)})\b)", re.IGNORECASE)
_ADVERBS: Final = r"(?:(?:just|now|already|successfully|also) )*"
_MINE: Final = re.compile(rf"\b(?:i|we)(?:'ve| have)? {_ADVERBS}(?P<verb>\w+)", re.IGNORECASE)
_PASSIVE: Final = re.compile(
    rf"\b(?:(?:has|have) {_ADVERBS}been|is|are|was|were) {_ADVERBS}(?P<verb>\w+)", re.IGNORECASE
)
_TRIES: Final = 8  # places to look at, so that long texts of one word cost no more
_STOPS: Final = frozenset(".!?;")
_PAUSES: Final = frozenset(",:;.!?\N{EM DASH}\N{EN DASH}-")
_PAST: Final = frozenset({"was", "were", "had"})
_BEING: Final = frozenset({"is", "are", "was", "were", "be", "been", "being"})
_PRESENT: Final = frozenset({"is", "are", "has", "am"})
_ME: Final = frozenset(word_list("i me my mine we us our ours"))
_YOU: Final = frozenset(word_list("you your yours"))


class _Span(NamedTuple):
    start: int
    end: int
    places: frozenset[int]


def doubts(expected: str, actual: str) -> tuple[str, ...]:
    """Lists why an answer may not say what was expected; nothing when all its words are there and nothing else matters.

    Numbers and synonyms count as one word. Words between and before those that were
    expected, negations, conditions, opposites, another tense and a question are doubts.
    """
    expected, actual = _OPENING.sub("", expected), _OPENING.sub("", actual)
    expected, actual, verb = _without_doer(expected, actual)
    wanted = content_words(_plain(expected))
    tokens = _TOKEN.findall(_plain(actual).lower())
    said = [content_words(token)[0] if token[0].isalnum() and is_content(token) else "" for token in tokens]
    span = _find(wanted, said) or _find_verb(wanted, said, verb) or _find_turned(wanted, said, expected, tokens)
    if not span:
        missing = missing_words(wanted, [word for word in said if word])
        return (f"not found in this order: {', '.join(missing[:5])}",)
    return tuple(dict.fromkeys((*_around(span, tokens, expected), *_all_over(expected, actual, tokens, span))))


def changes(expected: str, actual: str) -> tuple[str, ...]:
    """Lists what in an answer could change what its words say: a negation, a condition, an opposite, another tense."""
    tokens = _TOKEN.findall(_plain(actual).lower())
    return tuple(_all_over(expected, actual, tokens, _Span(0, len(tokens), frozenset())))


def _without_doer(expected: str, actual: str) -> tuple[str, str, str]:
    """Takes `I have` off where the other side has the same verb in the passive; gives the verb, else all as it was."""
    if verb := _shared_verb(actual, expected):
        return expected, _MINE.sub(r" \g<verb>", actual, count=1), verb
    if verb := _shared_verb(expected, actual):
        return _MINE.sub(r" \g<verb>", expected, count=1), actual, verb
    return expected, actual, ""


def _shared_verb(mine: str, passive: str) -> str:
    done = _MINE.search(mine)
    verb = content_words(done["verb"])[0] if done else ""
    return verb if verb in {content_words(found["verb"])[0] for found in _PASSIVE.finditer(passive)} else ""


def _plain(text: str) -> str:
    return _BEFORE_DAY.sub("", with_plain_numbers(text))


def _find(wanted: list[str], said: list[str]) -> _Span | None:
    """Finds the expected words in order, in the narrowest place."""
    best: _Span | None = None
    starts = [place for place, word in enumerate(said) if wanted[:1] == [word]]
    for start in starts[:_TRIES]:
        span = _match(wanted, said, start)
        if span and (best is None or span.end - span.start < best.end - best.start):
            best = span
    return best


def _match(wanted: list[str], said: list[str], start: int) -> _Span | None:
    places, place = [], start
    for word in wanted:
        try:
            place = said.index(word, place)
        except ValueError:
            return None
        places.append(place)
        place += 1
    return _Span(start, places[-1], frozenset(places))


def _find_verb(wanted: list[str], said: list[str], verb: str) -> _Span | None:
    """Finds them with the verb elsewhere, as `cancelled your order` for `your order has been cancelled`."""
    if wanted.count(verb) != 1:
        return None
    others = [word for word in wanted if word != verb]
    moved = ([*others[:place], verb, *others[place:]] for place in range(min(len(others), _TRIES) + 1))
    return next((span for each in moved if (span := _find(each, said))), None)


def _find_turned(wanted: list[str], said: list[str], expected: str, tokens: list[str]) -> _Span | None:
    """Finds them when a phrase such as `In March` has moved between the front and the end."""
    fronts = {next(iter(raw_words(expected)), ""), tokens[0] if tokens else ""}
    if fronts.isdisjoint(_LEADING):
        return None
    turned = (_find(wanted[place:] + wanted[:place], said) for place in _turns(len(wanted)))
    return next((span for span in turned if span), None)


def _turns(length: int) -> list[int]:
    return [place for place in range(1, length) if place <= _TRIES or length - place <= _TRIES]


def _around(span: _Span, tokens: list[str], expected: str) -> Iterator[str]:
    known = frozenset(raw_words(expected))
    inside = [token for place, token in enumerate(tokens) if span.start < place < span.end and place not in span.places]
    yield from _strange("between", inside, known)
    if not _STOPS.isdisjoint(inside):
        yield "the words stand in several sentences"
    before, after = tokens[: span.start], tokens[span.end + 1 :]
    yield from _before(before, known)
    yield from _after(after, known)


def _before(tokens: list[str], known: frozenset[str]) -> Iterator[str]:
    lead: list[str] = []
    for token in reversed(tokens):
        if token.strip() in _PAUSES:
            break
        lead.append(token)
    yield from _strange("before it", lead, known)


def _after(tokens: list[str], known: frozenset[str]) -> Iterator[str]:
    tail: list[str] = []
    for token in tokens:
        if token.strip() in _STOPS:
            break
        tail.append(token)
    own = [
        token for token in tail if token[0].isalnum() and token not in NEUTRAL | HARMLESS | known and is_content(token)
    ]
    if not own:
        return
    if "and" in tail[:2]:
        yield f"a statement is added: {' '.join(tail[:5])}"
    has_digits = any(token[0].isdigit() for token in own)
    if has_digits or tail[0] not in _ADDING or not _NARROWING.isdisjoint(tail[:2]):
        yield f"it is narrowed down: {' '.join(tail[:5])}"


def _strange(where: str, tokens: list[str], known: frozenset[str]) -> Iterator[str]:
    strange = [token for token in tokens if token[0].isalnum() and is_content(token) and token not in HARMLESS | known]
    if strange:
        yield f"other words {where}: {', '.join(strange[:5])}"


def _all_over(expected: str, actual: str, tokens: list[str], span: _Span) -> Iterator[str]:
    known = raw_words(expected)
    if negations(expected) != negations(actual):
        yield "warning: one side has a negation that the other has not"
    common = frozenset(content_words(expected))
    doubtful = [token for token in tokens if token in DOUBTS and common.isdisjoint(content_words(token))]
    if doubtful:
        yield f"the answer makes an exception or leaves it open: {', '.join(doubtful[:5])}"
    if contraries(known, frozenset(tokens).difference(known)):
        yield "the answer also has an opposite"
    if _is_passive(tokens[span.start : span.end + 1]) != _is_passive(known):
        yield "one side says who did it to whom the other way round"
    if _is_past(known, tokens[span.start : span.end]):
        yield "the answer speaks of the past"
    if next((token for token in tokens[span.end :] if token in _STOPS), "") == "?" and "?" not in expected:
        yield "the answer asks"
    persons = set(_persons(tokens[max(0, span.start - 2) : span.end + 1]))
    if persons and set(_persons(known)).isdisjoint(persons) and _persons(known):
        yield "whose it is differs"
    if _persons(known) != _persons(raw_words(actual))[: len(_persons(known))] and len(set(_persons(known))) > 1:
        yield "who does it to whom differs"


def _is_passive(said: Sequence[str]) -> bool:
    """Says whether something is done by somebody, as in `was bought by`."""
    agents = [place for place, word in enumerate(said) if word == "by"]
    return any(_BEING.intersection(said[max(0, place - 3) : place]) for place in agents)


def _is_past(known: Sequence[str], said: Sequence[str]) -> bool:
    has_present = not _PRESENT.isdisjoint(known) and "been" not in known
    return has_present and _PAST.isdisjoint(known) and not _PAST.isdisjoint(said)


def _persons(words: Sequence[str]) -> list[str]:
    return ["me" if word in _ME else "you" for word in words if word in _ME or word in _YOU]
