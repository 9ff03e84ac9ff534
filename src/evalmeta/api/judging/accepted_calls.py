"""Expected calls that accept what an agent did: new ones, and those of a test that an answer replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from evalmeta.formats.yaml_source import is_settled
from evalmeta.model.expected_calls import read_call
from evalmeta.model.expected_values import Fault, is_matcher, literal_value, read_value
from evalmeta.model.redaction import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.expected_calls import ExpectedCall
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject, JsonValue


class AcceptedCall(NamedTuple):
    """An expected call, and the index of the earlier one that it is; None if it is new or changed."""

    call: JsonValue
    kept: int | None = None


def new_call(action: Action, notes: list[str]) -> JsonValue:
    """Return an expected call: the name, and the arguments without those that a test cannot compare.

    What is left out is added to `notes`, in words.
    """
    given = action.input if action.has_details else {}
    kept = {name: value for name, value in given.items() if _is_comparable(value, _argument(action, name), notes)}
    return {"name": action.name, "input": literal_value(kept)} if kept else action.name


def accepting_calls(expected: Sequence[JsonObject], made: Sequence[Action], notes: list[str]) -> list[AcceptedCall]:
    """Return expected calls that accept the calls that were made, in their order.

    An expected call that accepts one of them is kept. One of the same name that does not is changed where it differs:
    what it does not name can still be anything, and values that it accepts keep their matchers.
    """
    calls = [read_call(call, (), []) for call in expected]
    partners = _partners(calls, made)
    accepted = []
    for action, place in zip(made, partners, strict=True):
        if place is None:
            accepted.append(AcceptedCall(new_call(action, notes)))
        elif calls[place].fits(action, is_known=False) is not False:
            accepted.append(AcceptedCall(expected[place], place))
        else:
            accepted.append(AcceptedCall(_accepted(expected[place], calls[place], action, notes)))
    return accepted


def _partners(calls: Sequence[ExpectedCall], made: Sequence[Action]) -> list[int | None]:
    """Return for each call that was made the expected one that it is, or else the next one of its name."""
    left, partners = [*range(len(calls))], dict[int, int]()
    for must_fit in (True, False):
        for at, action in enumerate(made):
            of_name = (place for place in left if calls[place].name == action.name)
            fitting = (place for place in of_name if not must_fit or calls[place].fits(action, is_known=False) is True)
            if at not in partners and (found := next(fitting, None)) is not None:
                partners[at] = found
                left.remove(found)
    return [partners.get(at) for at in range(len(made))]


def _accepted(call: JsonObject, expected: ExpectedCall, action: Action, notes: list[str]) -> JsonValue:
    """Return an expected call that accepts one of its name: changed where it differs, or else a new one."""
    own_notes, faults = list[str](), list[Fault]()
    changed = _changed(call, expected, action, own_notes)
    if read_call(changed, (), faults).fits(action, is_known=False) is False or faults:
        return new_call(action, notes)
    notes += own_notes
    return changed


def _changed(call: JsonObject, expected: ExpectedCall, action: Action, notes: list[str]) -> JsonObject:
    """Return an expected call with other expectations where it does not accept a call of its name."""
    changed, is_exact = {**call}, call.get("exact") is True
    if "input" in call:
        given = {
            name: value for name, value in action.input.items() if _is_comparable(value, _argument(action, name), notes)
        }
        if is_exact and len(given) < len(action.input):
            # An argument that is left out would be one too many.
            del changed["exact"]
            is_exact = False
        changed["input"] = _accepting(call["input"], given, exact=is_exact)
    if "output" in call and action.output is not None:
        changed["output"] = _accepting(call["output"], action.output, exact=is_exact)
        if not _is_comparable(changed["output"], f"the output of {action.name}", notes):
            del changed["output"]
    if isinstance(expected.error, bool) or (expected.error is not None and action.error is None):
        changed["error"] = action.error is not None
    elif expected.error is not None and action.error is not None and not expected.error.accepts(action.error):
        changed["error"] = action.error
    return changed


def _accepting(expected: JsonValue, actual: JsonValue, *, exact: bool) -> JsonValue:
    """Return an expected value that accepts the actual one, with all parts of the expected one that do."""
    if read_value(expected, (), [], exact=exact).accepts(actual):
        return expected
    if isinstance(expected, dict) and isinstance(actual, dict) and not is_matcher(expected):
        names = [name for name in actual if name in expected or exact]
        # What is not expected yet accepts nothing.
        inner = {name: _accepting(expected.get(name, []), actual[name], exact=exact) for name in names}
        if inner and not is_matcher(inner):
            return inner
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [_accepting(item, other, exact=exact) for item, other in zip(expected, actual, strict=True)]
    return literal_value(actual)


def _argument(action: Action, name: str) -> str:
    return f"the argument {name} of {action.name}"


def _is_comparable(value: JsonValue, what: str, notes: list[str]) -> bool:
    """Return whether a test can compare a value; if not, say why."""
    if HIDDEN in what or HIDDEN in orjson.dumps(value).decode():
        notes.append(f"{what} has a hidden secret and is not expected")
    elif not all(map(is_settled, _numbers(value))):
        notes.append(f"{what} has a number of many digits and is not expected")
    else:
        return True
    return False


def _numbers(value: JsonValue) -> Iterator[int | float]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value
