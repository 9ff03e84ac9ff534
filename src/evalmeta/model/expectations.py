"""The kinds of expectations and scorers, one row per kind, and action lists such as `['A', 'B']`.

Sources: Metadata API Developer Guide, AiEvaluationDefinition (names and operators); Testing API Developer Guide,
"Custom Evaluation Criteria" (the operators of each comparison). The aliases are the names in test results. The scorers
are those that the sf CLI knows for Agentforce Studio.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable


Need = Literal["value", "parameters", "nothing"]


@dataclass(frozen=True, slots=True)
class ExpectationKind:
    """One kind of expectation."""

    name: str  # the name in the metadata reference
    needs: Need  # what the definition must supply: an expectedValue, parameters, or nothing
    label: str  # the name in reports
    aliases: tuple[str, ...] = ()  # later names
    subjects: tuple[str, ...] = ()  # the subject types that it supports as a scorer; empty if it is not a scorer
    is_expectation: bool = True  # whether an AiEvaluationDefinition may use it
    needs_history: bool = False  # whether it judges a conversation


TOPIC: Final = "topic_sequence_match"
ACTIONS: Final = "action_sequence_match"
OUTCOME: Final = "bot_response_rating"
PROMPT: Final = "judge_prompt"
"""An expectation that has the prompt of its judge among its terms; only scripts make one."""

_AGENT: Final = ("AGENT",)
_BOTH: Final = ("AGENT", "PROMPT")
_KINDS: Final = (
    ExpectationKind(TOPIC, "value", "Topic", ("topic_assertion",), _AGENT),
    ExpectationKind(ACTIONS, "value", "Actions", ("actions_assertion",), _AGENT),
    ExpectationKind(OUTCOME, "value", "Response", ("output_validation",), _AGENT),
    ExpectationKind("coherence", "nothing", "Coherence", (), _BOTH),
    ExpectationKind("completeness", "nothing", "Completeness", (), _BOTH),
    ExpectationKind("conciseness", "nothing", "Conciseness", (), _BOTH),
    ExpectationKind("instruction_following", "nothing", "Instruction following", ("instruction_adherence",)),
    ExpectationKind("factuality", "nothing", "Factuality", (), _BOTH),
    ExpectationKind("output_latency_milliseconds", "nothing", "Latency", (), _AGENT),
    ExpectationKind("string_comparison", "parameters", "String comparison"),
    ExpectationKind("numeric_comparison", "parameters", "Numeric comparison"),
    ExpectationKind("agent_handoff_match", "value", "Handoff", (), _AGENT, is_expectation=False),
    ExpectationKind("response_match", "value", "Response match", (), _BOTH, is_expectation=False),
    ExpectationKind(
        "task_resolution", "nothing", "Task resolution", (), _AGENT, is_expectation=False, needs_history=True
    ),
)
_EXPECTATIONS: Final = {name: kind for kind in _KINDS if kind.is_expectation for name in (kind.name, *kind.aliases)}
_SCORERS: Final = {kind.name: kind for kind in _KINDS if kind.subjects}
_BY_NAME: Final = _SCORERS | _EXPECTATIONS


EVALUATORS: Final = (
    *("planner_topic_assertion", "planner_actions_assertion", "bot_response_rating"),
    *("string_assertion", "numeric_assertion", "json_assertion", "list_assertion"),
    *("text_alignment", "hallucination_detection", "citation_recall", "answer_faithfulness"),
    *("instruction_adherence", "task_resolution", "text_quality", "rag_quality", "custom_aspect_critique"),
    *("agent_handoff_assertion", "conversation_topic_assertion", "conversation_actions_assertion"),
)
"""The evaluators of `sf agent test run-eval`, those that the sf CLI knows first."""
STRING_OPERATORS: Final = ("equals", "contains", "startswith", "endswith")
NUMERIC_OPERATORS: Final = ("equals", "greater_than_or_equal", "greater_than", "less_than", "less_than_or_equal")
OPERATORS: Final = {"string_comparison": STRING_OPERATORS, "numeric_comparison": NUMERIC_OPERATORS}
PARAMETER_NAMES: Final = ("operator", "actual", "expected")

# Operators of programming languages and test tools, with the documented operator of the same meaning.
_SAME_OPERATORS: Final = {
    **dict.fromkeys(("=", "==", "===", "eq", "is", "equal", "equal_to"), "equals"),
    **dict.fromkeys((">", "gt", "greater", "more_than"), "greater_than"),
    **dict.fromkeys((">=", "=>", "≥", "gte", "ge", "at_least"), "greater_than_or_equal"),
    **dict.fromkeys(("<", "lt", "less", "fewer_than"), "less_than"),
    **dict.fromkeys(("<=", "=<", "≤", "lte", "le", "at_most"), "less_than_or_equal"),
    **dict.fromkeys(("include", "includes"), "contains"),
    **dict.fromkeys(("starts_with", "begins_with"), "startswith"),
    "ends_with": "endswith",
}
_NEGATION: Final = re.compile(r"!|<>|≠|.*(?:not|n't|snt)|unequal|neq?$|nin$", re.IGNORECASE)


def suggest_operator(comparison: str, operator: str) -> str:
    """Return a sentence with the operator of a comparison that was probably meant, or with all its operators."""
    operators = OPERATORS[comparison]
    if _NEGATION.match(operator):
        # The nearest operator would mean the opposite.
        return f"Write what is expected instead: no operator negates. Known: {', '.join(operators)}."
    lowered = operator.lower()
    same = _SAME_OPERATORS.get(lowered, lowered)
    if same in operators:
        return f"Did you mean {same}?"
    other = next((name for name, theirs in OPERATORS.items() if same in theirs), None)
    if other:
        return f"Use {other} with {same}, or one of {', '.join(operators)}."
    close = get_close_matches(lowered[:80], operators, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(operators)}."


def expectation_kind(name: str) -> ExpectationKind | None:
    """Return the kind of an expectation or scorer by name or alias, None for an unknown name."""
    return _BY_NAME.get(name)


def scorer_kind(name: str) -> ExpectationKind | None:
    """Return the kind of a standard scorer, None for any other name."""
    return _SCORERS.get(name)


def canonical_name(name: str) -> str:
    """Return the name in the metadata reference of a name or alias; an unknown name is returned unchanged."""
    kind = _BY_NAME.get(name)
    return kind.name if kind else name


def known_names() -> tuple[str, ...]:
    """Return every name that is valid in an AiEvaluationDefinition, aliases last."""
    return tuple(sorted(_EXPECTATIONS, key=lambda name: (_EXPECTATIONS[name].name != name, name)))


METRICS: Final = tuple(name for name in known_names() if _EXPECTATIONS[name].needs == "nothing")
"""The expectations that need neither a value nor parameters."""


def scorer_names(subject_type: str) -> tuple[str, ...]:
    """Return the standard scorers that support a subject type."""
    return tuple(sorted(name for name, kind in _SCORERS.items() if subject_type in kind.subjects))


# Possessive quantifiers, because a list may have megabytes.
_ITEM: Final = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_ITEMS: Final = re.compile(_ITEM, re.DOTALL)
_LIST: Final = re.compile(rf"\[\s*+(?:(?:{_ITEM})(?:\s*+,\s*+(?:{_ITEM}))*+\s*+(?:,\s*+)?)?\]", re.DOTALL)


@lru_cache(maxsize=1_024)
def parse_actions(text: str) -> tuple[str, ...] | None:
    """Parse an action list; return None if the text is not one.

    Accepts every spelling seen in files and results: single or double quotes, blanks and line breaks between the
    items, HTML-escaped quotes.
    """
    listed = _unescape(text)
    if listed is None:
        return None
    return tuple(unquote(item[0]).strip() for item in _ITEMS.finditer(listed))


def is_action_list(text: str) -> bool:
    """Return whether a text is an action list; unlike `parse_actions`, nothing is cached, because it may be large."""
    return _unescape(text) is not None


def render_actions(names: Iterable[str]) -> str:
    """Return an action list as the metadata reference writes it: `['A', 'B']`, `[]` if it is empty."""
    escaped = (name.replace("\\", "\\\\").replace("'", "\\'") for name in names)
    return "[" + ", ".join(f"'{name}'" for name in escaped) + "]"


def _unescape(text: str) -> str | None:
    for spelling in (text, html.unescape(text)):
        stripped = spelling.strip()
        if _LIST.fullmatch(stripped):
            return stripped
    return None


_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))", re.DOTALL
)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unquote(source: str) -> str:
    """Return the text inside single or double quotes, with its escapes decoded.

    The escapes are those of JSON (RFC 8259, section 7), and `\\xHH` and `\\UHHHHHHHH` of Python; a backslash before any
    other character is removed.
    """
    text = source[1:-1]
    if "\\" not in text:
        return text
    return _PAIR.sub(_joined, _ESCAPE.sub(_decoded, text))


def _decoded(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    return chr(int(code, 16)) if code else _CONTROLS.get(escape[4], escape[4])


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
