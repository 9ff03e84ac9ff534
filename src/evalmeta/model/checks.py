"""The checks of test specs, such as `contains: Paris`: one row per check, from which everything else derives.

A row gives a check its key in test specs and its column in tables (`formats/short_forms.py`, `formats/case_files.py`),
its part of the JSON Schema (`formats/short_forms.py`), its row in docs/specs.md, its scorer
(`engine/scorers/__init__.py`), what definitions hold of it, and what to write instead of other tools' words.
Installed packages add rows (`plugins.all_checks`).

A check becomes an expectation with a label, such as `contains "Paris"`. The text that it expects is its expectedValue;
its other settings are its terms.

Texts are compared without differences that a reader does not see. Regular expressions cannot hang a run. The engine is
the crate `regex` of Rust, which pydantic uses: its time is linear in the text, and the size of a compiled pattern is
limited (docs.rs/regex, "Untrusted input"). It has no look-around and no backreferences.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta import limits
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.expectations import ACTIONS, TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic_core import SchemaValidator

    from evalmeta.model.json_value import JsonValue


Shape = Literal[
    "text",
    "value",
    "texts",
    "any text",
    "patterns",
    "criteria",
    "functions",
    "json",
    "maximum",
    "count",
    "actions",
    "action patterns",
    "names",
    "state",
]
"""What the value of a check is.

