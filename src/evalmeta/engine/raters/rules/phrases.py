"""Phrases that tell what a text is: courtesy, a question back, a description of an answer, a yes or a no.

The project's own embeddings: likeness of meaning instead of likeness of letters.

Names, weekdays and months: what a text talks about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, SupportsFloat, TypeAlias

from evalmeta.engine.raters.rules.vocabulary import MONTHS, WEEKDAYS, word_list
from evalmeta.engine.raters.rules.words import content_words, language, raw_words, words
from evalmeta.engine.subjects.imports import import_from
from evalmeta.errors import RaterError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path


_AGENT: Final = r"(?:(?:ai )?(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer)|it)"
_ACTS: Final = (
    r"summari[sz]|list|provid|describ|explain|return|show|confirm|ask|offer|inform|tell|giv|greet|identif|mention|stat"
    r"|respond|repl|acknowledg|includ|contain|recommend|suggest|draft|apologi[sz]|thank|guid|prompt|clarif|verif"
    r"|request"
    r"|advis|direct|escalat|transfer|hand|cit|nam|compar|calculat|indicat|present|welcom|encourag|point|redirect"
)
_DESCRIBED: Final = re.compile(
    r"^\W*(?:it (?:should|must|shall)\b|(?:(?:the |an? )?(?:ai )?(?:agent|assistant|bot|chatbot|copilot|response|reply"
    r"|answer)|the model)\b[^.!?]{0,30}?\b(?:should|must|will|shall|can|cannot|would|could|needs?|(?!is\b|was\b"
    r"|has\b)\w+s"
    r"|(?:is|has) (?:able|expected|supposed|required|to))\b)"
    r"|^\W*(?:an? |the )?(?:[\w-]+ ){0,2}?(?:summar(?:y|i[sz]ation)|list(?:ing)?|overview|description|explanation"
    r"|confirmation|greeting|details?|information|recommendations?|draft|suggestions?|comparison|apology|answer|reply"
    r"|response|mention|acknowledge?ment|welcome|request|explanations?|instructions|steps|table|breakdown|outline"
    r"|analysis|question) (?:of|about|for|that|which|with|on|to|from|regarding|asking|listing|explaining)\b"
    rf"|^\W*(?:(?:polite|friendly|correct|clear|brief|short|concise)(?:ly)? )?(?:(?:{_ACTS})(?:s|es|ies|ing|ying)"
    r"|should|must)\b"
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
_PLAIN_ACT: Final = frozenset(
    word_list(
        "the a an agent assistant bot response reply answer should must will greet greets greeting welcome welcomes "
        "thank "
        "thanks apologize apologizes apologise apologises apology to for user customer guest client visitor caller "
        "them "
        "politely warmly friendly polite warm short in way with contains contain is include includes feedback delay "
        "inconvenience wait their it"
    )
)
_GREETING: Final = re.compile(
    r"^\W*(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day)|welcome)\b", re.IGNORECASE
)
_DONE: Final = (
    (re.compile(r"\b(?:greets?|greeting|welcomes?)\b", re.IGNORECASE), _GREETING),
    (
        re.compile(r"\bthank(?:s|ing)? (?:the|them|him|her)\b", re.IGNORECASE),
        re.compile(r"\bthank(?:s| you)\b", re.IGNORECASE),
    ),
    (
        re.compile(r"\bapologi[sz](?:es?|ing)\b|\bapology\b", re.IGNORECASE),
        re.compile(r"\bapolog|\bsorry\b", re.IGNORECASE),
    ),
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[\n\r]+")
_COURTESY: Final = re.compile(
    r"^\W*(?:(?:hello|hi|hey|dear|good (?:morning|afternoon|evening|day))(?: there| [A-Z][a-z]+)?"
    r"|thank(?:s| you)(?: (?:so|very) much)?(?: (?:for|in advance)\b.{0,60})?|you(?:'re| are) (?:very )?welcome"
    r"|(?:great|good|excellent|nice) (?:news|question|choice)|of course|sure(?: thing)?|certainly|absolutely|no problem"
    r"|congratulations|done|all set|okay|ok|perfect|got it|i understand"
    r"|(?:please )?(?:feel free to|do(?:n't| not) hesitate to|let (?:me|us) know if|just let me know)\b.{0,90}"
    r"|(?:if you|should you) (?:have|need|want)\b.{0,120}|(?:is|was) there (?:anything|something) (?:else"
    r"|more)\b.{0,60}"
    r"|(?:do you )?(?:need|want) anything else\b.{0,40}|anything else\b.{0,60}"
    r"|(?:how|what) (?:can|may|else can|could) i (?:help|assist|do)\b.{0,60}|can i help you\b.{0,40}"
    r"|(?:i )?hope (?:this|that) helps|have a (?:great|nice|good|wonderful|lovely)\b.{0,40}|i(?:'m| am) (?:happy"
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
    """Says whether an expectation describes the answer instead of wording it."""
    return _DESCRIBED.search(expected) is not None


def stated_part(expected: str) -> str:
    """Gives what a description wants to be said, as in `The agent confirms that ...`; empty when it is no such."""
    found = _STATED.match(expected)
    return found["stated"] if found else ""


def asks_for(expected: str) -> bool:
    """Says whether an expectation describes a question to the user."""
    return is_described(expected) and (_ASKED.match(expected) or _PROMPT.search(expected)) is not None


def asked_part(expected: str) -> list[str]:
    """Gives the words of one thing that is to be asked for; nothing when it is more than one, or a condition."""
    found = _ASKED.match(expected) or _PROMPT.search(expected)
    if not found or not found["asked"].strip(" .") or _MORE.search(found["asked"]):
        return []
    return [word for word in content_words(found["asked"]) if word not in _PERSONS]


def is_asking(answer: str, asked: list[str]) -> bool:
    """Says whether a sentence of the answer asks for something; for what is `asked`, when that is given."""
    for sentence in _SENTENCE.split(answer):
        if not _ASKING.search(sentence):
            continue
        if not asked or (_WANTS.search(sentence) and set(content_words(sentence)).issuperset(asked)):
            return True
    return False


def does_act(expected: str, answer: str) -> bool:
    """Says whether an answer does what a description names and nothing more: greet, thank, apologise."""
    if not is_described(expected) or any(word not in _PLAIN_ACT for word in raw_words(expected)):
        return False
    return any(wanted.search(expected) and act.search(answer) for wanted, act in _DONE)


def is_question(text: str) -> bool:
    """Says whether a text only asks back."""
    sentences = [part for part in _SENTENCE.split(text.strip()) if part]
    return bool(sentences) and all(sentence.endswith("?") for sentence in sentences)


def opening(text: str) -> str:
    """Gives the `yes` or `no` that a text opens with, in whatever words; empty when it opens otherwise."""
    found = _OPENING.match(text)
    return (found.lastgroup or "") if found else ""


def without_courtesy(text: str) -> str:
    """Takes out whole sentences that say nothing of the matter, such as greetings, thanks and asking to wait."""
    return " ".join(part for part in _SENTENCE.split(text.strip()) if part and not _COURTESY.match(part))


def without_examples(expected: str) -> str:
    """Takes out of a description what it gives as an example only."""
    return _EXAMPLE.sub("", expected)


Cosine: TypeAlias = Callable[[str, str], float]
_Embed: TypeAlias = Callable[[list[str]], object]


_PAIR: Final = 2


def bind_embed(target: str, *, root: Path) -> Cosine:
    """Imports `module:function`, which takes a list of texts and gives a vector of numbers for each, of one length.

    Raises:
        SettingsError: there is no such function.
    """
    module_name, _, path = target.partition(":")
    found: object = import_from(root, module_name, target=target)
    for name in path.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        raise SettingsError(
            f"the rater's embed {target!r} is no function",
            actions=(f"Define {path}(texts) in {module_name}, or correct embed in evalmeta.toml.",),
        )
    return embedded_cosine(found, target=target)


def embedded_cosine(embed: _Embed, *, target: str) -> Cosine:
    """Makes a cosine of two texts, -1 to 1, out of a function that embeds texts.

    Raises:
        RaterError: on a call, when the function fails or what it gives are no two vectors.
    """

    def cosine(expected: str, actual: str) -> float:
        left, right = _vectors(embed, [expected, actual], target)
        norm = math.hypot(*left) * math.hypot(*right)
        return sum(one * other for one, other in zip(left, right, strict=True)) / norm if norm else 0.0

    return cosine


def _vectors(embed: _Embed, texts: list[str], target: str) -> list[list[float]]:
    try:
        vectors = [[_number(number) for number in _items(vector)] for vector in _items(embed(texts))]
    except Exception as error:
        raise _failure(target, f"{type(error).__name__}: {error}") from error
    if len(vectors) != _PAIR:
        raise _failure(target, f"it gave {len(vectors)} vectors for 2 texts")
    if len(vectors[0]) != len(vectors[1]) or not vectors[0]:
        raise _failure(target, f"its vectors have {len(vectors[0])} and {len(vectors[1])} numbers")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise _failure(target, "its vectors hold numbers that are not finite")
    return vectors


def _number(value: object) -> float:
    if not isinstance(value, SupportsFloat):
        raise TypeError(f"{type(value).__name__} is no number")
    return float(value)


def _items(value: object) -> Iterable[object]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise TypeError(f"{type(value).__name__} is no sequence of numbers")
    return value


def _failure(target: str, reason: str) -> RaterError:
    return RaterError(
        f"the rater's embed {target!r} cannot be used: {reason}",
        actions=("Let it give one vector of finite numbers for each text, all of one length.",),
    )


Name = tuple[str, ...]


_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_SEGMENT: Final = re.compile(r"[.!?:;]\s+|[\n\r]+|[\"()]")
_TITLE: Final = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St)\.\s?")
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w'&-]*|,")
_DAY_NAMES: Final = frozenset({*MONTHS, *WEEKDAYS})
_NO_NAMES: Final = frozenset(
    word_list(
        "i i'm i'll i've i'd a an the this that these those your our my his her its their you we he she it they is are "
        "was were to of in on at for from with by and or but if as no not yes ok okay sure hello hi hey dear thanks "
        "thank please sorry here there what when where which who how why can could should will would do does did has "
        "have had may might must let mr mrs ms dr good great it's that's there's you'll you're we'll we're "
        "unfortunately "
        "currently however also then all every each some only after before until since because so faq id pdf url api "
        "ai "
        "am pm usd eur gbp"
    )
)
_ABBREVIATIONS: Final = {"us": "united states", "usa": "united states", "uk": "united kingdom", "nyc": "new york"}
_DAY_WORD: Final = re.compile(rf"\b(?:{'|'.join(sorted(_DAY_NAMES, key=len, reverse=True))})\b\.?", re.IGNORECASE)
_RANGE: Final = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)})\s?(?:to|through|thru|until|till|bis|a|à|au|-"
    rf"|\N{{EN DASH}})\s?(?:{'|'.join(WEEKDAYS)})\b"
    r"|\bweek(?:end|day)s?\b|\bdaily\b|\b(?:every|each|all) (?:day|week)",
    re.IGNORECASE,
)
_SINCE: Final = ("in", "of", "since", "until", "en")
_LETTERS: Final = 2
_BESIDE_DIGIT: Final = re.compile(r"\s?\d")
_AFTER_DIGIT: Final = re.compile(r"\d(?:st|nd|rd|th|\.)?\s(?:of |de )?$")


def find_names(text: str) -> tuple[Name, ...]:
    """Lists names as words in lower case: capitalised words inside sentences that follow one another, e-mail addresses.

    A sentence's first word counts only after a title or when another capitalised one
    follows it. Weekdays and months are no names.
    """
    names: list[Name] = [(address.lower(),) for address in _EMAIL.findall(text)]
    # What follows a title is a name wherever it stands; a small letter in front makes it no first word.
    plain = _TITLE.sub(", ", _EMAIL.sub(" ", text))
    for sentence in _SEGMENT.split(plain):
        names.extend(_names_in(_NAME_WORD.findall(sentence)))
    return tuple(dict.fromkeys(names))


def _names_in(found: list[str]) -> list[Name]:
    names: list[list[str]] = [[]]
    for index, word in enumerate(found):
        follows = index + 1 < len(found) and _is_capital(found[index + 1])
        if _is_capital(word) and (index or follows):
            names[-1].append(word.removesuffix("'s").lower())
        else:
            names.append([])
    return [tuple(name) for name in names if name]


def _is_capital(word: str) -> bool:
    plain = word.removesuffix("'s").lower()
    return word[0].isupper() and plain not in _NO_NAMES and plain not in _DAY_NAMES


def differing_names(expected: str, actual: str, *, known: str) -> tuple[list[Name], list[Name]]:
    """Lists names that are missing in the actual text, and names of its own that could stand for them.

    A name of which a part is said counts as said, unless that part stands beside a strange
    word, as in `Mario Lopez` for `Maria Lopez`. Words of `known` are nobody's own.
    """
    said, told = frozenset(words(actual)), frozenset(words(expected))
    nobodys = told.union(words(known))
    extra = [name for name in find_names(actual) if not nobodys.issuperset(_parts(name))]
    extra = [name for name in extra if not _is_short_for(name, told)]
    strange = frozenset(part for name in extra for part in _parts(name))
    missing = [name for name in find_names(expected) if _is_missing(name, said, strange)]
    missing = [name for name in missing if not any(_may_abbreviate(name, other) for other in extra)]
    return missing, extra


def _may_abbreviate(one: Name, other: Name) -> bool:
    """Says whether one of two names may be letters of the other, as EU, TN and VP are of longer ones."""
    short, long = sorted(("".join(one), "".join(other)), key=len)
    initials = "".join(word[0] for word in max(one, other, key=lambda name: len("".join(name))))
    return short == initials or (len(short) == _LETTERS and long[0] == short[0] and short[1] in long[1:])


def _is_missing(name: Name, said: frozenset[str], strange: frozenset[str]) -> bool:
    parts = _parts(name)
    if said.issuperset(parts) or _is_long_for(name, said):
        return False
    shared = parts & said
    return not shared or not shared.isdisjoint(strange)


def _parts(name: Name) -> frozenset[str]:
    return frozenset(part for word in name for part in words(word))


def _is_short_for(name: Name, told: frozenset[str]) -> bool:
    return all(word in _ABBREVIATIONS and told.issuperset(words(_ABBREVIATIONS[word])) for word in name)


def _is_long_for(name: Name, said: frozenset[str]) -> bool:
    long = [words(_ABBREVIATIONS[word]) for word in name if word in _ABBREVIATIONS]
    short = {short for short, full in _ABBREVIATIONS.items() if full == " ".join(name)}
    short.add("".join(word[0] for word in name) if len(name) > 1 else "")
    return any(said.issuperset(parts) for parts in long) or not said.isdisjoint(short)


def find_days(text: str) -> dict[str, str]:
    """Gives the weekdays and the months that stand without a day, by one key for all languages."""
    if _DAY_NAMES.isdisjoint(raw_words(text.replace("-", " "))):
        return {}
    tongue = language(text)
    days: dict[str, str] = {}
    for found in _DAY_WORD.finditer(text):
        word = found[0].rstrip(".")
        if word in WEEKDAYS or word.lower() in WEEKDAYS:
            days[f"day {WEEKDAYS[word.lower()]}"] = word
        elif _is_month(found, word, tongue):
            days[f"month {MONTHS[word.lower()]}"] = word
    return days


def _is_month(found: re.Match[str], word: str, tongue: str) -> bool:
    before = found.string[max(0, found.start() - 12) : found.start()]
    if _BESIDE_DIGIT.match(found.string, found.end()) or _AFTER_DIGIT.search(before):
        return False
    if word.lower() in {"may", "march", "mar", "mars", "mai", "dec", "sep"}:
        return word[0].isupper() and before.rstrip().lower().endswith(_SINCE)
    return word[0].isupper() or tongue in {"es", "fr"}


def has_range_of_days(text: str) -> bool:
    """Says whether weekdays stand for others that are not named, as in `Monday to Friday` or `at weekends`."""
    return _RANGE.search(text) is not None
