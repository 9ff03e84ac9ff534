"""Phrases that show what a text does: courtesy, a question, a description of an answer, a yes or a no."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.words import content_words

_AGENT: Final = r"(?:(?:ai )?(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer)|it)"
_ACTS: Final = (
    r"summari[sz]|list|provid|describ|explain|return|show|confirm|ask|offer|inform|tell|giv|greet|identif|mention|stat"
    r"|respond|repl|acknowledg|includ|contain|recommend|suggest|draft|apologi[sz]|thank|guid|prompt|clarif|verif"
    r"|request"
    r"|advis|direct|escalat|transfer|hand|cit|nam|compar|calculat|indicat|present|welcom|encourag|point|redirect"
)
# "Thanks for waiting" is said to the user; "Thanks the user" describes the answer.
_THANKS: Final = r"thanks(?:\W*$|[,.!]| (?:for|to|a|so|very|again|in|and)\b)"
_DESCRIBED: Final = re.compile(
    r"^\W{0,20}(?:it (?:should|must|shall)\b|(?:(?:the |an? )?(?:ai )?(?:agent|assistant|bot|chatbot|copilot|response"
    r"|reply|answer)|the model)\b[^.!?]{0,30}?\b(?:should|must|will|shall|can|cannot|would|could|needs?|(?!is\b|was\b"
    r"|has\b)\w+s"
    r"|(?:is|has) (?:able|expected|supposed|required|to))\b)"
    r"|^\W{0,20}(?:an? |the )?(?!(?:your|our|my)\b)(?:[\w-]{1,60} ){0,2}?(?:summar(?:y|i[sz]ation)|list(?:ing)?"
    r"|overview|description|explanation"
    r"|confirmation|greeting|details?|information|recommendations?|draft|suggestions?|comparison|apology|answer|reply"
    r"|response|mention|acknowledge?ment|welcome|request|explanations?|instructions|steps|table|breakdown|outline"
    r"|analysis|question) (?:of|about|for|that|which|with|on|to|from|regarding|asking|listing|explaining)\b"
    rf"|^\W*(?:(?:polite|friendly|correct|clear|brief|short|concise)(?:ly)? )?(?!{_THANKS})"
    rf"(?:(?:{_ACTS})(?:s|es|ies|ing|ying)|should|must)\b"
    r"|^\W*summari[sz]e\b|^\W*(?:der|die|el|la|l')\s?(?:agente?|assistente?|antwort|respuesta|réponse)\b",
    re.IGNORECASE,
)
_STATED: Final = re.compile(
    rf"^\W*(?:the |an? )?(?:{_AGENT} )?(?:(?:should|must|will|shall|needs to|has to) )?(?:(?:clearly|correctly"
    rf"|politely) )?"
    r"(?:(?:state|say|confirm|mention|note|indicate|explain|repl(?:y|ie)|respond|answer|report)s?"
    r"|(?:tell|inform|advise)s? (?:the |an? )?(?:user|customer|guest|client|caller|person|them))"
    r"(?:ing)? that (?P<stated>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_ASKED: Final = re.compile(
    rf"^\W*(?:the |an? )?(?:{_AGENT} )?(?:(?:should|must|will|shall|needs to|has to) )?(?:politely )?"
    r"(?:asks?|asking|prompts?|requests?)\b(?: (?:the |an? )?(?:user|customer|guest|client|caller|person|them))?"
    r" ?(?:for|about|to (?:provide|give|specify|share|tell|enter)|which|what)?\b(?P<asked>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ASKING: Final = re.compile(
    r"\?|\b(?:please (?:provide|tell|give|share|send|enter|specify|confirm|choose|select|let me know)"
    r"|let me know (?:your"
    r"|the|which|what)|i(?:'ll| will)? need (?:your|the|to know)|(?:could|can|may|would) (?:you|i) (?:please )?(?:tell"
    r"|have|give|get|provide|share|specify)|(?:give|tell|send) me (?:your|the))",
    re.IGNORECASE,
)
_WANTS: Final = re.compile(
    r"\b(?:what(?:'s| is| are)?|which|when|where|who|how (?:many|much|old|long)|provide|tell me|give me|share|send me"
    r"|let me know|specify|enter|need|may i have|could i have|can i have|could i get|can i get)\b",
    re.IGNORECASE,
)
_PROMPT: Final = re.compile(
    r"\b(?:a|the) (?:prompt|question|request) (?:for|asking|about)\b"
    r"(?: (?:the |an? )?(?:user|customer|guest|client|caller|person|them))?"
    r"(?: to (?:provide|give|specify|share|tell|enter))?(?P<asked>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_PERSONS: Final = frozenset({"client", "guest", "only", "name's", "caller", "their", "his", "her", "they", "politely"})
_MORE: Final = re.compile(r"\b(?:and|then|but|or|before|while|instead|if)\b|,", re.IGNORECASE)
# What people give sincere thanks for; other objects, as in "thank you for nothing", are often ironic.
KINDNESS: Final = (
    r"(?:your|the|this|that|it|all|everything|being|reaching|contacting|calling|writing|asking|waiting|sharing|letting"
    r"|telling|choosing|using|providing|sending|taking|helping|bringing|coming|joining|visiting|staying|giving|checking"
    r"|pointing|understanding|confirming|getting|shopping|flying|banking|[\w-]*patience|[\w-]*feedback)\b"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[\n\r]+")
_COURTESY: Final = re.compile(
    r"^\W*(?:(?:hello|hi|hey|dear|good (?:morning|afternoon|evening|day))(?: there| [A-Z][a-z]+)?"
    rf"|thank(?:s| you)(?: (?:so|very) much)?(?: (?:for {KINDNESS}|in advance\b).{{0,60}})?"
    r"|you(?:'re| are) (?:very )?welcome"
    r"|(?:great|good|excellent|nice) (?:news|question|choice)|of course|sure(?: thing)?|certainly|absolutely|no problem"
    r"|congratulations|done|all set|okay|ok|perfect|got it|i understand"
    r"|(?:please )?(?:feel free to|do(?:n't| not) hesitate to|let (?:me|us) know if|just let me know)\b.{0,90}"
    r"|(?:if you|should you) (?:have|need|want)\b.{0,120}|(?:is|was) there (?:anything|something) (?:else"
    r"|more)\b.{0,60}"
    r"|(?:do you )?(?:need|want) anything else\b.{0,40}|anything else\b.{0,60}"
    r"|(?:how|what) (?:can|may|else can|could) i (?:help|assist|do)\b.{0,60}|can i help you\b.{0,40}"
    r"|(?:i )?hope (?:this|that) helps|enjoy\b.{0,40}|safe travels|see you\b.{0,30}|(?:best|kind) regards"
    r"|have a (?:great|nice|good|wonderful|lovely)\b.{0,40}|i(?:'m| am) (?:happy"
    r"|glad) to help"
    r"|(?:one|just a) (?:moment|second|minute)(?:,? please)?|please (?:wait|hold on|bear with me|stand by)\b.{0,40}"
    r"|let me (?:check|look|see|find|take a look|have a look)\b.{0,60}"
    r"|i(?:'m| am|'ll| will)(?: now| just| quickly)? (?:looking|look|check|checking|working on|get back|getting back"
    r"|transfer"
    r"|transferring|forward|forwarding|connect|connecting|escalat|escalating|pass(?:ing)? (?:this|you|it))\b.{0,90}"
    r")\W*$",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^\W*(?:(?P<yes>yes|yep|yeah|sure|of course|certainly|absolutely|definitely|correct|indeed|that's right)"
    r"|(?P<no>no|nope|unfortunately,? (?:no|not)|i'm afraid not|certainly not|absolutely not|of course not))"
    r"(?=\s*(?:[,.!;:]|\N{EM DASH}|-|$))",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(
    r"\b(?:for (?:example|instance)|e\.g\.|such as|something like|similar to)\b.*", re.IGNORECASE | re.DOTALL
)


def is_described(expected: str) -> bool:
    """Say whether an expectation describes the answer instead of quoting it."""
    return _DESCRIBED.search(expected) is not None


def stated_part(expected: str) -> str:
    """Return the statement that a description asks for, as in `The agent confirms that ...`; else an empty text."""
    found = _STATED.match(expected)
    return found["stated"] if found else ""


def asks_for(expected: str) -> bool:
    """Say whether an expectation describes a question to the user."""
    return is_described(expected) and (_ASKED.match(expected) or _PROMPT.search(expected)) is not None


def asked_part(expected: str) -> list[str]:
    """Return the words of what the agent must ask for; none if it is more than one thing, or has a condition."""
    found = _ASKED.match(expected) or _PROMPT.search(expected)
    if not found or not found["asked"].strip(" .") or _MORE.search(found["asked"]):
        return []
    return [word for word in content_words(found["asked"]) if word not in _PERSONS]


def is_asking(answer: str, asked: list[str]) -> bool:
    """Say whether a sentence of the answer asks for something, and mentions all words of `asked`."""
    for sentence in _SENTENCE.split(answer):
        if not _ASKING.search(sentence):
            continue
        if not asked or (_WANTS.search(sentence) and set(content_words(sentence)).issuperset(asked)):
            return True
    return False


def is_question(text: str) -> bool:
    """Say whether a text consists of questions only."""
    sentences = [part for part in _SENTENCE.split(text.strip()) if part]
    return bool(sentences) and all(sentence.endswith("?") for sentence in sentences)


def opening(text: str) -> str:
    """Return `yes` or `no` if a text starts with either, in any wording; else an empty text."""
    found = _OPENING.match(text)
    return (found.lastgroup or "") if found else ""


def without_courtesy(text: str) -> str:
    """Return a text without sentences of courtesy, such as greetings, thanks and requests to wait."""
    return " ".join(part for part in _SENTENCE.split(text.strip()) if part and not _COURTESY.match(part))


def without_examples(expected: str) -> str:
    """Return a description without its examples."""
    return _EXAMPLE.sub("", expected)
