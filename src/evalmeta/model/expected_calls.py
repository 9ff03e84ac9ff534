"""Expected calls of actions: a name, and what the input, output and error must be.

Test specs check expected calls when they are read, and scorers prepare them once for all cases with the same ones.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.expectations import parse_actions
from evalmeta.model.expected_values import ExpectedValue, Fault, Matcher, NamedValues, read_value, text_of

if TYPE_CHECKING:
    from evalmeta.model.expected_values import Steps
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject, JsonValue


NO_CALL: Final = "-"
"""What results show beside a call that has no counterpart."""
CALL_KEYS: Final = ("name", "input", "output", "error", "exact")
"""The keys of an expected call in test specs."""
ALLOWED: Final = " (allowed)"
"""What explanations of results add to differences that the rule of the expectation allows."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is expected; None for what can be anything. An error can be expected by whether there is one."""

    name: str
    input: ExpectedValue | None = None
    output: ExpectedValue | None = None
    error: ExpectedValue | bool | None = None

    def __str__(self) -> str:
        return call_text(self.name, self.input, self.output, self.error)

    @property
    def compares_results(self) -> bool:
        """Return whether more than name and input are compared."""
        return self.output is not None or self.error is not None

    def fits(self, call: Action, *, is_known: bool) -> bool | None:
        """Return whether a call of the same name is the expected one; None if what is unknown decides.

        If `is_known`, a missing input is known to be empty.
        """
        unreported = self._unreported(call, is_known=is_known)
        accepts = (
            (self.input is None or "input" in unreported or _accepts_input(self.input, call.input))
            and (self.output is None or "output" in unreported or self.output.accepts(call.output))
            and ("error" in unreported or self._accepts_error(call.error))
        )
        return (None if unreported else True) if accepts else False

    def unknown(self, call: Action, *, is_known: bool) -> tuple[str, ...]:
        """Return the compared parts of a call that the agent does not report."""
        return tuple(f"{self.name}.{part}" for part in self._unreported(call, is_known=is_known))

    def _unreported(self, call: Action, *, is_known: bool) -> list[str]:
        parts = []
        if self.input is not None and not (is_known or call.has_details):
            parts.append("input")
        if self.output is not None and call.output is None:
            parts.append("output")
        if self.error is not None and call.error is None and call.output is None:
            parts.append("error")
        return parts

    def differences(self, call: Action, *, is_known: bool) -> Iterator[str]:
        """Yield a text for each known difference of a call of the same name."""
        unreported = self._unreported(call, is_known=is_known)
        if self.input is not None and "input" not in unreported:
            yield from _input_differences(self.input, call.input, f"{self.name}.input")
        if self.output is not None and "output" not in unreported:
            yield from self.output.differences(call.output, f"{self.name}.output")
        if self.error is not None and "error" not in unreported:
            yield from self._error_differences(call.error)

    def _accepts_error(self, error: str | None) -> bool:
        if self.error is None or isinstance(self.error, bool):
            return self.error is None or self.error == (error is not None)
        return error is not None and self.error.accepts(error)

    def _error_differences(self, error: str | None) -> Iterator[str]:
        place = f"{self.name}.error"
        if isinstance(self.error, bool):
            if self.error and error is None:
                yield f"{place}: expected an error, but there is none"
            elif not self.error and error is not None:
                yield f"{place}: expected no error, got {text_of(error)}"
        elif self.error is not None:
            if error is None:
                yield f"{place}: expected {self.error}, but there is no error"
            else:
                yield from self.error.differences(error, place)


def _accepts_input(expected: ExpectedValue, given: JsonObject) -> bool:
    return _unreadable(given, expected) is None and expected.accepts(given)


def _input_differences(expected: ExpectedValue, given: JsonObject, place: str) -> Iterator[str]:
    text = _unreadable(given, expected)
    if text is None:
        yield from expected.differences(given, place)
    else:
        yield f"{place}: expected {expected}, got text that is not JSON: {text_of(text)}"


def _unreadable(given: JsonObject, expected: ExpectedValue) -> str | None:
    """Return the arguments of a call that are not JSON, as `engine/answers.py` keeps them; None if they are."""
    text = given.get("arguments") if len(given) == 1 else None
    is_wanted = isinstance(expected, NamedValues) and "arguments" in expected.values
    return text if isinstance(text, str) and isinstance(expected, NamedValues) and not is_wanted else None


