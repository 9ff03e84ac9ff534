"""Custom criteria made ready: the operator, and how to read both sides from what came back."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from operator import attrgetter, contains, eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.references import TooManyMatches, compile_reference, resolve
from evalmeta.model.expectations import OPERATORS, PARAMETER_NAMES
from evalmeta.model.generated import reference_root
from evalmeta.model.reference import REFERENCE_ROOT, Names, ReferenceSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

    from evalmeta.model.definition import Parameter
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.reference import Reference

    Read = Callable[[GeneratedData], Sequence[JsonValue]]

__all__ = ["NUMBERS", "PHRASES", "STRINGS", "Criterion", "Unusable", "criterion_of"]

STRINGS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "equals": eq,
    "contains": contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
NUMBERS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "equals": eq,
    "greater_than_or_equal": ge,
    "greater_than": gt,
    "less_than": lt,
    "less_than_or_equal": le,
}
PHRASES: Final[Mapping[str, tuple[str, str]]] = {
    "equals": ("equals", "does not equal"),
    "contains": ("contains", "does not contain"),
    "startswith": ("starts with", "does not start with"),
    "endswith": ("ends with", "does not end with"),
    "greater_than_or_equal": ("is at least", "is not at least"),
    "greater_than": ("is greater than", "is not greater than"),
    "less_than": ("is less than", "is not less than"),
    "less_than_or_equal": ("is at most", "is not at most"),
}
"""What an operator says when it holds, and when it does not."""

# What is read without the whole object that `$` stands for being made first.
_PLAIN: Final[Mapping[str, Callable[[GeneratedData], JsonValue]]] = {
    "outcome": attrgetter("outcome"),
    "generatedResponse": attrgetter("outcome"),
    "topic": attrgetter("topic"),
    "sessionId": attrgetter("session_id"),
}
_PLAIN_STEPS: Final = 2


class Unusable(Exception):
    """A criterion that cannot be judged; the message becomes the result's error."""


class Criterion(NamedTuple):
    """A criterion ready to be judged; a side gives at least one value, or raises Unusable."""

    operator: str
    actual: Read
    expected: Read


@lru_cache(maxsize=1024)
def criterion_of(name: str, parameters: tuple[Parameter, ...]) -> Criterion | str:
    """Makes a criterion ready, once for each; text is what is wrong with it.

    `name` is canonical. The operator is always a literal.
    """
    given = {parameter.name: parameter for parameter in parameters}
    missing = [each for each in PARAMETER_NAMES if each not in given]
    if missing:
        return f"the parameter {' and '.join(missing)} is missing"
    operator = given["operator"].value.strip()
    if operator not in OPERATORS[name]:
        nearest = get_close_matches(operator.lower(), OPERATORS[name], n=1, cutoff=0)
        return f"{operator!r} is no operator of {name}; the nearest is {nearest[0]}"
    try:
        return Criterion(operator, _reader(given["actual"]), _reader(given["expected"]))
    except Unusable as error:
        return str(error)


def _reader(parameter: Parameter) -> Read:
    if not parameter.is_reference:
        literal = (parameter.value,)
        return lambda _: literal
    try:
        reference = compile_reference(parameter.value)
    except ReferenceSyntax as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    plain = _plain(reference)
    if plain is not None:
        return lambda generated: (plain(generated),)
    return lambda generated: _follow(parameter, reference, generated)


def _plain(reference: Reference) -> Callable[[GeneratedData], JsonValue] | None:
    if len(reference.steps) != _PLAIN_STEPS or reference.steps[0] != Names((REFERENCE_ROOT,)):
        return None
    member = reference.steps[1]
    return _PLAIN.get(member.names[0]) if isinstance(member, Names) and len(member.names) == 1 else None


def _follow(parameter: Parameter, reference: Reference, generated: GeneratedData) -> Sequence[JsonValue]:
    try:
        matches = resolve(reference, reference_root(generated))
    except TooManyMatches as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    if not matches:
        hint = _hint(generated) if "invokedActions" in reference.text else ""
        raise Unusable(f"the reference of {parameter.name} matches nothing: {parameter.value}{hint}")
    return matches


def _hint(generated: GeneratedData) -> str:
    taken = ", ".join(dict.fromkeys(action.name for action in generated.actions))
    return f"; the agent took {taken}" if taken else "; the agent took no action"
