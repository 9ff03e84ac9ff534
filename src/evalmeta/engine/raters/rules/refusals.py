"""Refusals and error messages instead of answers, in English and, if they are clear, in three other languages."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.phrases import without_courtesy
from evalmeta.engine.raters.rules.vocabulary import word_list
from evalmeta.engine.raters.rules.words import raw_words

_CANNOT: Final = (
    r"(?:can\s?not|can'?t|could ?n['o]t|(?:am|is|are|was|'m|'re|be) (?:not able|unable) to|unable to"
    r"|won'?t(?: be able to)?"
    r"|(?:will|would|may|must|do|shall|should) not|don't|wouldn't|mustn't|not able to|isn't able to)"
)
_SERVE: Final = (
    r"(?:help|assist|answer|respond|provid|shar|disclos|discuss|process|complet|perform|fulfil+|support|handl|giv"
    r"|offer|comment|advis|access|reveal|do (?:that|this|it|so)|speculat|recommend|engag|tell you|talk about|say|show"
    r"|write|generat|creat|mak|compar|confirm|verif|retriev|look up|find (?:that|this|any|the|your)|book|updat|chang"
    r"|cancel|reset|check|reach|connect|speak|release|carry out|go into|translat|solv|opin|diagnos|prescrib)\w*"
)
_I_CANNOT: Final = (
    r"\bi(?:'m| am)?(?: (?:really|truly|very))?(?: sorry,?)?(?: but)?(?: i(?:'m| am)?)?"
    r"(?: (?:unfortunately|simply|currently|also|just|therefore|regrettably))?"
)
_REFUSAL: Final = re.compile(
    rf"{_I_CANNOT} {_CANNOT} (?!wait|thank|recommend it enough|stress|emphasi)(?:\w+ ){{0,3}}?{_SERVE}"
    r"|\bwe(?:'re| are)? (?:can\s?not|can't|unable to|not able to|are unable to|do not|don't)"
    r" (?:help|assist|answer|provide|share|disclose|discuss|process your request|comment|give (?:you )?(?:legal"
    r"|medical|any))"
    rf"|(?:^|[.!,;]\s*)(?:sorry,? )?(?:but )?(?:unable|not able) to (?:\w+ ){{0,2}}?{_SERVE}"
    r"|\b(?:i(?:'m| am)|we(?:'re| are)) (?:not (?:allowed|permitted|authori[sz]ed|in a position|comfortable|qualified"
    r"|equipped|designed|programmed|trained|able (?:to|at))|prohibited|restricted|forbidden)"
    r"|\bi (?:do not|don'?t|currently don't) (?:know|have (?:access|the ability|permission|the authority|(?:any "
    r"|that |this "
    r"|enough |sufficient )?(?:information|data|details|insight)))"
    r"|\bi (?:must|have to|need to|will have to|'ll have to|would like to|should)?\s?(?:respectfully |politely "
    r"|kindly )?"
    r"(?:decline|refuse|refrain|pass on)\b"
    r"|\bi(?:'d| would) (?:rather|prefer) not|\bi prefer not to"
    r"|\b(?:outside|beyond|not (?:with)?in|out of|falls? outside) (?:of )?(?:(?:the|my) )?(?:scope|capabilit\w+"
    r"|abilit\w+"
    r"|expertise|remit|area|domain|what i can|what i'm able)"
    r"|(?:\bnot|n't) (?:something|a (?:topic|question|request|subject)|a thing|anything) (?:that )?"
    r"(?:i|we)(?:'m|'re| (?:can|am"
    r"|are|may|could|would))\b"
    r"|\b(?:not something i|nothing i) can\b"
    r"|\b(?:request|question) (?:can\s?not|can't) be (?:answered|processed|fulfil+ed|completed)"
    r"|\b(?:against|violates?) (?:my|our|the) (?:\w+ )?(?:polic\w+|guidelines|rules)"
    r"|\bmy (?:guidelines|instructions|policy) (?:do|does|prevent|forbid|prohibit)\w*"
    r"|\bno (?:information|data|details) (?:is |are )?(?:available|on that|about that)"
    r"|\b(?:no puedo|no podemos|no me es posible|no estoy autorizad[oa]|no tengo (?:acceso|información|permiso))\b"
    r"|\b(?:ich|wir) (?:kann|können|darf|dürfen)(?: \w+){0,5} nicht|\b(?:kann|darf|können) (?:ich"
    r"|wir)(?: \w+){0,4} nicht"
    r"|\b(?:ich|wir) (?:habe|haben) (?:leider )?(?:keinen zugriff|keine informationen)|\bkeine auskunft\b"
    r"|\bje ne (?:peux|suis) pas|\bje n'ai pas (?:accès|d'information)|\bnous ne pouvons pas",
    re.IGNORECASE,
)
# No refusal, but no answer either: ignorance, and sending the user away.
_NON_ANSWER: Final = re.compile(
    r"(?:^|[.!,;]\s*)(?:(?:i have |sorry,? |i've )?(?:absolutely )?no (?:idea|clue|comment)|(?:it )?beats me"
    r"|search me)\b"
    r"|\bwho knows\W*$|\b(?:not|isn't) my (?:department|job|problem|responsibility|area|business)\b"
    r"|\babove my pay ?grade"
    r"|\byou(?:'ll| will|'d| would)? (?:have|need) to (?:ask|find|look|figure)\b"
    r"[^.!?]{0,30}\b(?:else|yourself|another)\b"
    r"|\b(?:figure|look|find|check|google|do) (?:it|that|this)(?: (?:out|up))? (?:for )?yourself\b|\bgoogle it\b"
    r"|\bi(?:'d| would|'ll| will) (?:have|need) to (?:ask|check|look)\b|\bi (?:do not|don't) (?:care|remember|recall)\b"
    r"|\b(?:keine ahnung|weiß ich nicht|weiß nicht|ni idea|no (?:lo )?sé|aucune idée|ne sais pas|sais pas)\b",
    re.IGNORECASE,
)
_BREAKDOWN: Final = re.compile(
    r"\bsomething went wrong\b|\b(?:an?|unexpected|unknown|internal) (?:\w+ )?error\b(?! code)"
    r"|\berror (?:has )?occurred"
    r"|\b(?:ran|run) into an? (?:error|problem|issue)|\btechnical (?:difficult\w+|issue|problem)"
    r"|^\W*error\b|\binternal server error|\b[45]\d\d (?:service|bad|internal|not found|forbidden|unauthorized|gateway"
    r"|too many)|\btimed out\b|\btime-?out\b|\bservice (?:is )?(?:temporarily )?unavailable\b|\btry again (?:later"
    r"|in a)"
    r"|\btraceback \(most recent|\b\w+(?:Exception|Error)\b(?::| at)|^\W*(?:null|undefined|none|nan|\{\s*\}"
    r"|\[\s*\])\W*$"
    r"|\bfailed to (?:load|fetch|connect|process)|\bconnection (?:refused|reset|failed|lost)",
    re.IGNORECASE,
)
_AGENT: Final = r"\b(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer|it|ai|system)\b"
_DECLINES: Final = (
    r"(?:refus(?:e|es|al|ing)|declin(?:e|es|ing)|reject(?:s|ing)?|den(?:y|ies|ying)|abstain\w*|refrain\w*)"
)
_EXPECTED_REFUSAL: Final = re.compile(
    rf"{_AGENT}[^.!?]{{0,40}}?\b(?:{_DECLINES}"
    rf"|(?:{_CANNOT}|is not able to|has no|does not|does|do|should not|must not|shouldn't|mustn't|doesn't"
    rf"|never) (?:{_SERVE}|know|have (?:access|information)|access))"
    rf"|^\W*(?:a |an |the )?(?:(?:polite|clear|firm|respectful)(?:ly)? )?{_DECLINES}\b"
    r"|\b(?:question|request|topic)s? (?:is|are|should be|must be|gets?) (?:politely )?(?:out of|outside|denied"
    r"|declined"
    r"|refused|rejected)(?! by)"
    rf"|^\W*(?:{_CANNOT}) {_SERVE}|\bsays? (?:that )?(?:it|he|she|they) {_CANNOT}"
    r"|\b(?:lehnt|ablehn\w+|verweigert|rechaza|se niega|refuse d[e'])|\bne (?:peut|doit|répond) pas\b",
    re.IGNORECASE,
)
_NOT_REFUSED: Final = re.compile(rf"\b(?:not|never|n't|without)\s(?:\w+\s)?{_DECLINES}\b", re.IGNORECASE)
_DEFLECTION: Final = re.compile(
    r"\b(?:please )?(?:contact|consult|reach out to|check with|speak (?:to|with)|talk (?:to|with)|refer to|ask"
    r"|see an?)\b"
    r"|\b(?:i can only|only (?:help|assist|answer)|i(?:'m| am) (?:only|just)|instead|my (?:focus|role) is|sorry|rather"
    r"|apolog\w+|afraid|unfortunately|regret\w*|not|\w*n't|cannot|no|never|nor|unable|decline|refuse|best left|lawyer"
    r"|doctor|professional|expert|specialist|advisor|policy|policies|confidential\w*|private|privacy|reasons|let's"
    r"|here to help with|happy to help with|focus\w*|limited|restricted|prohibited|illegal|inappropriate|sensitive)\b"
    r"|\b(?:lamento|siento|leider|désolé\w*|nicht|pas|kein\w*)\b|\?\s*$",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[\n\r]+")
_APOLOGY: Final = re.compile(
    r"\b(?:sorry|apolog\w+|afraid|unfortunately|understand|appreciate|thanks?|as an ai|lamento|siento|leider"
    r"|désolé\w*)\b",
    re.IGNORECASE,
)
_REDIRECT: Final = re.compile(
    r"\b(?:contact|consult|speak|reach|talk|see|help|assist|anything else|recommend|suggest|happy|glad|visit|can i"
    r"|let me"
    r"|let's|if you|questions?|support|focus\w*|designed|topics?|policy|policies|privacy|security|confidential|reasons?"
    r"|qualified|professional|sorry|apolog\w+|understand\w*|not|cannot|\w*n't)\b",
    re.IGNORECASE,
)
_TURN: Final = re.compile(
    r"\b(?:but|however|although|though|nevertheless|still|that said|anyway)\b|\bhere(?:'s| is| are)\b", re.IGNORECASE
)
_BESIDES: Final = re.compile(r"\b(?:and|but|then|also|while|instead|explain\w*|suggest\w*|offer\w*)\b", re.IGNORECASE)


def is_refusal(answer: str) -> bool:
    """Say whether an answer refuses."""
    return _contains_any(answer, _REFUSAL_SIGNS) and _REFUSAL.search(answer) is not None


def is_non_answer(answer: str) -> bool:
    """Say whether an answer says that it has none, or sends the user away, and does not continue."""
    if _NON_ANSWER_SIGNS.isdisjoint(raw_words(answer)):
        return False
    return _NON_ANSWER.search(answer) is not None and _TURN.search(answer) is None


def is_breakdown(answer: str) -> bool:
    """Say whether an answer reports an error."""
    return _contains_any(answer, _BREAKDOWN_SIGNS) and _BREAKDOWN.search(answer) is not None


def refused_part(answer: str) -> str:
    """Return the text after the words of the refusal: what is refused."""
    found = _REFUSAL.search(answer)
    return answer[found.end() :] if found else ""


def asks_for_more(expected: str) -> bool:
    """Say whether an expectation describes a refusal and something else."""
    return _BESIDES.search(expected) is not None and not is_refusal(expected)


def is_deflection(answer: str, *, complies: bool = False) -> bool:
    """Say whether an answer could be a polite refusal, or continues after one, so that no rule can decide.

    In an answer that complies, such as `Sure, here is ...`, `but` does not follow a refusal.
    """
    return _DEFLECTION.search(answer) is not None or (continues(answer) and not complies)


def is_expected_refusal(expected: str) -> bool:
    """Say whether an expectation describes or quotes a refusal."""
    if not _contains_any(expected, _REFUSAL_SIGNS) or _NOT_REFUSED.search(expected):
        return False
    return _EXPECTED_REFUSAL.search(expected) is not None or is_refusal(expected)


def is_plain_refusal(answer: str) -> bool:
    """Say whether an answer only refuses, except for courtesy and a referral."""
    sentences = _SENTENCE.split(without_courtesy(answer) or answer)
    if continues(answer) or not any(map(is_refusal, sentences)):
        return False
    first = next(place for place, sentence in enumerate(sentences) if is_refusal(sentence))
    before = all(_APOLOGY.search(sentence) for sentence in sentences[:first])
    return before and all(is_refusal(sentence) or _REDIRECT.search(sentence) for sentence in sentences[first + 1 :])


def continues(answer: str) -> bool:
    """Say whether the answer continues after its refusal, for example with `but`."""
    refusal = _REFUSAL.search(answer)
    return _TURN.search(answer, refusal.end() if refusal else 0) is not None


# Every match of the long patterns contains one of these; most texts contain none, which saves the search.
_REFUSAL_SIGNS: Final = word_list(
    "no ne n't n'ai unable able declin refus refrain abstain reject den pass rather prefer outside beyond scope out "
    "prohibit restrict forbid against violat guideline instruction polic nicht keine pued pode lehn weiger rechaza "
    "niega"
)
_NON_ANSWER_SIGNS: Final = frozenset(
    word_list(
        "idea clue comment beats search knows department job problem responsibility area business pay ask find look "
        "figure google check yourself care remember recall ahnung weiß sé sais idée"
    )
)
_BREAKDOWN_SIGNS: Final = word_list(
    "error wrong technical time unavailable again traceback exception null undefined none nan { [ fail connection "
    "problem issue service bad not internal forbidden unauthorized gateway many"
)


def _contains_any(text: str, signs: tuple[str, ...]) -> bool:
    lowered = text.lower()
    return any(sign in lowered for sign in signs)