def call_text(name: str, given: object, output: object = None, error: object = None) -> str:
    """Return a call as people write it: `find(id=7)`, `find(id=7) -> "Paris"`."""
    if isinstance(given, NamedValues):
        arguments = ", ".join(f"{argument}={value}" for argument, value in given.values.items())
    else:
        arguments = "" if given is None else str(given)
    text = f"{name}({arguments})"
    text += "" if output is None else f" -> {output}"
    if error is None:
        return text
    return f"{text}, {'an error' if error else 'no error'}" if isinstance(error, bool) else f"{text}, error {error}"


def made_call_text(call: Action, *, with_results: bool = False) -> str:
    """Return a call that an agent made as people write it."""
    arguments = ", ".join(f"{argument}={text_of(value)}" for argument, value in call.input.items())
    text = f"{call.name}({arguments})"
    if not with_results:
        return text
    text += "" if call.output is None else f" -> {text_of(call.output)}"
    return text if call.error is None else f"{text}, error {text_of(call.error)}"


def _without_value(item: JsonObject, name: str, steps: Steps) -> Iterator[Fault]:
    for key in ("input", "output", "error"):
        if key in item and item[key] is None:
            hint = f"Leave it out, or write {key}: {{equals: null}}."
            yield Fault((*steps, key), f"{key!r} of {name} has no value, so it checks nothing", hint)


def read_call(item: JsonValue, steps: Steps, faults: list[Fault]) -> ExpectedCall:
    """Return the expected call of a name, or of a mapping with `CALL_KEYS`; add what is wrong with it to `faults`.

    A mapping with `args` is a recorded call of another system: its arguments are literal and exact.
    """
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, Mapping):
        faults.append(Fault(steps, f"an action is {text_of(item)}, not a name or a mapping with a name"))
        return ExpectedCall("")
    if not isinstance(item.get("name"), str) or not str(item.get("name")).strip():
        faults.append(Fault(steps, "an action has no name", "Write name: and what the action is called."))
    name = str(item.get("name")).strip()
    if "args" in item:
        if not (item["args"] is None or isinstance(item["args"], Mapping)):
            faults.append(Fault((*steps, "args"), f"the args of {name} are {text_of(item['args'])}, not a mapping"))
        return ExpectedCall(name, read_value(item["args"] or {}, (*steps, "args"), faults, exact=True, literal=True))
    faults.extend(_without_value(item, name, steps))
    exact, error = item.get("exact"), item.get("error")
    if not (exact is None or isinstance(exact, bool)):
        faults.append(Fault((*steps, "exact"), f"'exact' of an action is {text_of(exact)}, not true or false"))
    parts = {
        key: read_value(item[key], (*steps, key), faults, exact=exact is True)
        for key in ("input", "output", "error")
        if item.get(key) is not None
    }
    # A call whose arguments are not named may have any.
    given = NamedValues({}, is_exact=False) if item.get("input") == {} and exact is not True else parts.get("input")
    if given is not None and not isinstance(given, NamedValues | Matcher):
        hint = "Write the arguments by their names: input: {id: 10045}."
        faults.append(Fault((*steps, "input"), f"the input of {name} is {given}, not a mapping", hint))
    if exact is True and given is None and "output" not in parts:
        faults.append(Fault((*steps, "exact"), f"'exact' of {name} has no input to compare", "Add input."))
    wanted = error if isinstance(error, bool) else parts.get("error")
    return ExpectedCall(name, given, parts.get("output"), wanted)


class MissingCall(NamedTuple):
    """An expected call that was not made; `after` of the calls that were made come before its place."""

    name: str
    after: int


def missing_calls(expected: str, actual: str, explanation: str) -> list[MissingCall]:
    """Return the calls that a failed result misses, by name and as often as they are missing.

    `expected` and `actual` are lists of names, or have a call in each line. Calls that may be missing are not returned.
    """
    if f"missing{ALLOWED}: " in explanation:
        return []
    places: dict[str, deque[int]] = defaultdict(deque)
    for at, name in enumerate(_call_names(actual)):
        places[name].append(at)
    missing, after = list[MissingCall](), 0
    for name in _call_names(expected):
        if places.get(name):
            after = max(after, places[name].popleft() + 1)
        else:
            missing.append(MissingCall(name, after))
    return missing


def _call_names(text: str) -> list[str]:
    if text.startswith("["):
        return [*(parse_actions(text) or ())]
    return [line.partition("(")[0] for line in text.splitlines() if line != NO_CALL]
