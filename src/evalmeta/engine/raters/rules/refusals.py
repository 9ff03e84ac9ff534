"""Refusals and error messages instead of answers, and expectations of refusals."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.finding import find_facts
from evalmeta.engine.raters.rules.text import content_words, sentences, without_courtesy, word_set


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_CANNOT: Final = (
    r"(?:can\s?not|can'?t|could ?n['o]t|(?:am|is|are|was|'m|'re|be) (?:not able|unable) to|unable to|not able to"
    r"|won'?t(?: be able to)?|(?:will|would|may|must|do|should) not|don't|wouldn't|mustn't)"
)
_SERVE: Final = (
    r"(?:help|assist|answer|respond|provid|shar|disclos|discuss|process|complet|perform|fulfil|support|handl|giv|offer"
    r"|comment|advis|access|reveal|do (?:that|this|it|so)|speculat|recommend|engag|tell you|talk about|say|show|write"
    r"|generat|creat|mak|compar|confirm|verif|retriev|look up|find (?:that|this|any|the|your)|book|updat|chang|cancel"
    r"|reset|check|reach|release|translat|solv|diagnos|prescrib)\w*"
)
_I: Final = r"\bi(?:'m| am)?(?: (?:\w+ly|also|just))?(?: sorry,?)?(?: but)?(?: i(?:'m| am)?)?(?: (?:\w+ly|also|just))?"
_REFUSAL: Final = _pattern(
    rf"{_I} {_CANNOT} (?!wait|thank|stress|emphasi)(?:\w+ ){{0,3}}?{_SERVE}",
    rf"\bwe(?:'re| are)? {_CANNOT} (?:help|assist|answer|provide|share|disclose|discuss|comment|give)",
    rf"(?:^|[.!,;]\s*)(?:sorry,? )?(?:but )?(?:unable|not able) to (?:\w+ ){{0,2}}?{_SERVE}",
    r"\b(?:i(?:'m| am)|we(?:'re| are)) (?:not (?:allowed|permitted|authori[sz]ed|in a position|comfortable|qualified"
    r"|equipped|designed|trained)|prohibited|forbidden)",
    r"\bi (?:do not|don'?t) (?:know|have (?:access|the ability|permission|(?:\w+ ){0,2}?(?:information|data|details)))",
    r"\bi (?:must |have to |would like to )?(?:respectfully |politely )?(?:decline|refuse|refrain)\b",
    r"\bi(?:'d| would) (?:rather|prefer) not|\bi prefer not to",
    r"\b(?:outside|beyond|not (?:with)?in|out of) (?:(?:the|my) )?(?:scope|capabilit\w+|abilit\w+|expertise|what i)",
    r"\b(?:not|isn't) (?:something|a (?:topic|question|request)|anything) (?:that )?(?:i|we)(?:'m|'re| can| am| are)\b",
    r"\bquestion (?:can\s?not|can't) be answered|\bagainst (?:my|our) (?:\w+ )?(?:polic\w+|guidelines|rules)",
    r"\b(?:no puedo|no podemos|no me es posible|no estoy autorizad[oa]|no tengo (?:acceso|información|permiso))\b",
    r"\b(?:ich|wir) (?:kann|können|darf|dürfen)(?: \w+){0,5} nicht|\b(?:kann|darf|können) (?:ich|wir)(?: \w+){0,4}"
    r" (?:nicht|kein\w*)|\bkeine auskunft\b|\bje ne (?:peux|suis) pas|\bje n'ai pas accès|\bnous ne pouvons pas",
    r"\bnão (?:posso|consigo|podemos|tenho (?:acesso|informaç\w+))\b|\bnon (?:posso|possiamo|sono in grado)\b",
    r"(?:お答え|お手伝い|回答|お教え|対応)(?:することが|することは|は)?でき(?:ません|かねます)",
    r"(?:无法|無法|不能)(?:为您|帮您)?(?:回答|提供|帮助|协助|透露|处理|處理)",
    r"(?:답변|도움|제공|안내)[을를은는]?\s?(?:해\s?|드릴\s?|드리기\s?|할\s?)+(?:수\s?없|어렵)",
    r"(?:मदद|सहायता|जवाब|जानकारी)\s(?:नहीं\s(?:कर|दे)|(?:देने|करने) में असमर्थ)",
    r"لا\s(?:أستطيع|يمكنني|نستطيع|يمكننا)\s(?:مساعدت|الإجابة|تقديم|المساعدة|مشاركة)",
)
# No refusal, but no answer either: ignorance, and sending the user away.
_NON_ANSWER: Final = _pattern(
    r"(?:^|[.!,;]\s*)(?:(?:i have |sorry,? )?no (?:idea|clue|comment)|(?:it )?beats me)\b|\bwho knows\W*$",
    r"\b(?:not|isn't) my (?:department|job|problem)\b|\babove my pay ?grade|\b(?:keine ahnung|weiß ich nicht|ni idea)",
    r"\b(?:no (?:lo )?sé|aucune idée|ne sais pas|não sei|non lo so)\b",
)
# An error message, and words about problems: an error message may be what such a text expects.
BREAKDOWN: Final = _pattern(
    r"\bsomething went wrong\b|\b(?:an|unexpected|internal) (?:\w+ )?error\b(?! code)|\berror (?:has )?occurred",
    r"\b(?:ran|run) into an? (?:error|problem|issue)|\btechnical (?:difficult\w+|issue|problem)|^\W*error\b",
    r"\b[45]\d\d (?:service|bad|internal|not found|forbidden|gateway|too many)|\btry again later|\btimed out\b",
    r"\bservice (?:is )?(?:temporarily )?unavailable\b|\btraceback \(most recent|\b\w+(?:Exception|Error)\b(?::| at)",
    r"^\W*(?:null|undefined|none|nan|\{\s*\}|\[\s*\])\W*$|\bconnection (?:refused|reset|failed|lost)",
)
TROUBLE: Final = _pattern(
    r"\b(?:errors?|down|offline|outage|maintenance|unavailable|problems?|issues?|fail\w*|invalid|cannot|unable|not"
    r"|no|never|\w*n't|again|later|moment|understand|rephrase|unless|until|because|system|database)\b"
)
_DECLINES: Final = r"(?:refus(?:e|es|al|ing)|declin(?:e|es|ing)|reject(?:s|ing)?|den(?:y|ies|ying)|abstain\w*)"
_EXPECTED_REFUSAL: Final = _pattern(
    rf"\b(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer|it|ai)\b[^.!?]{{0,40}}?\b(?:{_DECLINES}"
    rf"|(?:{_CANNOT}|is not able to|has no|does not|doesn't|never) (?:{_SERVE}|know|have access))",
    rf"^\W*(?:a |an |the )?(?:(?:polite|clear|firm|respectful)(?:ly)? )?{_DECLINES}\b|^\W*{_CANNOT} {_SERVE}",
    r"\b(?:question|request|topic)s? (?:is|are|should be|must be) (?:denied|declined|refused|rejected)(?! by)",
    r"\b(?:lehnt|ablehn\w+|verweigert|rechaza|se niega|refuse d[e'])|\bne (?:peut|doit|répond) pas\b",
)
_NOT_REFUSED: Final = _pattern(rf"\b(?:not|never|n't|without)\s(?:\w+\s)?{_DECLINES}\b")
_SURE: Final = _pattern(r"\W*(?:yes|sure|of course|certainly|absolutely|here(?:'s| is| are)|ja|sí|claro|oui|sim)\b")
_DEFLECTION: Final = _pattern(
    r"\b(?:contact|consult|(?:speak|talk) (?:to|with)|refer to|ask|only|instead|sorry|rather|apolog\w+|afraid"
    r"|unfortunately|regret\w*|not|\w*n't|cannot|no|never|nor|unable|decline|refuse|professional|expert|specialist|outside"
    r"|polic(?:y|ies)|privacy|let's|limited|restricted|siento|leider|désolé\w*|nicht|pas|kein\w*|não|non|nein|but)\b",
    r"\?\s*$|[^\x00-\u024f]",
)
_APOLOGY: Final = _pattern(r"\b(?:sorry|apolog\w+|afraid|unfortunately|understand|siento|leider|désolé\w*)\b")
_TURN: Final = _pattern(r"\b(?:but|however|although|though|still|that said|anyway|here(?:'s| is| are))\b")
_BESIDES: Final = _pattern(r"\b(?:and|but|then|also|while|instead|explain\w*|suggest\w*|offer\w*)\b")
_MIN_LENGTH: Final = 4
_GENERAL: Final = word_set(
    "help assist answer question request topic such information matter something personal data about other with from"
    " this that your provide share legal medical financial leider helfen ayudar ayudarle pregunta répondre aider cette"
    " nicht atender esta solicitud sorry able comment ajudar isso"
)


def is_refusal(answer: str) -> bool:
    """Say whether an answer refuses, or says that it has none."""
    return bool(_REFUSAL.search(answer) or (_NON_ANSWER.search(answer) and not _TURN.search(answer)))


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
    refusal = _REFUSAL.search(answer)
    return _TURN.search(answer, refusal.end() if refusal else 0) is not None


def _gives_reason(answer: str, topic: str) -> bool:
    """Say whether a refusal has words after it of which the topic has none."""
    refusal = _REFUSAL.search(answer)
    rest = answer[refusal.end() :] if refusal else ""
    specific = [word for word in content_words(rest) if len(word) >= _MIN_LENGTH and word not in _GENERAL]
    roots = {word[:_MIN_LENGTH] for word in content_words(topic)}
    return bool(TROUBLE.search(rest)) or (bool(specific) and roots.isdisjoint(word[:_MIN_LENGTH] for word in specific))
