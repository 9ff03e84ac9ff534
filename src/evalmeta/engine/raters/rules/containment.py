"""Whether an answer contains the expected words in order, and what could change their meaning."""

from __future__ import annotations

import re
from collections import Counter
from itertools import dropwhile, groupby, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.raters.rules.facts import find_facts, with_plain_numbers
from evalmeta.engine.raters.rules.names import HEADING_WORD, find_days, find_names
from evalmeta.engine.raters.rules.ratings import listed
from evalmeta.engine.raters.rules.vocabulary import CONTRASTS, DOUBTS, HARMLESS, NEUTRAL, SYMMETRIC, WEEKDAYS, word_list
from evalmeta.engine.raters.rules.words import (
    common_word,
    content_words,
    is_content,
    is_english,
    negations,
    raw_words,
    stem,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


MISSING: Final = "missing from the answer"
_TOKEN: Final = re.compile(r"\w+(?:['.,:@+-]\w+)*|[,.!?;:\N{EM DASH}\N{EN DASH}]| - ")
# Words that can follow in the same sentence and only add information; `for`, `if`, `on` and the like restrict it.
_ADDING: Final = frozenset(word_list(", to by at as from and which where who so . ! ? ; :"))
_NARROWING: Final = frozenset(
    word_list(
        "for if when with on in during until till while unless over above below under without after before once "
        "within per provided or than not every each since"
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
_MAX_TRIES: Final = 8  # bounds the search in long texts of one word
_STOPS: Final = frozenset(".!?;")
_PAUSES: Final = frozenset(",:;.!?\N{EM DASH}\N{EN DASH}-")
_PAST: Final = frozenset({"was", "were", "had"})
_BEING: Final = frozenset({"is", "are", "was", "were", "be", "been", "being"})
_PRESENT: Final = frozenset({"is", "are", "has", "am"})
_ME: Final = frozenset(word_list("i me my mine we us our ours"))
_YOU: Final = frozenset(word_list("you your yours"))
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|,\s+(?=(?:but|and|so|while|although)\b)")
_NEGATIONS: Final = {"can't": "can", "cannot": "can", "couldn't": "could", "won't": "will", "wouldn't": "would"}
_DROPPED: Final = frozenset(
    word_list("not no never any now currently already also yes longer there can could will would unfortunately")
)
_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non-", "non", "de", "mis")
_COPULA: Final = re.compile(r"^(?P<left>[^,.?!;]{1,200}?)\s(?P<verb>is|are)\s(?P<right>[^,?!;]{1,200}?)[.!]?$")
_DEFINITE: Final = re.compile(r"\b(?:the|your|our|my|his|her|its|their)\b|'s\b", re.IGNORECASE)
_MIN_PREFIXED: Final = 4
_MIN_PART: Final = 2
_SPACE_BEFORE: Final = re.compile(r" +(?=[,.;:!?])")
_MAX_REMARK: Final = 3
_GREETING: Final = frozenset(
    word_list(
        "hello hi hey dear thanks thank good great yes no sure sorry to according hallo guten hola buenos bonjour"
    )
)
# Words after a comma that add information.
_APPOSITION: Final = _ADDING | frozenset(
    word_list("the a an our your my his her its their right just near close also even including plus located with")
)
_IRONIC: Final = frozenset(
    word_list("yes yeah sure right oh well ha lol because actually this that these those but or then")
)
_AND: Final = re.compile(r"\b(?:and|as well as|plus|und|y|et)\b", re.IGNORECASE)


class _Span(NamedTuple):
    start: int
    end: int
    places: frozenset[int]


def doubts(expected: str, actual: str) -> tuple[str, ...]:
    """Return why an answer may not mean what was expected; nothing if it has all words and no others that matter."""
    expected, actual = _OPENING.sub("", expected), _OPENING.sub("", actual)
    expected, actual, verb = _without_agent(expected, actual)
    expected_words = content_words(_plain(expected))
    tokens = _TOKEN.findall(_plain(actual).lower())
    found = [content_words(token)[0] if token[0].isalnum() and is_content(token) else "" for token in tokens]
    span = (
        _find(expected_words, found)
        or _find_verb(expected_words, found, verb)
        or _find_rotated(expected_words, found, expected, tokens)
    )
    if not span:
        return (_missing(expected, frozenset(found)),)
    found_doubts = (
        *_around(span, tokens, expected),
        *_anywhere(expected, actual, tokens, span),
        *_later(tokens, span, expected),
    )
    return tuple(dict.fromkeys(found_doubts))


def _missing(expected: str, found: frozenset[str]) -> str:
    """Return the expected words that are not in the answer, as the expectation spells them."""
    facts = {fact.plain_text.lower(): fact.full_text for fact in find_facts(expected)}
    wanted = [word for word in raw_words(_plain(expected)) if is_content(word)]
    missing = list(dict.fromkeys(facts.get(word, word) for word in wanted if common_word(word) not in found))
    missing = [word for word in missing if word not in _LEADING] or missing
    return f"{MISSING}: {listed(missing)}" if missing else "the words are in a different order"


def changes(expected: str, actual: str) -> tuple[str, ...]:
    """Return what could change the meaning of an answer: a negation, a condition, an opposite, another tense."""
    tokens = _TOKEN.findall(_plain(actual).lower())
    return tuple(_anywhere(expected, actual, tokens, _Span(0, len(tokens), frozenset())))


def _without_agent(expected: str, actual: str) -> tuple[str, str, str]:
    """Remove `I have` if the other text has the same verb in the passive; return both texts and the verb."""
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


def _find(expected_words: list[str], found: list[str]) -> _Span | None:
    """Find the shortest span that has the expected words in order."""
    starts = [place for place, word in enumerate(found) if expected_words[:1] == [word]]
    spans = (_match(expected_words, found, start) for start in starts[:_MAX_TRIES])
    return min((span for span in spans if span), key=lambda span: span.end - span.start, default=None)


def _match(expected_words: list[str], found: list[str], start: int) -> _Span | None:
    places, place = [], start
    for word in expected_words:
        try:
            place = found.index(word, place)
        except ValueError:
            return None
        places.append(place)
        place += 1
    return _Span(start, places[-1], frozenset(places))


def _find_verb(expected_words: list[str], found: list[str], verb: str) -> _Span | None:
    """Find the words with the verb elsewhere, as in `cancelled your order` for `your order has been cancelled`."""
    if expected_words.count(verb) != 1:
        return None
    others = [word for word in expected_words if word != verb]
    moved = ([*others[:place], verb, *others[place:]] for place in range(min(len(others), _MAX_TRIES) + 1))
    return next((span for each in moved if (span := _find(each, found))), None)


def _find_rotated(expected_words: list[str], found: list[str], expected: str, tokens: list[str]) -> _Span | None:
    """Find the words if a phrase such as `In March` has moved between the start and the end."""
    fronts = {next(iter(raw_words(expected)), ""), tokens[0] if tokens else ""}
    if fronts.isdisjoint(_LEADING):
        return None
    places = (place for place in range(1, len(expected_words)) if min(place, len(expected_words) - place) <= _MAX_TRIES)
    rotated = (_find(expected_words[place:] + expected_words[:place], found) for place in places)
    return next((span for span in rotated if span), None)


def _around(span: _Span, tokens: list[str], expected: str) -> Iterator[str]:
    known = frozenset(raw_words(expected))
    inside = [token for place, token in enumerate(tokens) if span.start < place < span.end and place not in span.places]
    yield from _other_words("between them", inside, known)
    if not _STOPS.isdisjoint(inside):
        yield "the words are in several sentences"
    lead = takewhile(lambda token: token.strip() not in _PAUSES, reversed(tokens[: span.start]))
    yield from _other_words("before them", list(lead), known)
    yield from _introduction(tokens[: span.start], known)
    tail = takewhile(lambda token: token.strip() not in _STOPS, tokens[span.end + 1 :])
    yield from _after(list(tail), known, is_english=is_english(expected))


def _introduction(lead: list[str], known: frozenset[str]) -> Iterator[str]:
    """Yield a clause before the statement that may be a condition or a doubt, as in `Had you paid, it was sent`."""
    sentence = list(takewhile(lambda token: token not in _STOPS, reversed(lead)))[::-1]
    found = [token for token in sentence if token[0].isalnum()]
    is_clause = "," in sentence or (":" in sentence and not HEADING_WORD.search(" ".join(found)))
    if not found or found[0] in _GREETING or not is_clause:
        return
    yield from _other_words("in the introduction", found, known | NEUTRAL)


def _after(tail: list[str], known: frozenset[str], *, is_english: bool) -> Iterator[str]:
    plain = NEUTRAL | HARMLESS | known
    own = [token for token in tail if token[0].isalnum() and token not in plain and is_content(token)]
    if not own:
        return
    if "and" in tail[:2]:
        yield f"the answer adds a statement: {_phrase(tail)}"
    if tail[0] == "of":
        yield f"the answer may be about another one: {_phrase(tail)}"
    if not is_english or (tail[0] == "," and tail[1] not in _APPOSITION):
        yield f"the answer adds a remark: {_phrase(tail)}"
    has_digits = any(token[0].isdigit() for token in own)
    if has_digits or tail[0] not in _ADDING or not _NARROWING.isdisjoint(tail[:2]):
        yield f"the answer adds a restriction: {_phrase(tail)}"


def _later(tokens: list[str], span: _Span, expected: str) -> Iterator[str]:
    """Yield a remark after the statement that may be ironic: a short one, or any in a language without word lists."""
    known = HARMLESS | NEUTRAL | frozenset(raw_words(expected))
    tail = list(dropwhile(lambda token: token not in _STOPS, tokens[span.end + 1 :]))
    for is_stop, group in groupby(tail, _STOPS.__contains__):
        remark = [token for token in group if token[0].isalnum()]
        own = [token for token in remark if is_content(token) and token not in known]
        is_ironic = len(remark) <= _MAX_REMARK or remark[0] in _IRONIC or not is_english(expected)
        if not is_stop and own and is_ironic:
            yield f"the answer adds a remark: {_phrase(remark)}"


def _phrase(tokens: list[str]) -> str:
    return repr(_SPACE_BEFORE.sub("", " ".join(tokens[:5])).strip(" ,"))


def _other_words(where: str, tokens: list[str], known: frozenset[str]) -> Iterator[str]:
    others = [token for token in tokens if token[0].isalnum() and is_content(token) and token not in HARMLESS | known]
    if others:
        yield f"the answer has other words {where}: {', '.join(others[:5])}"


def _anywhere(expected: str, actual: str, tokens: list[str], span: _Span) -> Iterator[str]:
    known = raw_words(expected)
    if negations(expected) != negations(actual):
        yield "warning: the negations differ"
    common = frozenset(content_words(expected))
    doubtful = [token for token in tokens if token in DOUBTS and common.isdisjoint(content_words(token))]
    if doubtful:
        yield f"the answer adds an exception or a doubt: {', '.join(doubtful[:5])}"
    if contraries(known, frozenset(tokens).difference(known)):
        yield "the answer has a word of opposite meaning"
    if _is_passive(tokens[span.start : span.end + 1]) != _is_passive(known):
        yield "only one text is in the passive with `by`"
    has_present = not _PRESENT.isdisjoint(known) and "been" not in known
    if has_present and _PAST.isdisjoint(known) and not _PAST.isdisjoint(tokens[span.start : span.end]):
        yield "the answer is in the past tense"
    if next((token for token in tokens[span.end :] if token in _STOPS), "") == "?" and "?" not in expected:
        yield "the answer is a question"
    persons = set(_persons(tokens[max(0, span.start - 2) : span.end + 1]))
    if persons and set(_persons(known)).isdisjoint(persons) and _persons(known):
        yield "the persons differ (I, you)"
    if _persons(known) != _persons(raw_words(actual))[: len(_persons(known))] and len(set(_persons(known))) > 1:
        yield "the order of the persons differs (I, you)"


def _is_passive(actual_words: Sequence[str]) -> bool:
    """Say whether the text has a passive with an agent, as in `was bought by`."""
    agents = [place for place, word in enumerate(actual_words) if word == "by"]
    return any(_BEING.intersection(actual_words[max(0, place - 3) : place]) for place in agents)


def _persons(words: Sequence[str]) -> list[str]:
    return ["me" if word in _ME else "you" for word in words if word in _ME or word in _YOU]


def contraries(some: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the words of `others` that exclude one of `some`: listed pairs, and words with un-, in-, dis-."""
    own = frozenset(some)
    opposed = {contrary for word in own for each in (word, stem(word)) for contrary in CONTRASTS.get(each, ())}
    opposed.update(prefix + word for word in own if len(word) >= _MIN_PREFIXED for prefix in _PREFIXES)
    opposed.update(bare for word in own for bare in _bare(word))
    return [word for word in others if word in opposed or stem(word) in opposed or _bare(word) & own]


def _bare(word: str) -> set[str]:
    bare = {word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix)}
    return {each for each in bare if len(each) >= _MIN_PREFIXED}


def contrary_words(expected: str, actual: str) -> str:
    """Return the word with which an otherwise equal sentence reverses the expected meaning; else an empty text.

    A double negation, as in `not unavailable`, reverses nothing; a negation alone never decides.
    """
    expected_words = _content_words(expected)
    for sentence in _SENTENCE.split(actual):
        actual_words = _content_words(sentence)
        if len(actual_words) > len(expected_words):
            actual_words = [word for word in actual_words if word in expected_words or word not in HARMLESS | NEUTRAL]
        if len(actual_words) != len(expected_words):
            continue
        apart = [pair for pair in zip(expected_words, actual_words, strict=True) if stem(pair[0]) != stem(pair[1])]
        if len(apart) != 1 or not contraries(apart[0][:1], apart[0][1:]):
            continue
        if (1 + negations(expected) + negations(sentence)) % 2:
            return "expected {}, got {}".format(*apart[0])
    return ""


def _content_words(text: str) -> list[str]:
    plain = (_NEGATIONS.get(word, word) for word in raw_words(with_plain_numbers(text)))
    return [word for word in plain if is_content(word) and word not in _DROPPED and not word.endswith("n't")]


def swapped_roles(expected: str, actual: str) -> str:
    """Return two words that changed places in an otherwise equal text; empty if adjacent, or the relation symmetric."""
    expected_words, actual_words = _roles(expected), _roles(actual)
    if len(expected_words) != len(actual_words) or Counter(expected_words) != Counter(actual_words):
        return ""
    apart = [place for place, word in enumerate(expected_words) if actual_words[place] != word]
    match apart:
        case [first, second]:
            between = expected_words[first + 1 : second]
            is_swap = any(is_content(word) or word == "to" for word in between) and SYMMETRIC.isdisjoint(expected_words)
            return f"{expected_words[first]} and {expected_words[second]}" if is_swap else ""
        case _:
            return ""


def _roles(text: str) -> list[str]:
    return [stem(word) for word in raw_words(with_plain_numbers(text)) if word not in {"the", "an"}]


def reversed_statement(expected: str, actual: str) -> bool:
    """Say whether an answer is the same definition in reverse: `Paris is the capital` for `The capital is Paris`."""
    one, other = _COPULA.match(expected), _COPULA.match(actual)
    if not one or not other or not _DEFINITE.search(expected) or one["verb"] != other["verb"]:
        return False
    left, right = ([_words(found[side]) for side in ("left", "right")] for found in (one, other))
    return left == right[::-1]


def left_out(expected: str, actual: str) -> str:
    """Return the end that an answer leaves out, if it has a fact, a name, a day or an `and`; else an empty text."""
    expected_words, actual_words = _words(expected), _words(actual)
    length = len(actual_words)
    if not _MIN_PART <= length < len(expected_words) or expected_words[:length] != actual_words:
        return ""
    last = max((expected.lower().rfind(word) + len(word) for word in raw_words(actual)[-1:]), default=0)
    tail = expected[last:]
    has_facts = find_facts(tail) or find_days(tail) or find_names(f"x {tail}")
    return ", ".join(expected_words[length:]) if has_facts or _AND.search(tail) else ""


def _words(text: str) -> list[str]:
    return content_words(with_plain_numbers(text))
