"""Follow references through what the agent returned, and read the operands of criteria, which are also literals.

Three rules of Jayway JsonPath, the documented dialect, differ from other libraries: a filter on an object tests the
object itself, JSON inside text is parsed, and in filters a number equals text that contains the same number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.expectations import render_actions
from evalmeta.model.generated_data import GeneratedData, reference_root
from evalmeta.model.json_value import JsonValue, is_too_deep, read_json
from evalmeta.model.jsonpath import (
    REFERENCE_ROOT,
    Comparison,
    Descendants,
    Everything,
    Filter,
    Length,
    Names,
    Path,
    Positions,
    Range,
    Reference,
    ReferenceSyntax,
    why_unreachable,
)

if TYPE_CHECKING:
    from evalmeta.model.definition import Parameter
    from evalmeta.model.jsonpath import Step, Test

    Read = Callable[[GeneratedData], Sequence[JsonValue]]


_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


class TooManyMatches(ValueError):
    """A reference matches more than `MAX_REFERENCE_MATCHES` values, including those of its intermediate steps."""


def compile_reference(text: str) -> Reference:
    """Parse a reference; raise ReferenceSyntax if evalmeta does not support it."""
    from evalmeta.model.jsonpath_parser import parse_reference

    return parse_reference(text)


def resolve(reference: Reference, root: JsonValue) -> tuple[JsonValue, ...]:
    """Return every value that the reference matches, in document order; raise TooManyMatches if they are too many."""
    return tuple(_Resolver(root).follow(reference.steps, root))


class _Resolver:
    """Follow paths through one document, with a budget of values."""

    __slots__ = ("_budget", "_parsed", "_root")

    def __init__(self, root: JsonValue) -> None:
        self._root = root
        self._budget = limits.MAX_REFERENCE_MATCHES
        self._parsed: dict[str, JsonValue] = {}

    def follow(self, steps: Iterable[Step], start: JsonValue) -> list[JsonValue]:
        nodes, is_scan = [start], False
        for step in steps:
            nodes = [match for node in nodes for match in self._apply(step, self._parse(node))]
            if is_scan and isinstance(step, Filter):
                nodes = _without_repeated_objects(nodes)
            self._spend(len(nodes))
            is_scan = isinstance(step, Descendants)
        return nodes

    def _spend(self, nodes: int) -> None:
        self._budget -= nodes
        if self._budget < 0:
            raise TooManyMatches(f"the reference matches more than {limits.MAX_REFERENCE_MATCHES} values")

    def _parse(self, node: JsonValue) -> JsonValue:
        """Return a value, and the lists and objects that are written inside text."""
        if not isinstance(node, str) or not node.lstrip().startswith(("{", "[")):
            return node
        if node not in self._parsed:
            try:
                value = read_json(node)
            except ValueError:
                value = node
            self._parsed[node] = node if is_too_deep(value) else value
        return self._parsed[node]

    def _apply(self, step: Step, node: JsonValue) -> Iterable[JsonValue]:
        if isinstance(step, Filter):
            tested = (node,) if isinstance(node, Mapping) else node if isinstance(node, list | tuple) else ()
            return (item for item in tested if self._passes(step.test, item))
        if isinstance(step, Descendants):
            return self._descendants(node)
        if isinstance(step, Length):
            return (len(node),) if isinstance(node, Mapping | list | tuple | str) else ()
        if isinstance(node, Mapping):
            if isinstance(step, Names):
                return [node[name] for name in step.names if name in node]
            return node.values() if isinstance(step, Everything) else ()
        return _items(step, node) if isinstance(node, list | tuple) else ()

    def _descendants(self, node: JsonValue) -> Iterable[JsonValue]:
        pending = [node]
        while pending:
            self._spend(1)
            value = pending.pop()
            yield value
            inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
            pending += reversed(tuple(inner))

    def _passes(self, test: Test, node: JsonValue) -> bool:
        if isinstance(test, Comparison):
            return self._compares(test, node)
        joined = all if test.every else any
        return joined(self._passes(part, node) for part in test.tests)

    def _compares(self, test: Comparison, node: JsonValue) -> bool:
        self._spend(1)
        left = self._values(test.left, node)
        if test.operator in {"exists", "missing"}:
            return bool(left) == (test.operator == "exists")
        if isinstance(test.right, Path):
            right: Sequence[JsonValue] = self._values(test.right, node)
        else:
            right = test.right if isinstance(test.right, tuple) else [test.right]
        if test.operator in {"!=", "nin"}:
            return not any(_equal(one, other) for one in left for other in right)
        return any(_holds(test.operator, one, other) for one in left for other in right)

    def _values(self, path: Path, node: JsonValue) -> list[JsonValue]:
        return self.follow(path.steps, self._root if path.from_root else node)


def _without_repeated_objects(nodes: Iterable[JsonValue]) -> list[JsonValue]:
    """Return the nodes of `..[?()]`, which tests an object as itself and as an item of its list, each once."""
    distinct: dict[int, JsonValue] = {}
    for index, node in enumerate(nodes):
        distinct.setdefault(id(node) if isinstance(node, Mapping) else -index, node)
    return list(distinct.values())


def _items(step: Step, node: Sequence[JsonValue]) -> Iterable[JsonValue]:
    if isinstance(step, Everything):
        return node
    if isinstance(step, Positions):
        return [node[position] for position in step.positions if -len(node) <= position < len(node)]
    return node[step.start : step.end : step.step] if isinstance(step, Range) and step.step != 0 else ()


def _holds(operator: str, left: JsonValue, right: JsonValue) -> bool:
    if operator.startswith(">"):
        left, right = right, left
    if operator in {"<", ">"}:
        return _less(left, right)
    return _equal(left, right) or (operator in {"<=", ">="} and _less(left, right))


def _equal(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        text, other = (left, right) if isinstance(left, str) else (right, left)
        number = parse_number(other)
        return number is not None and parse_number(text) == number
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _less(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return isinstance(left, int | float) and isinstance(right, int | float) and left < right


def parse_number(value: JsonValue) -> Decimal | None:
    """Return a JSON number, or the number in text, exactly; None for other values, booleans, NaN and infinities."""
    if isinstance(value, str):
        text = value.strip()
        try:
            return Decimal(text) if _NUMBER.fullmatch(text) else None
        except InvalidOperation:
            return None
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


class NoValue(Exception):
    """A parameter has no value; the message says why."""


class Unusable(NoValue):
    """The parameter can never have a value, whatever the agent does."""


class NoMatch(NoValue):
    """A reference matches nothing because of what the agent did."""


class NotReported(NoValue):
    """The agent does not report what a reference reads."""


# Members that can be read without building the whole object that `$` stands for. The whole list of actions is the text
# that orgs return (Testing API, generatedData.actionsSequence).
_DIRECT_MEMBERS: Final[Mapping[str, Callable[[GeneratedData], JsonValue]]] = {
    "outcome": attrgetter("outcome"),
    "generatedResponse": attrgetter("outcome"),
    "topic": attrgetter("topic"),
    "sessionId": attrgetter("session_id"),
    "actionsSequence": lambda generated: (
        None if generated.actions is None else render_actions(action.name for action in generated.actions)
    ),
}
# Members that an agent may leave out of its answer, in the words of messages.
_OPTIONAL: Final = {"topic": "its topic", "sessionId": "its session id", "actionsSequence": "its actions"}
_FUNCTION: Final = Names(("function",))
_ACTION_MEMBERS: Final = ("actionsSequence", "invokedActions")


def operand_reader(parameter: Parameter) -> Read:
    """Return a function that reads a parameter's values from an answer; raise Unusable for a wrong reference.

    The function returns at least one value. It raises NoMatch if the agent did nothing that the reference matches,
    NotReported if the agent does not report it, and Unusable if there are too many values.
    """
    if not parameter.is_reference:
        literal = (parameter.value,)
        return lambda _: literal
    try:
        reference = compile_reference(parameter.value)
    except ReferenceSyntax as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    unreachable = why_unreachable(reference)
    if unreachable:
        raise Unusable(f"{parameter.name}: the reference can never match: {unreachable}")
    match reference.steps:
        case (Names((root,)), Names((name,))) if root == REFERENCE_ROOT and name in _DIRECT_MEMBERS:
            return lambda generated: (_member(name, generated),)
        case _:
            return lambda generated: _resolve(parameter, reference, generated)


def _member(name: str, generated: GeneratedData) -> JsonValue:
    value = _DIRECT_MEMBERS[name](generated)
    if value is None:
        raise NotReported(f"the agent does not report {_OPTIONAL[name]}")
    return value


def _resolve(parameter: Parameter, reference: Reference, generated: GeneratedData) -> Sequence[JsonValue]:
    root = reference_root(generated)
    if generated.actions is None and any(member in reference.text for member in _ACTION_MEMBERS):
        raise NotReported("the agent does not report its actions")
    try:
        matches = resolve(reference, root)
    except TooManyMatches as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    if not matches:
        raise _no_match(parameter, reference, generated)
    return matches


def _no_match(parameter: Parameter, reference: Reference, generated: GeneratedData) -> NoMatch | NotReported:
    if missing := _not_reported(reference, generated):
        return NotReported(f"the agent does not report {missing}")
    reason = f"the reference of {parameter.name} matches nothing: {parameter.value.strip()}"
    if any(member in reference.text for member in _ACTION_MEMBERS):
        taken = ", ".join(dict.fromkeys(action.name for action in generated.actions or ()))
        reason += f"; the agent took {taken or 'no action'}"
    return NoMatch(reason)


def _not_reported(reference: Reference, generated: GeneratedData) -> str | None:
    """Return what the agent would have to report for the reference to match, None if it reports everything."""
    actions, root = generated.actions, reference_root(generated)
    if actions is None:
        match reference.steps:
            # Other members, such as the answer, have nothing to do with the actions.
            case (_, Names(names), *_) if set(names).isdisjoint(_ACTION_MEMBERS):
                return None
        return "its actions"
    for index, step in enumerate(reference.steps):
        matches = resolve(Reference("", reference.steps[:index]), root)
        if not matches or not isinstance(step, Names):
            continue
        if "executionLatency" in step.names:
            return "the latency of its actions"
        if reference.steps[index - 1] != _FUNCTION:
            continue
        if "output" in step.names and any(action.output is None for action in actions):
            return "the output of its actions"
        if "input" in step.names and not any(action.has_details for action in actions):
            return "more than the names of its actions"
    return None
