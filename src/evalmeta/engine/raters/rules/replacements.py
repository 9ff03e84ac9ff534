"""Numbers, days and names of the expectation for which the answer has others of their kind.

What the question already says may be left out, but never replaced. So a fact of the question counts only if the
other fact stands in its place: next to the same word, as in `order 10046` for `order 10045`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.raters.rules.facts import (
    are_alike,
    are_comparable,
    find_facts,
    is_met,
    locate_facts,
    without_bounds,
)
from evalmeta.engine.raters.rules.names import contradicting_days, contradicting_names, find_days
from evalmeta.engine.raters.rules.vocabulary import HARMLESS, MONTHS, WEEKDAYS, word_list
from evalmeta.engine.raters.rules.words import common_word, find_words, is_content, negations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from evalmeta.engine.raters.rules.facts import Fact
    from evalmeta.engine.raters.rules.ratings import Texts


_REACH: Final = 80
_NEARLY: Final = 0.8
# Bounds of the search in long texts.
_MAX_WORDS: Final = 20
_MAX_PLACES: Final = 8
_MAX_LIST_LENGTH: Final = 12
_CLAUSE: Final = re.compile(r"[.,!?;:](?=\s)|\n|[()]")
_SINCE: Final = frozenset(word_list("from since after"))
_UNTIL: Final = frozenset(word_list("to until till by before through"))
_NO_PLACE: Final = frozenset(word_list("on in at of about around yes no")) | _SINCE | _UNTIL | frozenset(MONTHS)
_COMPARING: Final = frozenset(
    word_list("than after before unlike versus vs previous previously former formerly instead")
)
_BEFORE: Final = r"(?:\s(?:by|in|at|on|to|from|for|until|the|an?))*\s"
_DENIED_FACT: Final = re.compile(rf"\b(?:not|nor|unlike|instead of){_BEFORE}\W?$", re.IGNORECASE)
_DENIED_NAME: Final = re.compile(
    rf"\b(?:not|nor|unlike|instead of|than){_BEFORE}(?-i:[A-Z])\w*(?: (?-i:[A-Z])\w*){{0,3}}", re.IGNORECASE
)
_TEMPORAL: Final = frozenset({"time", "date"})


class Place(NamedTuple):
    """Where a fact stands in a text.

    Attributes:
        before: The nearest important word before it in its clause; empty if there is none.
        after: The nearest important word after it.
        direction: `from` or `to` if such a preposition stands before it.
        is_denied: Whether the clause denies something or compares it with something else, as in `not at 3 pm`.
        is_alone: Whether there are no important words around it, as in `It is at 3 pm.`
    """

    before: str
    after: str
    direction: str
    is_denied: bool
    is_alone: bool


def compare_facts(texts: Texts) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that the answer does not have, and those that only the answer has."""
    actual, expected = find_facts(texts.actual), find_facts(texts.expected)
    required = find_facts(without_bounds(texts.expected, texts.actual))
    if texts.described:
        # A small number in a description can be the length of a list, which the answer need not mention.
        required = tuple(fact for fact in required if not _may_count(fact))
    missing = [fact for fact in required if not is_met(fact, actual)]
    return missing, [fact for fact in actual if not is_met(fact, expected)]


def _may_count(fact: Fact) -> bool:
    return not fact.unit and fact.kind == "number" and fact.text.isdigit() and int(fact.text) <= _MAX_LIST_LENGTH


def missing_facts(texts: Texts) -> list[Fact]:
    """Return the facts that neither the answer nor the question has."""
    asked = find_facts(texts.utterance)
    return [fact for fact in compare_facts(texts)[0] if not is_met(fact, asked)]


