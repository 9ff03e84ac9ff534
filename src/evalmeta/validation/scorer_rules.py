"""Rules about one scorer of an AiTestingDefinition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.expectations import scorer_kind, scorer_names
from evalmeta.validation import expectation_rules
from evalmeta.validation.finding import Finding, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.definition import Expectation

__all__ = ["find_actions_unreadable", "find_custom_value", "find_unknown_scorer"]


def find_unknown_scorer(scorer: Expectation) -> Iterator[Finding]:
    """The name of a scorer that is not Custom is one that the sf CLI knows; orgs may know more."""
    if scorer_kind(scorer.name) is None:
        hint = f"{nearest(scorer.name, scorer_names('AGENT'))} A scorer of the org's own has the scorerType Custom."
        yield Finding((("name", 0),), f"{quote(scorer.name)} is no known scorer", hint)


def find_actions_unreadable(scorer: Expectation) -> Iterator[Finding]:
    """The expected actions are a list such as ['A', 'B'], or the name of one action."""
    if (scorer.expected_value or "").lstrip().startswith("["):
        yield from expectation_rules.find_actions_unreadable(scorer)


def find_custom_value(scorer: Expectation) -> Iterator[Finding]:
    """A custom scorer takes no expectedValue."""
    if scorer.expected_value is not None:
        yield Finding(
            (("expectedValue", 0),), f"the custom scorer {scorer.name} takes no <expectedValue>", "Remove it."
        )
