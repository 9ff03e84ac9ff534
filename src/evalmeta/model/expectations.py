"""What the expectation names mean: one row per name, both vocabularies.

Sources: Metadata API Developer Guide, AiEvaluationDefinition (names and operators);
Testing API Developer Guide, "Custom Evaluation Criteria" (which operators belong to
which comparison); the later names are those that test results carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "NUMERIC_OPERATORS",
    "OPERATORS",
    "PARAMETER_NAMES",
    "STRING_OPERATORS",
    "ExpectationKind",
    "canonical_name",
    "expectation_kind",
    "known_names",
]

Need = Literal["value", "parameters", "nothing"]


@dataclass(frozen=True, slots=True)
class ExpectationKind:
    """One kind of expectation.

    Attributes:
        name: the name in the metadata reference.
        aliases: later names of the same thing.
        needs: what the definition must supply: an expectedValue, parameters, or nothing.
        label: what people call it in reports.
    """

    name: str
    needs: Need
    label: str
    aliases: tuple[str, ...] = ()


_KINDS: Final = (
    ExpectationKind("topic_sequence_match", "value", "Topic", ("topic_assertion",)),
    ExpectationKind("action_sequence_match", "value", "Actions", ("actions_assertion",)),
    ExpectationKind("bot_response_rating", "value", "Response", ("output_validation",)),
    ExpectationKind("coherence", "nothing", "Coherence"),
    ExpectationKind("completeness", "nothing", "Completeness"),
    ExpectationKind("conciseness", "nothing", "Conciseness"),
    ExpectationKind("instruction_following", "nothing", "Instruction following", ("instruction_adherence",)),
    ExpectationKind("factuality", "nothing", "Factuality"),
    ExpectationKind("output_latency_milliseconds", "nothing", "Latency"),
    ExpectationKind("string_comparison", "parameters", "String comparison"),
    ExpectationKind("numeric_comparison", "parameters", "Numeric comparison"),
)
_BY_NAME: Final = {name: kind for kind in _KINDS for name in (kind.name, *kind.aliases)}

STRING_OPERATORS: Final = ("equals", "contains", "startswith", "endswith")
NUMERIC_OPERATORS: Final = ("equals", "greater_than_or_equal", "greater_than", "less_than", "less_than_or_equal")
OPERATORS: Final = {"string_comparison": STRING_OPERATORS, "numeric_comparison": NUMERIC_OPERATORS}
PARAMETER_NAMES: Final = ("operator", "actual", "expected")


def expectation_kind(name: str) -> ExpectationKind | None:
    """Gives the kind that a name or alias stands for, or None for an unknown name."""
    return _BY_NAME.get(name)


def canonical_name(name: str) -> str:
    """Gives the metadata reference's name for a name or alias; an unknown name comes back as it is."""
    kind = _BY_NAME.get(name)
    return kind.name if kind else name


def known_names() -> tuple[str, ...]:
    """Lists every accepted expectation name, the aliases after the names."""
    return tuple(sorted(_BY_NAME, key=lambda name: (_BY_NAME[name].name != name, name)))
