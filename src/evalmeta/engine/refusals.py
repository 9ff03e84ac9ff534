"""Recognise answers that refuse, or that say that they have no answer, in several languages."""

from __future__ import annotations

import re
from typing import Final


def pattern(*parts: str) -> re.Pattern[str]:
    """Return a pattern of alternatives that ignores case."""
    return re.compile("|".join(parts), re.IGNORECASE)


CANNOT: Final = (
    r"(?:can\s?not|can'?t|could ?n['o]t|(?:am|is|are|was|'m|'re|be) (?:not able|unable) to|unable to|not able to"
    r"|won'?t(?: be able to)?|(?:will|would|may|must|do|should) not|don't|wouldn't|mustn't)"
)
SERVE: Final = (
    r"(?:help|assist|answer|respond|provid|shar|disclos|discuss|process|complet|perform|fulfil|support|handl|giv|offer"
    r"|comment|advis|access|reveal|do (?:that|this|it|so)|speculat|recommend|engag|tell you|talk about|say|show|write"
    r"|generat|creat|mak|compar|confirm|verif|retriev|look up|find (?:that|this|any|the|your)|book|updat|chang|cancel"
    r"|reset|check|reach|release|translat|solv|diagnos|prescrib)\w*"
)
_I: Final = r"\bi(?:'m| am)?(?: (?:\w+ly|also|just))?(?: sorry,?)?(?: but)?(?: i(?:'m| am)?)?(?: (?:\w+ly|also|just))?"
REFUSAL: Final = pattern(
    rf"{_I} {CANNOT} (?!wait|thank|stress|emphasi)(?:\w+ ){{0,3}}?{SERVE}",
    rf"\bwe(?:'re| are)? {CANNOT} (?:help|assist|answer|provide|share|disclose|discuss|comment|give)",
    rf"(?:^|[.!,;]\s*)(?:sorry,? )?(?:but )?(?:unable|not able) to (?:\w+ ){{0,2}}?{SERVE}",
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
_NON_ANSWER: Final = pattern(
    r"(?:^|[.!,;]\s*)(?:(?:i have |sorry,? )?no (?:idea|clue|comment)|(?:it )?beats me)\b|\bwho knows\W*$",
    r"\b(?:not|isn't) my (?:department|job|problem)\b|\babove my pay ?grade|\b(?:keine ahnung|weiß ich nicht|ni idea)",
    r"\b(?:no (?:lo )?sé|aucune idée|ne sais pas|não sei|non lo so)\b",
)
TURN: Final = pattern(r"\b(?:but|however|although|though|still|that said|anyway|here(?:'s| is| are))\b")


def is_refusal(answer: str) -> bool:
    """Say whether an answer refuses, or says that it has none."""
    return bool(REFUSAL.search(answer) or (_NON_ANSWER.search(answer) and not TURN.search(answer)))
