"""Error messages instead of answers, expectations of refusals, and what else is in a refusal."""

from __future__ import annotations

from typing import Final

from evalmeta.engine.refusals import CANNOT, REFUSAL, SERVE, TURN, is_refusal, pattern
from evalmeta.rules_rater.finding import find_facts
from evalmeta.rules_rater.text import content_words, sentences, without_courtesy, word_set

# An error message, and words about problems: an error message may be what such a text expects.
BREAKDOWN: Final = pattern(
    r"\bsomething went wrong\b|\b(?:an|unexpected|internal) (?:\w+ )?error\b(?! code)|\berror (?:has )?occurred",
    r"\b(?:ran|run) into an? (?:error|problem|issue)|\btechnical (?:difficult\w+|issue|problem)|^\W*error\b",
    r"\b[45]\d\d (?:service|bad|internal|not found|forbidden|gateway|too many)|\btry again later|\btimed out\b",
    r"\bservice (?:is )?(?:temporarily )?unavailable\b|\btraceback \(most recent|\b\w+(?:Exception|Error)\b(?::| at)",
    r"^\W*(?:null|undefined|none|nan|\{\s*\}|\[\s*\])\W*$|\bconnection (?:refused|reset|failed|lost)",
)
TROUBLE: Final = pattern(
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
    if _NOT_REFUSED.search(expected):
        return False
    return _EXPECTED_REFUSAL.search(expected) is not None or is_refusal(expected)


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
    return bool(TROUBLE.search(rest)) or (bool(specific) and roots.isdisjoint(word[:_MIN_LENGTH] for word in specific))
