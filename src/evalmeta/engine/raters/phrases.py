"""Phrases that tell what a text is: a refusal, a deflection, a question back, a description of an answer."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "asks_for_more",
    "goes_on",
    "has_exception",
    "is_deflection",
    "is_described",
    "is_expected_refusal",
    "is_question",
    "is_refusal",
]

_CANNOT: Final = (
    r"(?:can\s?not|can'?t|could ?n['o]t|(?:am|is|are|was|'m|'re|be) (?:not able|unable) to|unable to|won'?t)"
)
_SERVE: Final = (
    r"(?:help|assist|answer|respond|provide|share|disclose|discuss|process|complete|perform|fulfil+|support|handle"
    r"|do (?:that|this|it)|give (?:you )?(?:that|this|any|legal|medical|financial)|offer|comment|advise|access|reveal)"
)
_REFUSAL: Final = re.compile(
    rf"\b(?:i|we)(?:'m| am| are|'re)? ?(?:sorry,? )?(?:but )?(?:i )?(?:{_CANNOT}|not able to|unable to)"
    rf" (?:\w+ ){{0,3}}?{_SERVE}"
    rf"|\b(?:unable|not able) to {_SERVE}"
    r"|\bi(?:'m| am) not (?:allowed|permitted|authori[sz]ed)"
    r"|\bi (?:do not|don'?t) (?:know|have (?:access|the ability|(?:any |that |this |enough )?(?:information|data)))"
    r"|\b(?:outside|beyond|not within) (?:of )?(?:my|the) (?:scope|capabilit\w+|abilit\w+|expertise|remit)"
    r"|\b(?:outside|beyond) what i can\b|\bnot something i (?:can|am able)"
    r"|\bsomething went wrong\b|\berror (?:has )?occurred\b|\bran into an? (?:error|problem)"
    r"|\btechnical (?:difficult\w+|issue)",
    re.IGNORECASE,
)
_AGENT: Final = r"\b(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer|it)\b"
_EXPECTED_REFUSAL: Final = re.compile(
    rf"{_AGENT}[^.!?]{{0,40}}?\b(?:refus(?:e|es|al)|declin(?:e|es)|reject(?:s)?|den(?:y|ies)|{_CANNOT} {_SERVE}"
    rf"|(?:does|do|should|must) not (?:{_SERVE}|know|have)|(?:does|should|must)n'?t (?:{_SERVE}|know|have))"
    r"|^\W*(?:a |an |the )?(?:polite(?:ly)? |clear(?:ly)? |firm(?:ly)? )?(?:refus(?:e|es|al|ing)|declin(?:e|es|ing))\b"
    r"|\b(?:question|request|topic)s? (?:is|are) (?:out of|outside) (?:the )?scope"
    rf"|^\W*(?:{_CANNOT}) {_SERVE}|\bsays? (?:that )?(?:it|he|she|they) {_CANNOT}",
    re.IGNORECASE,
)
_DEFLECTION: Final = re.compile(
    r"\b(?:please )?(?:contact|consult|reach out to|check with|speak (?:to|with)|talk to|refer to|ask)\b"
    r"|\b(?:i can only|only (?:help|assist|answer)|i(?:'m| am) (?:only|just)|instead|my (?:focus|role) is|sorry"
    r"|apologi[sz]e|afraid|unfortunately|not|n't|cannot)\b",
    re.IGNORECASE,
)
_TURN: Final = re.compile(r"\b(?:but|however|although|though|nevertheless)\b|\bhere (?:is|are)\b", re.IGNORECASE)
_BESIDES: Final = re.compile(r"\b(?:and|but|then|also|while|instead)\b", re.IGNORECASE)
_EXCEPTION: Final = re.compile(
    r"\b(?:but|except|unless|however|although|though|only|almost|nearly|instead|until|if)\b", re.IGNORECASE
)
_DESCRIBED: Final = re.compile(
    rf"^\W*(?:the |an? )?{_AGENT}[^.!?]{{0,30}}?\b(?:should|must|will|shall|can|cannot|would|needs?|has|have|is|\w+s)\b"
    r"|^\W*(?:an? |the )?(?:\w+ ){0,2}?(?:summar(?:y|i[sz]ation)|list(?:ing)?|overview|description|explanation"
    r"|confirmation|greeting|details?|information|recommendations?|draft|suggestions?|comparison|apology|answer|reply"
    r"|response|mention|acknowledge?ment|welcome|request) (?:of|about|for|that|which|with|on|to|from|regarding)\b"
    r"|^\W*(?:polite(?:ly)? |friendly )?(?:summari[sz]es?|lists?|provid(?:e|es|ing)|describ(?:e|es)|explains?|returns?"
    r"|shows?|confirms?|asks?|offers?|informs?|tells?|gives?|greets?|identif(?:y|ies)|mentions?|states?|responds?|repl(?:y"
    r"|ies)|acknowledges?|includes?|contains?|should|must|recommends?|suggests?|drafts?|apologi[sz]es?)\b",
    re.IGNORECASE,
)


def is_refusal(answer: str) -> bool:
    """Says whether an answer refuses, or reports that something broke, instead of answering."""
    return _REFUSAL.search(answer) is not None


def asks_for_more(expected: str) -> bool:
    """Says whether an expectation describes a refusal and something besides."""
    return _BESIDES.search(expected) is not None and not is_refusal(expected)


def is_deflection(answer: str) -> bool:
    """Says whether an answer could be a polite refusal, or goes on after one: nothing to decide by."""
    return _DEFLECTION.search(answer) is not None or goes_on(answer)


def is_expected_refusal(expected: str) -> bool:
    """Says whether an expectation asks for a refusal, by describing or by wording it."""
    return _EXPECTED_REFUSAL.search(expected) is not None or is_refusal(expected)


def is_described(expected: str) -> bool:
    """Says whether an expectation describes the answer instead of wording it."""
    return _DESCRIBED.search(expected) is not None


def is_question(text: str) -> bool:
    """Says whether a text only asks back."""
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]
    return bool(sentences) and all(sentence.endswith("?") for sentence in sentences)


def goes_on(answer: str) -> bool:
    """Says whether an answer takes a turn after its refusal, such as `but`, after which anything may follow."""
    refusal = _REFUSAL.search(answer)
    return _TURN.search(answer, refusal.end() if refusal else 0) is not None


def has_exception(text: str) -> bool:
    """Says whether a text takes back a part of what it says."""
    return _EXCEPTION.search(text) is not None