def replaced_facts(texts: Texts) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that the answer replaces, and those that it has instead."""
    missing, extra = compare_facts(texts)
    denied = _denied_facts(texts.actual) if missing and extra else frozenset()
    extra = [fact for fact in extra if fact not in denied]
    if not missing or not extra:
        return [], []
    asked = find_facts(texts.utterance)
    own, others = _fact_places(texts.expected, missing), _fact_places(texts.actual, extra)
    new = frozenset(fact for fact in (*missing, *extra) if not is_met(fact, asked))

    is_same_sentence = _are_alike_but_facts(texts.expected, texts.actual)

    def is_replaced(fact: Fact, other: Fact) -> bool:
        if not are_comparable(fact, other):
            return False
        if other in new and (fact in new or is_same_sentence or are_alike(fact, other)):
            return True
        crosses = fact.kind not in _TEMPORAL and not (fact.unit and fact.unit.base)
        return _in_same_place(own[fact], others[other], crosses=crosses)

    pairs = [(fact, other) for fact in missing for other in extra if is_replaced(fact, other)]
    replaced = {fact for fact, _ in pairs}
    replacing = {other for _, other in pairs}
    return [fact for fact in missing if fact in replaced], [other for other in extra if other in replacing]


def _are_alike_but_facts(expected: str, actual: str) -> bool:
    """Say whether two texts have nearly the same important words, in any order, and no negation."""
    if negations(actual):
        return False
    own, others = (
        frozenset(common_word(word) for word in find_words(text) if is_content(word) and word.isalpha()) - _NO_PLACE
        for text in (expected, actual)
    )
    return bool(own) and len(own & others) >= _NEARLY * max(len(own), len(others))


def _denied_facts(text: str) -> frozenset[Fact]:
    return frozenset(fact for fact, before, _ in locate_facts(text) if _DENIED_FACT.search(before))


def _fact_places(text: str, facts: Collection[Fact]) -> dict[Fact, list[Place]]:
    """Return the first places of each fact."""
    places: dict[Fact, list[Place]] = {fact: [] for fact in facts}
    for fact, before, after in locate_facts(text):
        if fact in places and len(places[fact]) < _MAX_PLACES:
            places[fact].append(_place(before, after))
    return places


def _place(before: str, after: str) -> Place:
    left, right = _CLAUSE.split(before)[-1], _CLAUSE.split(after, maxsplit=1)[0]
    left_words = find_words(left)
    last = left_words[-1] if left_words else ""
    direction = "from" if last in _SINCE else "to" if last in _UNTIL else ""
    near = _nearest(reversed(left_words)), _nearest(find_words(right))
    is_alone = not any(near) and not _nearest(word for word in find_words(before + after) if word not in HARMLESS)
    is_denied = negations(left + right) > 0 or not _COMPARING.isdisjoint(left_words)
    return Place(*near, direction, is_denied, is_alone)


def _nearest(found: Iterable[str]) -> str:
    plain = (word for word in found if is_content(word) and not word[0].isdigit())
    return next((common_word(word) for word in plain if word not in _NO_PLACE and word not in WEEKDAYS), "")


def _in_same_place(own: Sequence[Place], others: Sequence[Place], *, crosses: bool) -> bool:
    """Say whether a fact of the answer stands where the expectation has its own.

    Args:
        own: The places of the expected fact.
        others: The places of the fact of the answer.
        crosses: Whether the same word may stand on the other side, as in `paid $5` and `$5 was paid`.
    """
    pairs = ((place, other) for place in own for other in others if place.is_denied or not other.is_denied)
    return any(_are_same(place, other, crosses=crosses) for place, other in pairs)


def _are_same(place: Place, other: Place, *, crosses: bool) -> bool:
    if place.direction and other.direction and place.direction != other.direction:
        return False
    sides = [(place.before, other.before), (place.after, other.after)]
    if crosses:
        sides += [(place.before, other.after), (place.after, other.before)]
    return any(one and one == two for one, two in sides) or other.is_alone


def replaced_days(texts: Texts) -> tuple[list[str], list[str]]:
    """Return the weekdays and months that the answer replaces, and those that it has instead."""
    found = contradicting_days(texts.expected, texts.actual, texts.utterance)
    if all(found):
        return found
    found = _in_place(*contradicting_days(texts.expected, texts.actual, ""), texts)
    return found if all(found) else _other_months(texts)


def _other_months(texts: Texts) -> tuple[list[str], list[str]]:
    """Return a month and a day of another month in its place, or the other way round."""
    for is_reversed, (one, other) in enumerate(((texts.expected, texts.actual), (texts.actual, texts.expected))):
        months = {int(key.split()[1]): word for key, word in find_days(one).items() if key.startswith("month")}
        if not months:
            continue
        dates = [fact for fact in find_facts(other) if fact.days]
        if any(months.keys() & {day[1] for day in fact.days} for fact in dates):
            continue
        word = next(iter(months.values()))
        for fact, places in _fact_places(other, dates).items():
            if _in_same_place(_places(word, one), places, crosses=False):
                return ([fact.text], [word]) if is_reversed else ([word], [fact.text])
    return [], []


def replaced_names(texts: Texts) -> tuple[list[str], list[str]]:
    """Return the names that the answer replaces, and those that it has instead; English texts only."""
    actual = _DENIED_NAME.sub(" ", texts.actual)
    found = contradicting_names(texts.expected, actual, texts.utterance, described=texts.described)
    if all(found) or texts.described:
        return found
    return _in_place(*contradicting_names(texts.expected, actual, "", described=False), texts)


def _in_place(missing: list[str], extra: list[str], texts: Texts) -> tuple[list[str], list[str]]:
    """Return the first pair of words of which the answer has one in the place of the other."""
    for one in missing[:_MAX_WORDS]:
        own = _places(one, texts.expected)
        for other in extra[:_MAX_WORDS]:
            shared = frozenset(find_words(one)).intersection(find_words(other))
            if shared or _in_same_place(own, _places(other, texts.actual), crosses=True):
                return [one], [other]
    return [], []


def _places(phrase: str, text: str) -> list[Place]:
    pattern = r"\W{1,3}".join(map(re.escape, phrase.split()))
    found = re.finditer(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE)
    return [
        _place(text[max(0, each.start() - _REACH) : each.start()], text[each.end() : each.end() + _REACH])
        for each in found
    ]
