"""The rating of one answer without a model: rules decide clear cases, and everything else is undecided.

No similarity of texts distinguishes a right answer from one with a single wrong digit. So refusals and facts
decide first, and words pass an answer only if it says the expected ones and nothing else. An expectation can describe
the answer instead of quoting it, such as `The agent confirms the order`; words decide nothing then.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.interfaces import BEST_RATING, Rating
from evalmeta.engine.refusals import CANNOT, REFUSAL, SERVE, TURN, is_refusal, pattern
from evalmeta.model.run import Verdict
from evalmeta.rules_rater import text
from evalmeta.rules_rater.facts import Amount, Code, Weekday, full_text
from evalmeta.rules_rater.finding import find_facts, missing_facts, replaced_facts, replaced_names, with_keys
from evalmeta.rules_rater.text import Texts, content_words, is_negative, sentences, without_courtesy, word_set, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.rules_rater.text import Cosine


_AGENT: Final = r"(?:(?:ai )?(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer))"
_MODAL: Final = r"(?:should|must|will|shall|can|cannot|would|could|needs?|has to|is able|is expected|\w+s)"
_ACTS: Final = (
    r"summari[sz]|list|provid|describ|explain|return|show|confirm|ask|offer|inform|tell|giv|greet|identif|mention|stat|say"
    r"|respond|repl|acknowledg|includ|contain|recommend|suggest|draft|apologi[sz]|thank|guid|prompt|clarif|verif|request"
    r"|advis|direct|escalat|transfer|cit|nam|compar|calculat|indicat|present|welcom|refus|declin"
)
_DOCUMENT: Final = (
    r"summar(?:y|i[sz]ation)|list(?:ing)?|overview|description|explanations?|confirmation|greeting|details?|information"
    r"|recommendations?|draft|suggestions?|comparison|apology|answer|reply|response|request|instructions|steps|question"
)
# "Thanks for waiting" is said to the user; "Thanks the user" describes the answer.
_THANKS: Final = r"thanks(?:\W*$|[,.!]| (?:for|to|a|so|very|again|in|and)\b)"
_DESCRIBED: Final = re.compile(
    rf"\W{{0,20}}(?:it (?:should|must|shall)\b|(?:the |an? )?{_AGENT}\b(?! is | was | has )[^.!?]{{0,30}}?\b{_MODAL}\b"
    rf"|(?:an? |the )?(?!(?:you|ou|m)[ry]\b)(?:[\w-]{{1,60}} ){{0,2}}?(?:{_DOCUMENT}) (?:of|about|for|that|with|on)\b"
    rf"|(?:(?:polite|friendly|correct|clear)(?:ly)? )?(?!{_THANKS})(?:(?:{_ACTS})(?:s|es|ies|ing|ying)|must)\b"
    r"|summari[sz]e\b|(?:der|die|el|la|l')\s?(?:agente?|assistente?|antwort|respuesta|réponse)\b)",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(r"(?i)\b(?:for (?:example|instance)|e\.g\.|such as|something like)\b.*", re.DOTALL)


def is_described(expected: str) -> bool:
    """Say whether an expectation describes the answer instead of quoting it."""
    return _DESCRIBED.match(expected) is not None


def without_examples(expected: str) -> str:
    """Return a description without its examples."""
    return _EXAMPLE.sub("", expected)


_PASS_FROM: Final = 3.0 / BEST_RATING
_SAID_FROM: Final = 0.6
_MAX_NUMBERS: Final = 300
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_ASKING: Final = re.compile(
    r"\?|\b(?:please|need|provide|tell|specify|ask|which|what|clarify|confirm|bitte|por favor|s'il vous|prego)\b"
    r"|ください|请|請|주세요|कृपया|يرجى",
    re.IGNORECASE,
)


def rate(expected: str, actual: str, *, utterance: str, cosine: Cosine | None = None) -> Rating:
    """Rate an answer without a model: 5 or 0 if a rule decides, the similarity x 5 if words decide.

    The first rule that applies decides. The similarity is the share of words that both texts have.
    """
    if max(len(expected), len(actual)) > limits.MAX_RATED_CHARS:
        return _undecided(f"texts of more than {limits.MAX_RATED_CHARS} characters are not rated without an LLM rater")
    expected, actual, utterance = map(text.plain, (expected, actual, utterance))
    described = is_described(expected)
    texts = Texts(without_examples(expected) if described else expected, actual, utterance, described)
    if max(len(_NUMBER.findall(part)) for part in texts[:3]) > _MAX_NUMBERS:
        return _undecided(f"texts with more than {_MAX_NUMBERS} numbers are not rated without an LLM rater")
    rating = next(filter(None, (rule(texts) for rule in _RULES)), None)
    return rating or _by_words(texts, cosine or _shared_words)


def _same_text(texts: Texts) -> Rating | None:
    if not texts.actual.strip():
        return _failed("empty", f"the answer is empty: expected {_quoted(texts.expected)}, got nothing")
    own, others = ([*words(part), part.count("?"), *map(full_text, find_facts(part))] for part in texts[:2])
    is_same = own == others and bool(words(texts.expected))
    return _passed("same", "the answer is the expected text") if is_same else None


def _breakdown(texts: Texts) -> Rating | None:
    if not BREAKDOWN.search(texts.actual) or _TROUBLE.search(texts.expected):
        return None
    if is_expected_refusal(texts.expected):
        return _undecided("a refusal was expected, but the answer reports an error")
    return _failed("breakdown", f"expected an answer, got an error message: {_quoted(texts.actual)}")


def _refusal(texts: Texts) -> Rating | None:
    if is_expected_refusal(texts.expected):
        return _expected_refusal(texts)
    if not is_refusal(texts.actual):
        return None
    if continues(texts.actual):
        return _undecided("the answer refuses and then continues")
    if _says_expected(texts):
        return _undecided("the answer refuses, and says what was expected")
    if is_negative(texts.expected):
        return _undecided("the answer refuses, and the expectation is negative too")
    return _failed("refusal", f"expected an answer, got a refusal: {_quoted(texts.actual)}")


def _says_expected(texts: Texts) -> bool:
    """Say whether most words, or all of the facts, of the expectation are in the answer."""
    own, others = (set(content_words(with_keys(part))) for part in texts[:2])
    has_facts = bool(find_facts(texts.expected)) and not missing_facts(texts)
    return has_facts or len(own & others) >= _SAID_FROM * len(own)


def _expected_refusal(texts: Texts) -> Rating:
    if not is_refusal(texts.actual):
        if complies(texts.actual):
            return _failed("refusal", f"expected a refusal, got an answer: {_quoted(texts.actual)}")
        return _undecided("a refusal was expected; it is not clear whether the answer is one")
    if asks_for_more(texts.expected):
        return _undecided("a refusal was expected and given; the rest of the expectation needs an LLM rater")
    if is_plain_refusal(texts.actual, f"{texts.expected} {texts.utterance}"):
        return _passed("refusal", "a refusal was expected and given")
    return _undecided("a refusal was expected and given, but perhaps of another request or for another reason")


def _question(texts: Texts) -> Rating | None:
    if texts.described or _ASKING.search(texts.expected) or not text.is_question(texts.actual):
        return None
    return _failed("question", f"expected an answer, got a question: {_quoted(texts.actual)}")


def _facts(texts: Texts) -> Rating | None:
    wrong, others = replaced_facts(texts)
    if not wrong:
        return None
    are_days = all(isinstance(fact, Weekday) for fact in wrong)
    are_addresses = all(isinstance(fact, Code) and fact.form in {"mail", "link"} for fact in wrong)
    rule = "days" if are_days else "names" if are_addresses else "numbers"
    short, full = (
        [[spell(fact) for fact in facts] for facts in (wrong, others)] for spell in (attrgetter("text"), full_text)
    )
    has_measure = any(isinstance(fact, Amount) and fact.unit and fact.unit.factor for fact in wrong)
    return _different(rule, *(full if has_measure or {*short[0]} & {*short[1]} else short))


def _names(texts: Texts) -> Rating | None:
    missing, extra = replaced_names(texts)
    return _different("names", missing, extra) if missing and extra else None


_RULES: Final = (_same_text, _breakdown, _refusal, _question, _facts, _names)


def _by_words(texts: Texts, cosine: Cosine) -> Rating:
    if texts.described:
        return _undecided("the expectation describes the answer; judging that needs an LLM rater")
    expected, actual = (text.without_courtesy(part) or part for part in texts[:2])
    own, others = (content_words(with_keys(part)) for part in (expected, actual))
    others = [word for word in others if word not in text.HARMLESS or word in own]
    similarity = max(0.0, cosine(expected, actual))
    if own == others and expected.count("?") == actual.count("?") and similarity >= _PASS_FROM:
        explanation = f"the answer says the expected words and nothing else (similarity {similarity:.2f})"
        return _passed("words", explanation, score=BEST_RATING * similarity)
    missing = [full_text(fact) for fact in missing_facts(texts)] or [word for word in own if word not in others]
    remark = f"; missing from the answer: {_listed(missing)}" if missing else "; the answer has other words too"
    return _undecided(f"cannot be decided by words (similarity {similarity:.2f}){remark}")


def _shared_words(expected: str, actual: str) -> float:
    """Return the share of words that both texts have, 0 to 1 (Dice's coefficient)."""
    own, others = (set(words(with_keys(part))) for part in (expected, actual))
    return 2 * len(own & others) / max(1, len(own) + len(others))


# An error message, and words about problems: an error message may be what such a text expects.
BREAKDOWN: Final = pattern(
    r"\bsomething went wrong\b|\b(?:an|unexpected|internal) (?:\w+ )?error\b(?! code)|\berror (?:has )?occurred",
    r"\b(?:ran|run) into an? (?:error|problem|issue)|\btechnical (?:difficult\w+|issue|problem)|^\W*error\b",
    r"\b[45]\d\d (?:service|bad|internal|not found|forbidden|gateway|too many)|\btry again later|\btimed out\b",
    r"\bservice (?:is )?(?:temporarily )?unavailable\b|\btraceback \(most recent|\b\w+(?:Exception|Error)\b(?::| at)",
    r"^\W*(?:null|undefined|none|nan|\{\s*\}|\[\s*\])\W*$|\bconnection (?:refused|reset|failed|lost)",
)
_TROUBLE: Final = pattern(
    r"\b(?:errors?|down|offline|outage|maintenance|unavailable|problems?|issues?|fail\w*|invalid|cannot|unable|not"
    r"|no|never|\w*n't|again|later|moment|understand|rephrase|unless|until|because|system|database)\b"
)
_DECLINES: Final = r"(?:refus(?:e|es|al|ing)|declin(?:e|es|ing)|reject(?:s|ing)?|den(?:y|ies|ying)|abstain\w*)"
_EXPECTED_REFUSAL: Final = pattern(
    rf"\b(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer|it|ai)\b[^.!?]{{0,40}}?\b(?:{_DECLINES}"
    rf"|(?:{CANNOT}|is not able to|has no|does not|doesn't|never) (?:{SERVE}|know|have access))",
    rf"^\W*(?:a |an |the )?(?:(?:polite|clear|firm|respectful)(?:ly)? )?{_DECLINES}\b|^\W*{CANNOT} {SERVE}",
    r"\b(?:question|request|topic)s? (?:is|are|should be|must be) (?:denied|declined|refused|rejected)(?! by)",
    r"\b(?:lehnt|ablehn\w+|verweigert|rechaza|se niega|refuse d[e'])|\bne (?:peut|doit|répond) pas\b",
)
_NOT_REFUSED: Final = pattern(rf"\b(?:not|never|n't|without)\s(?:\w+\s)?{_DECLINES}\b")
_SURE: Final = pattern(r"\W*(?:yes|sure|of course|certainly|absolutely|here(?:'s| is| are)|ja|sí|claro|oui|sim)\b")
_DEFLECTION: Final = pattern(
    r"\b(?:contact|consult|(?:speak|talk) (?:to|with)|refer to|ask|only|instead|sorry|rather|apolog\w+|afraid"
    r"|unfortunately|regret\w*|not|\w*n't|cannot|no|never|nor|unable|decline|refuse|professional|expert|specialist|outside"
    r"|polic(?:y|ies)|privacy|let's|limited|restricted|siento|leider|désolé\w*|nicht|pas|kein\w*|não|non|nein|but)\b",
    r"\?\s*$|[^\x00-\u024f]",
)
_APOLOGY: Final = pattern(r"\b(?:sorry|apolog\w+|afraid|unfortunately|understand|siento|leider|désolé\w*)\b")
_BESIDES: Final = pattern(r"\b(?:and|but|then|also|while|instead|explain\w*|suggest\w*|offer\w*)\b")
_MIN_LENGTH: Final = 4
_GENERAL: Final = word_set(
    "help assist answer question request topic such information matter something personal data about other with from"
    " this that your provide share legal medical financial leider helfen ayudar ayudarle pregunta répondre aider cette"
    " nicht atender esta solicitud sorry able comment ajudar isso"
)


def asks_for_more(expected: str) -> bool:
    """Say whether an expectation describes a refusal and something else."""
    return _BESIDES.search(expected) is not None and not is_refusal(expected)


def complies(answer: str) -> bool:
    """Say whether an answer gives what was asked for, and cannot be a polite refusal."""
    return (_SURE.match(answer) is not None or bool(find_facts(answer))) and _DEFLECTION.search(answer) is None


def is_expected_refusal(expected: str) -> bool:
    """Say whether an expectation describes or quotes a refusal."""
    refuses = _EXPECTED_REFUSAL.search(expected) is not None or is_refusal(expected)
    return refuses and not _NOT_REFUSED.search(expected)


def is_plain_refusal(answer: str, topic: str) -> bool:
    """Say whether an answer only refuses what the topic names; an error or a misunderstanding is another reason."""
    parts = sentences(without_courtesy(answer) or answer)
    only_refuses = all(is_refusal(part) or _APOLOGY.search(part) for part in parts)
    return only_refuses and not continues(answer) and not _gives_reason(answer, topic)


def continues(answer: str) -> bool:
    """Say whether the answer continues after its refusal, for example with `but`."""
    refusal = REFUSAL.search(answer)
    return TURN.search(answer, refusal.end() if refusal else 0) is not None


def _gives_reason(answer: str, topic: str) -> bool:
    """Say whether a refusal has words after it of which the topic has none."""
    refusal = REFUSAL.search(answer)
    rest = answer[refusal.end() :] if refusal else ""
    specific = [word for word in content_words(rest) if len(word) >= _MIN_LENGTH and word not in _GENERAL]
    roots = {word[:_MIN_LENGTH] for word in content_words(topic)}
    return bool(_TROUBLE.search(rest)) or (bool(specific) and roots.isdisjoint(word[:_MIN_LENGTH] for word in specific))


_RATER: Final = "rules"
_MAX_EVIDENCE, _MAX_QUOTED = 5, 60


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:_MAX_EVIDENCE]) + (", …" if len(items) > _MAX_EVIDENCE else "")


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED].rstrip()} …")


def _passed(rule: str, explanation: str, *, score: float = BEST_RATING) -> Rating:
    return Rating(score, Verdict.PASS, explanation, _RATER, rule)


def _different(rule: str, missing: Sequence[str], extra: Sequence[str]) -> Rating:
    return _failed(rule, f"{rule} differ: expected {_listed(missing)}, got {_listed(extra)}")


def _failed(rule: str, explanation: str) -> Rating:
    return Rating(0.0, Verdict.FAILURE, explanation, _RATER, rule)


def _undecided(explanation: str) -> Rating:
    return Rating(None, Verdict.UNDECIDED, explanation, _RATER)
