"""Seeded cases of expected arguments whose meaning is the same in evalmeta, promptfoo and pydantic-evals.

The cases have at most one call of the tool, flat arguments, and no booleans, which Python takes for numbers. The table
in docs/tool-arguments.md says what differs otherwise.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue

TOOL: Final = "Get_Order"
_VALUES: Final[tuple[JsonValue, ...]] = (
    0,
    1,
    -7,
    10045,
    "10045",
    1.5,
    2.0,
    "",
    "Paris",
    "paris",
    None,
    [1, "a"],
    [1],
    [],
)
_NAMES: Final = ("id", "city", "limit", "with space")


class Call(TypedDict):
    """A call that the agent made."""

    name: str
    input: dict[str, JsonValue]


class ArgumentCase(TypedDict):
    """What is expected of a call of the tool, and the calls that were made."""

    expected: dict[str, JsonValue]
    exact: bool
    calls: list[Call]


def argument_cases(number: int, seed: int) -> list[ArgumentCase]:
    """Return cases of which about half pass."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    return [_case(chance) for _ in range(number)]


def _case(chance: random.Random) -> ArgumentCase:
    expected = {name: chance.choice(_VALUES) for name in _NAMES if chance.random() < 0.6}
    given = dict(expected)
    change = chance.choice(("none", "none", "more", "less", "other", "not called"))
    if change == "more":
        given["more"] = chance.choice(_VALUES)
    elif change == "less" and given:
        del given[chance.choice(list(given))]
    elif change == "other" and given:
        given[chance.choice(list(given))] = chance.choice(_VALUES)
    calls: list[Call] = [{"name": "Login", "input": {"user": "ada"}}]
    if change != "not called":
        # The order of arguments has no meaning.
        calls.append({"name": TOOL, "input": dict(chance.sample(list(given.items()), len(given)))})
    if chance.random() < 0.5:
        calls.append({"name": "Log_Out", "input": {}})
    return {"expected": expected, "exact": chance.random() < 0.5, "calls": calls}
