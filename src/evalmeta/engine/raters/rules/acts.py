"""Greetings, thanks and apologies: whether an answer sincerely does what a description asks for."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.phrases import KINDNESS, is_described
from evalmeta.engine.raters.rules.vocabulary import word_list
from evalmeta.engine.raters.rules.words import negations, raw_words

_PLAIN_ACT: Final = frozenset(
    word_list(
        "the a an agent assistant bot response reply answer should must will greet greets greeting welcome welcomes "
        "thank thanks apologize apologizes apologise apologises apology to for user customer guest client visitor "
        "caller them politely warmly friendly polite warm short in way with contains contain is include includes "
        "feedback delay inconvenience wait their it"
    )
)
_GREETING: Final = re.compile(
    r"^\W*(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day)|welcome)\b", re.IGNORECASE
)
_ACTS_DONE: Final = (
    (re.compile(r"\b(?:greets?|greeting|welcomes?)\b", re.IGNORECASE), _GREETING),
    (
        re.compile(r"\bthank(?:s|ing)? (?:the|them|him|her)\b", re.IGNORECASE),
        re.compile(
            r"(?<!no )(?<!no, )\bthank(?:s| you)(?: (?:so|very) much| a lot)?"
            rf"(?:\W*(?:$|[,.!])| for {KINDNESS}| again)",
            re.IGNORECASE,
        ),
    ),
    (
        re.compile(r"\bapologi[sz](?:es?|ing)\b|\bapology\b", re.IGNORECASE),
        re.compile(
            r"\b(?:i|we)(?:'m| am|'re| are| do| would like to| want to)?(?: \w+){0,2} (?:sorry|apologi[sz]e)"
            r"(?: (?:for|about|that|to hear)\b|\W*(?:$|[.!]))"
            r"|\b(?:my|our)(?: \w+)? apolog(?:y|ies)\b"
            r"|(?:^|[.!] )(?:so |very )?(?:sorry|apologies)(?: (?:for|about)\b|\s*[.!])",
            re.IGNORECASE,
        ),
    ),
)
# What a sincere greeting, apology or thanks does not contain.
_RUDE: Final = re.compile(
    r"\b(?:nothing|wast(?:e|ing)|lost|away|shut|idiot\w*|stupid|fools?|dumb|fault|blame|whatever|anybody|anyone|nobody"
    r"|breaking|ruining|care less|deal with it)\b|\bwho (?:are|is) (?:you|this)|\bwhat do you want"
    r"|\bare you (?!all|well|today)",
    re.IGNORECASE,
)
_OBJECTS: Final = frozenset({"feedback", "delay", "inconvenience", "wait", "waiting"})
_OBJECT: Final = re.compile(r"\b(?:for|about) (?:the|your|our|my|any) (?P<object>[\w-]+)", re.IGNORECASE)
_ANY_OBJECT: Final = frozenset({"trouble", "inconvenience", "mistake", "problem", "issue", "patience", "understanding"})


def does_act(expected: str, answer: str) -> bool:
    """Say whether a description asks only for a greeting, thanks or an apology, and the answer has it."""
    if not is_described(expected) or any(word not in _PLAIN_ACT for word in raw_words(expected)):
        return False
    if _RUDE.search(answer) or negations(answer) or not _has_object(expected, answer):
        return False
    return any(described.search(expected) and done.search(answer) for described, done in _ACTS_DONE)


def _has_object(expected: str, answer: str) -> bool:
    """Say whether an answer thanks or apologizes for the described thing, for none or for trouble in general."""
    wanted = _OBJECTS.intersection(raw_words(expected))
    named = {found["object"].lower() for found in _OBJECT.finditer(answer)}
    return not wanted or not named or not named.isdisjoint(wanted | _ANY_OBJECT)