text: one text. value: one text, or a list or mapping that an answer in JSON must equal. texts: a text or a list, of
which each must hold. any text: a list of which one must hold. patterns: regular expressions. criteria: what a language
model judges. functions: `module:function`. json: a mapping with a path and an operator, or a list. maximum: a whole
number above 0. count: a whole number, also 0. actions: a name or a call with its input, or a list of them. action
patterns: names in which `*` and `?` stand for other characters. names: a name or
a list of names. state: a mapping of paths to values and matchers.
"""
LATENCY: Final = "output_latency_milliseconds"


@dataclass(frozen=True, slots=True)
class Check:
    """A check of test specs.

    Attributes:
        name: the key in test specs.
        shape: what its value is.
        says: what its value is, in the JSON Schema.
        passes: when the check passes, in the documentation (Markdown).
        example: a value, as YAML.
        test: whether an answer, the first argument, is as a text expects; for checks that compare texts.
        reasons: what the explanation says of an answer that passes the test, and of one that fails, such as
            `contains` and `does not contain`; the expected text follows.
        scorer: the scorer of a check without a test: `module:function`, a function of the expectation and the exchange
            that returns a TestResult; empty if the scorer needs settings of the run (`engine/scorers/__init__.py`).
        has_exact: whether the scorer judges the term `exact`; a test always gets texts without typographic variants
            unless it is set.
        expectation: the name of the expectation that it becomes, if that is not the check's name.
        operator: the operator of the string_comparison that means the same in a definition; empty if there is none.
        rarity: whether the name is `unique` to evalmeta, `usual` in tests of agents, or `common` in other files, too:
            how much it says about whether a file is a test.
        other_names: what other tools call it.
        hint: what to write instead of the other names.
    """

    name: str
    shape: Shape
    says: str
    passes: str
    example: str
    test: Callable[[str, str], bool] | None = None
    reasons: tuple[str, str] = ("passes for", "does not pass for")
    scorer: str = ""
    has_exact: bool = False
    expectation: str = ""
    operator: str = ""
    rarity: Literal["unique", "usual", "common"] = "common"
    other_names: tuple[str, ...] = ()
    hint: str = ""

    @property
    def takes_exact(self) -> bool:
        """Return whether it compares texts, unchanged if the term `exact` is set."""
        return self.has_exact or self.test is not None

    @property
    def hints(self) -> Mapping[str, str]:
        """Return what to write instead of the words of other tools."""
        return dict.fromkeys(self.other_names, self.hint or f"Use {self.name}.")


_SCORERS: Final = "evalmeta.engine.scorers"
CHECKS: Final = {
    check.name: check
    for check in (
        Check(
            "topic",
            "text",
            "The topic that the agent must choose.",
            "the agent chose this topic",
            "Orders",
            expectation=TOPIC,
            rarity="usual",
        ),
        Check(
            "actions",
            "actions",
            "The actions that the agent must take, in their order, by name or with their input; [] for none.",
            "the agent took these actions (called these tools) in this order, "
            "with these [arguments](#arguments-of-actions); `[]` expects that it took none",
            "[find_order]",
            expectation=ACTIONS,
            rarity="usual",
            other_names=("tools", "expected_tools", "tool_calls", "expectedTools"),
        ),
        Check(
            "not_actions",
            "action patterns",
            "Actions that the agent must not take: names in which * and ? stand for other characters.",
            "the agent took no action whose name matches; `*` matches any text, and `?` one character",
            '["Delete_*"]',
            scorer=f"{_SCORERS}.actions:score_not_actions",
            rarity="unique",
            other_names=("not_tools", "forbidden_tools", "forbidden_actions"),
        ),
        Check(
            "max_actions",
            "count",
            "The maximum of actions that the agent takes.",
            "the agent took at most this many actions",
            "5",
            scorer=f"{_SCORERS}.actions:score_max_actions",
            rarity="unique",
            other_names=("max_tool_calls", "max_calls", "max_steps"),
        ),
        Check(
            "handoffs",
            "names",
            "The agents or topics that the conversation goes through, in their order; [] for none.",
            "the conversation so far went through these [agents or topics](#handoffs), in this order",
            "[Triage, Orders]",
            scorer=f"{_SCORERS}.actions:score_handoffs",
            rarity="unique",
            other_names=("handoff", "agents", "agent_path", "expected_agents"),
        ),
        Check(
            "state",
            "state",
            "Values, or matchers, in the state of the agent's session after the turn, by their paths.",
            "the [state of the agent's session](#state-of-the-session) has these values after the turn",
            "{order.status: shipped}",
            other_names=("session_state", "final_state", "expected_state", "final_session_state", "finalSessionState"),
        ),
        Check(
            "contains",
            "texts",
            "Texts that the answer must contain.",
            "the answer contains the [text](#how-texts-are-compared); with a list, all its texts",
            "Paris",
            test=str.__contains__,
            reasons=("contains", "does not contain"),
            operator="contains",
            rarity="unique",
        ),
        Check(
            "contains_any",
            "any text",
            "Texts of which the answer must contain at least one.",
            "the answer contains at least one text of a list",
            "[Paris, PARIS]",
            scorer=f"{_SCORERS}.checks:score_contains_any",
            has_exact=True,
            rarity="unique",
        ),
        Check(
            "not_contains",
            "texts",
            "Texts that the answer must not contain.",
            "the answer does not contain the text, neither in upper nor in lower case; with a list, none of its texts",
            "sorry",
            scorer=f"{_SCORERS}.checks:score_not_contains",
            has_exact=True,
            rarity="unique",
        ),
        Check(
            "equals",
            "value",
            "The whole answer: a text, or a list or mapping for an answer in JSON.",
            "the whole answer is this text; with a list or mapping, the answer is "
            "[JSON](#answers-in-json) with this value",
            "Paris",
            test=str.__eq__,
            reasons=("equals", "does not equal"),
            operator="equals",
            rarity="usual",
        ),
        Check(
            "starts_with",
            "texts",
            "How the answer must begin.",
            "the answer begins with the text",
            "The capital",
            test=str.startswith,
            reasons=("starts with", "does not start with"),
            operator="startswith",
            rarity="unique",
        ),
        Check(
            "ends_with",
            "texts",
            "How the answer must end.",
            "the answer ends with the text",
            "Paris.",
            test=str.endswith,
            reasons=("ends with", "does not end with"),
            operator="endswith",
            rarity="unique",
        ),
        Check(
            "matches",
            "patterns",
            "A regular expression (Rust's crate regex) that must match a part of the answer.",
            "a part of the answer matches the [regular expression](#regular-expressions); with a list, all of them do",
            "(?i)paris",
            scorer=f"{_SCORERS}.checks:score_matches",
            rarity="usual",
            other_names=("regex", "pattern", "match"),
        ),
        Check(
            "json",
            "json",
            "A value in an answer that is JSON.",
            "the answer is JSON, and a [value in it](#answers-in-json) is as expected, "
            "or is valid against a JSON Schema",
            "{path: $.city, equals: Paris}",
        ),
        Check(
            "rubric",
            "criteria",
            "A criterion in words that a language model judges.",
            "a language model finds that the answer meets a [criterion in words](#rubrics); with a list, all of them",
            "The answer is polite.",
            rarity="unique",
            other_names=("llm-rubric", "llm_rubric", "judge", "criteria", "guidelines"),
        ),
        Check(
            "function",
            "functions",
            "A Python function that checks the answer: module:function.",
            "a [Python function](#functions) accepts the answer",
            "checks:is_polite",
            other_names=("python", "javascript", "script"),
            hint="Use function: module:name.",
        ),
        Check(
            "latency_ms",
            "maximum",
            "The maximum of milliseconds until the answer.",
            "the answer took at most this many milliseconds",
            "2000",
            expectation=LATENCY,
            rarity="usual",
            other_names=("latency", "max_latency_ms", "max_duration", "timeout"),
        ),
        Check(
            "first_token_ms",
            "maximum",
            "The maximum of milliseconds until the first token of a streamed answer.",
            "the first token of a [streamed](subjects.md#openai) answer arrived within this many milliseconds",
            "500",
            scorer=f"{_SCORERS}.checks:score_first_token",
            rarity="usual",
            other_names=("first_token", "ttft", "time_to_first_token", "max_first_token_ms"),
        ),
        Check(
            "tokens",
            "maximum",
            "The maximum of tokens that the answer uses.",
            "the answer used at most this many tokens",
            "500",
            scorer=f"{_SCORERS}.checks:score_tokens",
            other_names=("cost", "max_tokens"),
            hint="Use tokens for a maximum of tokens.",
        ),
    )
}
"""The checks of evalmeta by name, in the order of the JSON Schema."""
OWN_CHECKS: Final = frozenset(name for name, check in CHECKS.items() if not check.expectation)
"""The checks whose expectations definitions do not know; `comparison_of` says which of them they can hold."""

UNJUDGED: Final = "unjudged"
"""The expectation of what only another system can judge: its label says what, and it is always undecided."""

WHOLE_ANSWERS: Final = frozenset(name for name, check in CHECKS.items() if check.test is str.__eq__)
"""The checks whose value is the whole answer, so that another answer can replace it."""


_NUMBER_OPERATORS: Final = {
    "greater_than": "greater_than",
    "at_least": "greater_than_or_equal",
    "less_than": "less_than",
    "at_most": "less_than_or_equal",
}
VALUE_OPERATORS: Final = ("equals", "contains", *_NUMBER_OPERATORS)
"""The operators that compare a value of JSON."""
JSON_OPERATORS: Final = (*VALUE_OPERATORS, "schema")
"""The operators of the check `json`."""

_OUTCOME: Final = "$.generatedData.outcome"
_WHOLE: Final = "$.generatedData"


def comparison_of(expectation: Expectation, checks: Mapping[str, Check] = CHECKS) -> Expectation | None:
    """Return the comparison of a definition that judges the same as a check; None if definitions have none."""
    check = checks.get(expectation.name)
    if check and check.operator:
        return comparison_with(expectation, check.operator, _OUTCOME, expectation.expected_value or "")
    operator, expected = expectation.terms.get("operator"), expectation.terms.get("expected")
    if expectation.name != "json" or not isinstance(operator, str) or expected is None:
        return None
    if operator == "schema" or expectation.terms.get("fenced"):
        return None
    reference = reference_of(str(expectation.terms["path"]))
    if operator in _NUMBER_OPERATORS or (operator == "equals" and _is_number(expected)):
        known = _NUMBER_OPERATORS.get(operator, operator)
        return _comparison(expectation, "numeric_comparison", known, reference, _text(expected))
    return comparison_with(expectation, operator, reference, _text(expected))


def reference_of(path: str) -> str:
    """Return the reference for a path into an answer that is JSON; one into `$.generatedData` is returned unchanged."""
    path = path.strip()
    return path if path.startswith((f"{_WHOLE}.", f"{_WHOLE}[")) else f"{_OUTCOME}{path.removeprefix('$')}"


def comparison_with(check: Expectation, operator: str, reference: str, expected: str) -> Expectation:
    """Return a string_comparison with the label of a check."""
    return _comparison(check, "string_comparison", operator, reference, expected)


def _comparison(check: Expectation, name: str, operator: str, reference: str, expected: str) -> Expectation:
    parameters = (
        Parameter("operator", operator, is_reference=False),
        Parameter("actual", reference, is_reference=True),
        Parameter("expected", expected, is_reference=False),
    )
    return Expectation(name, label=check.label, parameters=parameters)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


# Normalising a long run of combining marks takes quadratic time, so texts are normalised in pieces. A piece ends before
# a base character if there is one; the excluded characters would combine with the one before them.
_PIECE: Final = re.compile(r"(?s:.{1,1000}(?=[^\W\u1160-\u11ff\uff9e\uff9f\uffa0-\uffdc]|\s|\Z)|.{1,1000})")
_SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_BLANKS: Final = re.compile(r"\s+")
# Letters and a symbol of Unicode that are drawn as nothing: Hangul fillers and the empty pattern of Braille.
_FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def normalised(text: str, form: Literal["NFC", "NFKC"]) -> str:
    """Return a text in a normal form of Unicode."""
    return "".join([unicodedata.normalize(form, piece) for piece in _PIECE.findall(text)])


def plain_text(text: str) -> str:
    """Return a text in NFC with straight quotes, hyphens for dashes, and one space for any white space."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    return _BLANKS.sub(" ", normalised(text, "NFC").translate(_SIGNS))


