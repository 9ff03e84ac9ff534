"""Expectations that describe an answer instead of quoting it, such as `The agent confirms the order`."""

from __future__ import annotations

import re
from typing import Final

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
