"""The offline rater: rules that decide what is plain, and `undecided` for all the rest.

No similarity of texts tells a right answer from a wrong one that differs in one
digit. So refusals, numbers, days, names and opposites decide first; words alone pass
an answer only when every one that matters is there, in order, and nothing beside them
could change what they say.

What one text has and the other has not: names, days, and things of which there are none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.raters.rules import phrases, refusals
from evalmeta.engine.raters.rules.containment import (
    contraries,
    contrary_words,
    doubts,
    left_out,
    swapped_roles,
    turned_round,
)
from evalmeta.engine.raters.rules.facts import are_comparable, find_facts, is_met, with_plain_numbers, without_bounds
from evalmeta.engine.raters.rules.numerals import with_digits
from evalmeta.engine.raters.rules.phrases import differing_names, find_days, find_names, has_range_of_days
from evalmeta.engine.raters.rules.ratings import BEST, NAME, Texts, difference, failed, listed, passed, rated, undecided
from evalmeta.engine.raters.rules.replies import (
    fills_in,
    is_terse,
    is_yes_or_no,
    judge_breakdown,
    judge_courtesy,
    judge_question,
    judge_refusal,
    left_uncounted,
)
from evalmeta.engine.raters.rules.vocabulary import word_list
from evalmeta.engine.raters.rules.words import (
    content_words,
    cosine,
    is_english,
    negations,
    raw_words,
    recall,
    share_roots,
    stem,
    words,
)
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalmeta.engine.raters.judge import Rater, Rating, Rubric
    from evalmeta.engine.raters.rules.facts import Fact
    from evalmeta.engine.raters.rules.phrases import Cosine
    from evalmeta.model.settings import RulesRater


__all__ = ["NAME", "Rules", "bind_rules", "counted_nothing", "day_gap", "name_gap", "rate"]


_PASS_FROM: Final = 3.0 / BEST
_FAIL_BELOW: Final = 0.1
_FEW: Final = 3
_MANY: Final = 300
_RATED: Final = frozenset(
    {"bot_response_rating", "response_match", "final_response_match_v2", "response/llm_judged/correctness/rating"}
)
_POINTING: Final = frozenset(word_list("it its it's that that's this they them one here there yes no sure done"))
_NAMING: Final = re.compile(
    r"\b(?:lists?|listing|contacts?|who|names?|owners?|members?|people|persons?)\b", re.IGNORECASE
)


class Rules:
    """The offline rater: it rates responses against expected ones, and no other quality of theirs.

    Attributes:
        cosine: how alike two texts are, -1 to 1; of the letters, or of the project's own embeddings.
    """

    def __init__(self, cosine: Cosine = cosine) -> None:
        self.cosine = cosine

    def __call__(self, rubric: Rubric) -> Rating | None:
        """Gives what `rate` says; None for a metric that no rule can judge."""
        if rubric.metric not in _RATED or rubric.facts:
            return None
        rating = rate(rubric.expected, rubric.actual, utterance=rubric.utterance, cosine=self.cosine)
        if rating.verdict is Verdict.PASS and (rating.score or 0) < rubric.threshold:
            return undecided(f"below the threshold of {rubric.threshold:g}; {rating.explanation}")
        return rating

    async def close(self) -> None:
        """Has nothing to let go of."""


def bind_rules(settings: RulesRater, *, root: Path) -> Rater:
    """Makes the offline rater, with the embeddings that the settings name.

    Raises:
        SettingsError: the function for embeddings is not there.
    """
    if not settings.embed:
        return Rules()
    from evalmeta.engine.raters.rules.phrases import bind_embed  # noqa: PLC0415 - few projects have one

    return Rules(bind_embed(settings.embed, root=root))


def rate(expected: str, actual: str, *, utterance: str, cosine: Cosine = cosine) -> Rating:
    """Rates an answer without a model: 5 and 0 for what a rule decides, the likeness x 5 for what words decide.

    The expectation may be a model answer or describe one; of a description that something
    is said, what is to be said is the model answer. The first rule that fires decides. The
    explanation names the rule and its evidence. Likeness is the mean of the cosine and the
    recall of the expected words.

    Raises:
        RaterError: the cosine cannot be had.
    """
    if max(len(expected), len(actual)) > limits.MAX_RATED_CHARS:
        return undecided(f"texts of more than {limits.MAX_RATED_CHARS} characters are not rated without an LLM rater")
    texts = _texts(_plain(expected), _plain(actual), _plain(utterance))
    if max(len(find_facts(text)) for text in texts[:3]) > _MANY:
        return undecided(f"texts with more than {_MANY} numbers are not rated without an LLM rater")
    for rule in _RULES:
        rating = rule(texts)
        if rating:
            return rating
    return _by_words(texts, cosine)


def _plain(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("\N{NO-BREAK SPACE}", " ")


def _texts(expected: str, actual: str, utterance: str) -> Texts:
    described = phrases.is_described(expected)
    stated = phrases.stated_part(expected) if described else ""
    if stated and not refusals.is_expected_refusal(expected):
        return Texts(stated, actual, utterance, described=False, stated=True)
    return Texts(phrases.without_examples(expected) if described else expected, actual, utterance, described)


def _same_text(texts: Texts) -> Rating | None:
    if not texts.actual.strip():
        return failed("empty", "the answer is empty")
    wanted = words(texts.expected)
    if not wanted or wanted != words(texts.actual) or texts.expected.count("?") != texts.actual.count("?"):
        return None
    facts = [[fact.full_text for fact in find_facts(text)] for text in texts[:2]]
    return passed("same", "the answer is the expected text") if facts[0] == facts[1] else None


def _numbers(texts: Texts) -> Rating | None:
    none = counted_nothing(texts.expected, texts.actual) or counted_nothing(texts.actual, texts.expected)
    if none:
        return failed("numbers", f"numbers differ: one side has no {none}, the other has some")
    uncounted = left_uncounted(texts)
    if uncounted:
        return failed("numbers", f"numbers differ: expected {uncounted}, got none")
    missing, extra = _number_gap(texts)
    wrong = [fact for fact in missing if any(are_comparable(fact, other) for other in extra)]
    if not wrong:
        return None
    found = [other for other in extra if any(are_comparable(fact, other) for fact in wrong)]
    return failed("numbers", difference("numbers", *_spelled(wrong, found)))


def _number_gap(texts: Texts) -> tuple[list[Fact], list[Fact]]:
    asked, found = find_facts(texts.utterance), find_facts(texts.actual)
    wanted = find_facts(without_bounds(texts.expected, texts.actual))
    if texts.described:
        wanted = tuple(fact for fact in wanted if fact.unit or fact.kind != "number" or not _is_count(fact))
    missing = [fact for fact in wanted if not is_met(fact, found) and not is_met(fact, asked)]
    expected = find_facts(texts.expected)
    return missing, [fact for fact in found if not is_met(fact, expected) and not is_met(fact, asked)]


def _is_count(fact: Fact) -> bool:
    return fact.text.isdigit() and int(fact.text) <= 12  # noqa: PLR2004 - lists are rarely longer


def _spelled(missing: Sequence[Fact], extra: Sequence[Fact]) -> tuple[list[str], list[str]]:
    short = [fact.text for fact in missing], [fact.text for fact in extra]
    if frozenset(short[0]).isdisjoint(short[1]) and not any(fact.unit and fact.unit.factor for fact in missing):
        return short
    return [fact.full_text for fact in missing], [fact.full_text for fact in extra]


def _days(texts: Texts) -> Rating | None:
    missing, extra = day_gap(texts.expected, texts.actual, texts.utterance)
    if texts.described or not missing or not extra:
        return None
    return failed("days", difference("days", missing, extra))


def _names(texts: Texts) -> Rating | None:
    if texts.described and _NAMING.search(texts.expected):
        return None
    missing, extra = name_gap(texts.expected, texts.actual, texts.utterance, described=texts.described)
    return failed("names", difference("names", missing, extra)) if missing and extra else None


def _opposites(texts: Texts) -> Rating | None:
    openings = {phrases.opening(texts.expected), phrases.opening(texts.actual)}
    if openings == {"yes", "no"}:
        return failed("opposite", "one side opens with yes, the other with no")
    if is_yes_or_no(texts.expected, texts.actual):
        return passed("same", f"the answer opens with {texts.expected.strip()!r}, which was expected")
    if texts.described:
        return None
    wrong = contrary_words(texts.expected, texts.actual)
    return failed("opposite", f"the opposite: {wrong}") if wrong else None


def _roles(texts: Texts) -> Rating | None:
    swapped = "" if texts.described else swapped_roles(texts.expected, texts.actual)
    return failed("roles", f"roles swapped: {swapped}") if swapped else None


def _parts(texts: Texts) -> Rating | None:
    missing = "" if texts.described else left_out(texts.expected, phrases.without_courtesy(texts.actual))
    return failed("partial", f"the answer stops short: {missing} left out") if missing else None


_NONE: Final = re.compile(r"\b(?:no|zero|0|any)\s+(?:\w+\s+)?(\w{3,}s)\b", re.IGNORECASE)
_SOME: Final = re.compile(r"(?<![\w.])0*[1-9]\d*\s+(?:\w+\s+)?(\w{3,})\b")
_TURNED: Final = re.compile(
    r"\b(?:closed|except|not|no|never|but|nicht|kein\w*|geschlossen|cerrad\w+|fermé\w*|pas)\b", re.IGNORECASE
)


def counted_nothing(one: str, other: str) -> str:
    """Names things of which one text says there are none and the other counts some; empty when there are no such."""
    none = [found[1].lower() for found in _NONE.finditer(one) if found[0].lower()[:3] != "any" or negations(one)]
    if not none or find_facts(one.replace("0", "")):
        return ""
    some = {stem(found[1].lower()) for found in _SOME.finditer(with_digits(other))}
    return next((thing for thing in none if stem(thing) in some), "")


def day_gap(expected: str, actual: str, known: str) -> tuple[list[str], list[str]]:
    """Lists weekdays and months that are missing, and others of the answer; nothing where days stand for others."""
    if has_range_of_days(expected) != has_range_of_days(actual) or bool(_TURNED.search(expected)) != bool(
        _TURNED.search(actual)
    ):
        return [], []
    wanted, said, asked = find_days(expected), find_days(actual), find_days(known)
    missing = {key: day for key, day in wanted.items() if key not in said and key not in asked}
    extra = {key: day for key, day in said.items() if key not in wanted and key not in asked}
    kinds = {key.partition(" ")[0] for key in missing} & {key.partition(" ")[0] for key in extra}
    return _of(kinds, missing), _of(kinds, extra)


def _of(kinds: set[str], days: dict[str, str]) -> list[str]:
    return [day for key, day in days.items() if key.partition(" ")[0] in kinds]


def name_gap(expected: str, actual: str, known: str, *, described: bool) -> tuple[list[str], list[str]]:
    """Lists names that are missing, and others of the answer; rules for capital letters are those of English.

    Of the names in a description one must be said; they say what the answer is about.
    """
    if not (is_english(expected) and is_english(actual)):
        return [], []
    missing, extra = differing_names(expected, actual, known=known)
    asked = frozenset(words(known))
    if described and len(missing) < len(find_names(expected)):
        return [], []
    if not described:
        missing = [name for name in missing if not asked.issuperset(word for part in name for word in words(part))]
    return [_title(name) for name in missing], [_title(name) for name in extra]


def _title(name: tuple[str, ...]) -> str:
    return " ".join(word if "@" in word else word.capitalize() for word in name)


_RULES: Final[tuple[Callable[[Texts], Rating | None], ...]] = (
    *(_same_text, judge_breakdown, judge_refusal, judge_courtesy, judge_question),
    *(_numbers, _days, _names, _opposites, _roles, _parts),
)


def _by_words(texts: Texts, cosine: Cosine) -> Rating:
    if texts.described:
        return undecided("the expectation describes the answer; judging that needs an LLM rater")
    expected, actual = (phrases.without_courtesy(text) or text for text in (texts.expected, texts.actual))
    wanted, said = content_words(with_plain_numbers(expected)), content_words(with_plain_numbers(actual))
    likeness = (max(0.0, cosine(expected, actual)) + recall(wanted, said)) / 2
    remark = f"likeness {likeness:.2f}"
    if likeness < _FAIL_BELOW and _is_elsewhere(texts, wanted, said):
        return rated("topic", BEST * likeness, Verdict.FAILURE, f"the answer is about something else: {remark}")
    plain = _plain_words(texts._replace(expected=expected, actual=actual), wanted, said)
    if plain:
        return passed("words", plain)
    found = [*doubts(expected, actual), *_missing(texts)]
    if likeness < _PASS_FROM or found:
        return undecided("; ".join((f"the words do not decide: {remark}", *found)))
    return rated("words", BEST * likeness, Verdict.PASS, f"every word that matters is there, in order: {remark}")


def _plain_words(texts: Texts, wanted: list[str], said: list[str]) -> str:
    if is_terse(texts, wanted, said):
        return "the answer is what the question left open"
    if turned_round(texts.expected, texts.actual):
        return "the answer is the expected text, turned round"
    if fills_in(texts, wanted, said) and not _missing(texts):
        return "the answer has what the question left open, in the words of the question"
    return ""


def _missing(texts: Texts) -> tuple[str, ...]:
    missing = [fact.text for fact in _number_gap(texts)[0]]
    return (f"missing: {listed(missing)}",) if missing else ()


def _is_elsewhere(texts: Texts, wanted: list[str], said: list[str]) -> bool:
    both = is_english(texts.expected) and is_english(texts.actual)
    if not both or len(wanted) < _FEW or len(said) < _FEW - 1 or texts.stated:
        return False
    if negations(texts.expected) or negations(texts.actual) or not _POINTING.isdisjoint(raw_words(texts.actual)):
        return False
    contrary = contraries(raw_words(texts.expected), raw_words(texts.actual))
    return not contrary and not share_roots(said, [*wanted, *content_words(texts.utterance)])