def has_variants(text: str) -> bool:
    """Return whether other texts can have the same `plain_text`, as all with blanks, quotes or hyphens do."""
    return not text.isascii() or any(sign in "'\"-" or sign.isspace() for sign in text)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: white space, signs of no width, controls, and marks without a letter."""
    return not any(unicodedata.category(sign)[0] not in "CMZ" and sign not in _FILLERS for sign in text)


class PatternSyntax(ValueError):
    """The text is not a supported regular expression; the message says why."""


class Pattern:
    """A regular expression; raises PatternSyntax if the text is not a supported one."""

    def __init__(self, text: str) -> None:
        if len(text) > limits.MAX_PATTERN_CHARS:
            raise PatternSyntax(f"it has {len(text):,} characters; at most {limits.MAX_PATTERN_CHARS:,} are allowed")
        self._text = text
        self._validator = _validator(text)

    def is_in(self, text: str) -> bool:
        """Return whether a part of the text matches."""
        return self._validator.isinstance_python(text)

    @property
    def accepts_everything(self) -> bool:
        """Return whether no text is known that the pattern does not match; `.*`, `^` and `a|` are examples.

        It is tried with texts of many kinds, and with the pattern's own letters, so that `^[^#]*$` is not one.
        """
        letters = "".join(filter(str.isalnum, self._text))
        return all(map(self.is_in, (*_KINDS_OF_TEXTS, self._text, letters, letters * 2)))


_KINDS_OF_TEXTS: Final = (
    *("", " ", "\n", "a", "Z", "7", "a b", "a\n\nb"),
    "".join(map(chr, range(32, 127))),
    "\u00e9\u00df\u0416\u4e2d\u3042\u05d0\u0639\u0e01\U0001f600\u20ac",
    "x" * 20_000,
)


@lru_cache(maxsize=256)
def _validator(text: str) -> SchemaValidator:
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex", strict=True))
    except SchemaError as error:
        *_, last = str(error).splitlines()
        raise PatternSyntax(last.strip().removeprefix("error: ").removeprefix("SchemaError: ")) from None
