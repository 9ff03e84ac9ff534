"""Statements that an answer takes back: jokes, sarcasm and corrections after the expected words."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.vocabulary import word_list
from evalmeta.engine.raters.rules.words import content_words, raw_words

_MIN_SAID: Final = 0.6
_JOKE: Final = (
    r"\b(?:(?:just|only|i'm|i was|was) )*(?:kidding|joking|jk|teasing you|messing with you|pulling your leg"
    r"|april fools?\b|psych\b|sike\b|gotcha\b)"
    r"|\b(?:was|is|'s|just|only) (?:just |only )?an? (?:joke|prank|bluff)\b"
)
_WITHDRAWAL: Final = (
    r"\b(?:scratch|strike|forget|ignore|disregard|delete|discard) (?:all (?:of )?)?(?:that|this|it|the above"
    r"|(?:what|everything|anything) i(?:'ve)?(?: just| have)? (?:said|told|wrote|written)\b[^.!?]{0,20}"
    r"|(?:my|the|this|that) (?:last |previous |first )?(?:message|answer|reply|sentence|statement))"
    r"(?:,? please)?\s*(?:$|[.!,;])"
    r"|\bi (?:take|took) (?:that|it|this|everything) back\b|\bi(?:'ve| have)? (?:just |only )?(?:made|making) (?:all )?"
    r"(?:of )?(?:that|this|it) up\b|\bmade[- ]up (?:answer|number|story)\b|\bi (?:just )?(?:lied|misspoke)\b"
    r"|\bi(?:'m| am| was) (?:just |only )?(?:lying|bluffing|making (?:that|this|it) up|wrong about (?:that|this|it))\b"
    r"|\b(?:do not|don't) (?:believe|trust|quote) (?:me|that|this|it|a word)\b|\bsaid (?:nobody|no one) ever\b"
)
# What takes a statement back only at the start of a sentence.
_START: Final = (
    r"(?:(?:wait|no|well|actually|hm+|oh|sorry|ha(?:[ ,]*ha)*)[ ,]+)*"
    r"(?:(?:that|this|it) (?:isn't|wasn't) (?:true|so|right|correct)\b|(?:that|this|it|none of (?:that|this|it))"
    r"(?:'s| is| was| were| are) (?:all |completely |simply |actually )?"
    r"(?:not (?:true|so|right|correct|the case)|untrue|false|wrong|incorrect|a lie|lies|nonsense|rubbish|fiction"
    r"|invented|fake)\b|(?:not|or not|not really|as if|yeah,? right|i wish|in your dreams|never ?mind|dream on|if only"
    r"|on second thoughts?|correction|i mean|i meant|my mistake|or (?:so|that's what) [^.!?]{1,40}(?:heard|say|said"
    r"|told|think))\b\s*(?:$|[.,!:;])"
    r"|no\s*(?:$|[.!]))"
)
_OTHER_LANGUAGES: Final = (
    r"\b(?:scherz|witz|quatsch|nur spaß|gelogen|(?:stimmt|gilt) (?:doch |so )?nicht|von wegen|vergessen sie das)\b"
    r"|\b(?:(?:es|era|una?) (?:una )?broma|bromeo|mentira|olvíd\w+|no es (?:cierto|verdad|así)|es falso)\b"
    r"|\bje (?:plaisant\w+|rigol\w+|blagu\w+)|\b(?:c'est|c'était) (?:faux|une blague)|\boubliez (?:ça|cela)"
    r"|\bn'importe quoi\b"
)
_RETRACTION: Final = re.compile(
    rf"{_JOKE}|{_WITHDRAWAL}|{_OTHER_LANGUAGES}"
    rf"|(?:(?<=[.!?;])|(?<=[.!?;]\s)|(?<=[-\N{{EN DASH}}\N{{EM DASH}}]\s)|(?<=\n)|(?<=\.\.\.)){_START}",
    re.IGNORECASE,
)


# Every match contains one of these words; most texts contain none, which saves the search.
_SIGNS: Final = frozenset(
    word_list(
        "kidding joking jk "
        "teasing messing pulling april psych sike gotcha joke prank bluff scratch strike forget ignore "
        "disregard delete discard take took made made-up making lied misspoke lying bluffing wrong believe trust quote "
        "nobody no not isn't wasn't untrue false incorrect lie lies nonsense rubbish fiction invented fake if "
        "right wish "
        "dreams never nevermind dream thought thoughts correction mean meant mistake heard say said told think none "
        "scherz witz quatsch spaß gelogen stimmt gilt wegen vergessen broma bromeo mentira cierto verdad "
        "así falso faux "
        "blague oubliez n'importe"
    )
)
# Faces that laugh, wink, smirk, roll their eyes or lie.
_IRONIC: Final = frozenset(
    "\N{FACE WITH TEARS OF JOY}\N{ROLLING ON THE FLOOR LAUGHING}\N{FACE WITH ROLLING EYES}\N{SMIRKING FACE}"
    "\N{FACE WITH STUCK-OUT TONGUE AND WINKING EYE}\N{CLOWN FACE}\N{LYING FACE}\N{UPSIDE-DOWN FACE}"
)
_STEMS: Final = ("olvíd", "plaisant", "rigol", "blagu")


def _find(text: str) -> re.Match[str] | None:
    has_sign = not _SIGNS.isdisjoint(raw_words(text)) or any(stem in text for stem in _STEMS)
    return _RETRACTION.search(text) if has_sign else None


def _is_ironic(text: str) -> bool:
    return not text.isascii() and not _IRONIC.isdisjoint(text)


def retraction(expected: str, actual: str) -> str:
    """Return the words with which an answer takes something back; empty if the expectation has such words too."""
    if _is_ironic(actual) and not _is_ironic(expected):
        return "".join(sorted(_IRONIC.intersection(actual)))
    found = _find(actual)
    return "" if not found or _find(expected) else found[0].strip(" .,!:;")


def is_taken_back(expected: str, actual: str) -> bool:
    """Say whether an answer first says what was expected, then takes it back, and adds nothing expected after that."""
    found = _find(actual)
    if not found:
        return False
    wanted = frozenset(content_words(expected))
    before, after = (frozenset(content_words(part)) for part in (actual[: found.start()], actual[found.end() :]))
    return len(wanted & before) >= _MIN_SAID * len(wanted) and not (wanted - before) & after
