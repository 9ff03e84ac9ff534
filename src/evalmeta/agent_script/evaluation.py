"""Expressions and templates of Agent Script, evaluated with the loose coercion of the language.

Numbers and texts that are numbers are compared and calculated as numbers, and a text and another value are joined as
texts. Everything else follows Python: what is true, what `and` and `or` return, and how values are written.
"""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from evalmeta.agent_script.nodes import (
    Binary,
    Call,
    Conditional,
    DictLiteral,
    Index,
    ListLiteral,
    Literal,
    Member,
    ModelValue,
    Name,
    Reference,
    Template,
    Unary,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.agent_script.nodes import Expression, Position
    from evalmeta.model.json_value import JsonValue

_Number: TypeAlias = int | float
_ORDERS: Final[Mapping[str, Callable[[_Number, _Number], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TEXT_ORDERS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[Mapping[str, Callable[[_Number, _Number], _Number]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_MAX_JOINED: Final = 1_000_000
_BOOLEANS: Final = {"true": True, "false": False}


class ScriptFault(Exception):
    """A script cannot be carried out: the reason, and where it is in the script."""

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.position = position


class Scope(Protocol):
    """What references mean while a script is carried out."""

    def value_of(self, reference: Reference) -> JsonValue:
        """Return the value of `@namespace.member`; None if nothing has that name."""
        ...


def evaluate(expression: Expression, scope: Scope) -> JsonValue:
    """Return the value of an expression; raise ScriptFault if it has none."""
    value: JsonValue
    match expression:
        case Literal():
            value = expression.value
        case Template():
            value = render(expression, scope)
        case Reference():
            value = scope.value_of(expression)
        case Binary():
            value = _binary(expression, scope)
        case Unary():
            value = _signed(expression.operator, evaluate(expression.operand, scope), expression.position)
        case Conditional():
            is_met = bool(evaluate(expression.condition, scope))
            value = evaluate(expression.value if is_met else expression.otherwise, scope)
        case Call():
            arguments = [evaluate(argument, scope) for argument in expression.arguments]
            value = _call(expression.function, arguments, expression.position)
        case _:
            value = _part_or_collection(expression, scope)
    return value


def _part_or_collection(
    expression: Member | Index | ListLiteral | DictLiteral | ModelValue | Name, scope: Scope
) -> JsonValue:
    match expression:
        case Member():
            return _member(evaluate(expression.value, scope), expression.name, expression.position)
        case Index():
            return _item(evaluate(expression.value, scope), evaluate(expression.index, scope), expression.position)
        case ListLiteral():
            return [evaluate(item, scope) for item in expression.items]
        case DictLiteral():
            return {key: evaluate(value, scope) for key, value in expression.items}
        case ModelValue():
            raise ScriptFault("'...' has no value here: the model only chooses inputs of actions", expression.position)
        case Name(name=name):
            what = f"{name!r} is not a value; variables are written as @variables.{name}"
            raise ScriptFault(what, expression.position)


def render(template: Template, scope: Scope) -> str:
    """Return the text of a template with the values of its expressions."""
    return "".join(part if isinstance(part, str) else text_of(evaluate(part, scope)) for part in template.parts)


def text_of(value: JsonValue) -> str:
    """Return a value as it stands in a text: lists and objects as JSON, a whole number without a point."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def converted(value: JsonValue, kind: str) -> JsonValue:
    """Return a value as a type of the language, if it can be read as one; otherwise unchanged."""
    if kind == "number" and isinstance(value, str):
        number = number_of(value)
        return value if number is None else number
    if kind == "boolean" and isinstance(value, str):
        return _BOOLEANS.get(value.strip().lower(), value)
    if kind == "string" and isinstance(value, int | float):
        return text_of(value)
    if kind == "object" or kind.startswith("list"):
        return _parsed(value, list if kind.startswith("list") else dict)
    return value


def _parsed(value: JsonValue, kind: type) -> JsonValue:
    if not isinstance(value, str):
        return value
    try:
        parsed: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, kind) else value


def number_of(value: JsonValue) -> _Number | None:
    """Return a value as a number; None if it is not one."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    is_finite = number - number == 0
    return (int(number) if number.is_integer() else number) if is_finite else None


def _member(value: JsonValue, name: str, position: Position) -> JsonValue:
    if value is None:
        raise ScriptFault(f"the member {name!r} of None is read", position)
    if not isinstance(value, dict):
        raise ScriptFault(f"the member {name!r} of {_kind(value)} is read, which has none", position)
    return value.get(name)


def _item(value: JsonValue, index: JsonValue, position: Position) -> JsonValue:
    if value is None:
        raise ScriptFault("an item of None is read", position)
    if isinstance(value, dict):
        return value.get(text_of(index))
    number = number_of(index)
    if not isinstance(value, list | str) or not isinstance(number, int):
        raise ScriptFault(f"the item {text_of(index)!r:.100} of {_kind(value)} is read, which has none", position)
    if not -len(value) <= number < len(value):
        raise ScriptFault(f"item {number} is read of {_kind(value)} with {len(value)} items", position)
    return value[number]


def _signed(sign: str, value: JsonValue, position: Position) -> JsonValue:
    if sign == "not":
        return not value
    number = number_of(value)
    if number is None or sign == "*":
        raise ScriptFault(f"{sign!r} cannot be used with {_kind(value)}", position)
    return -number if sign == "-" else number


def _binary(expression: Binary, scope: Scope) -> JsonValue:
    sign, left = expression.operator, evaluate(expression.left, scope)
    if sign in {"and", "or"}:
        is_decided = bool(left) == (sign == "or")
        return left if is_decided else evaluate(expression.right, scope)
    right = evaluate(expression.right, scope)
    if sign in _EQUALITIES:
        return _EQUALITIES[sign](left, right)
    if sign in _ORDERS:
        return _compared(sign, left, right, expression.position)
    return _calculated(sign, left, right, expression.position)


def _is_same(left: JsonValue, right: JsonValue) -> bool:
    """Return whether values are equal without any coercion: 1 is not True, and "1" is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def are_equal(left: JsonValue, right: JsonValue) -> bool:
    """Return whether values are equal; a text that is a number, or true or false, equals that value."""
    if left == right:
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return converted(left, "boolean") == converted(right, "boolean")
    if isinstance(left, str) == isinstance(right, str):
        return False
    numbers = number_of(left), number_of(right)
    return None not in numbers and numbers[0] == numbers[1]


_EQUALITIES: Final[Mapping[str, Callable[[JsonValue, JsonValue], bool]]] = {
    "is": _is_same,
    "is not": lambda left, right: not _is_same(left, right),
    "==": are_equal,
    "!=": lambda left, right: not are_equal(left, right),
}


def _compared(order: str, left: JsonValue, right: JsonValue, position: Position) -> bool:
    if left is None or right is None:
        return False
    if isinstance(left, str) and isinstance(right, str):
        return _TEXT_ORDERS[order](left, right)
    numbers = number_of(left), number_of(right)
    if numbers[0] is None or numbers[1] is None:
        raise ScriptFault(f"{_kind(left)} and {_kind(right)} cannot be compared with {order!r}", position)
    return _ORDERS[order](numbers[0], numbers[1])


def _calculated(sign: str, left: JsonValue, right: JsonValue, position: Position) -> JsonValue:
    if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
        return _joined(left, right, position)
    if sign == "+" and isinstance(left, list) and isinstance(right, list):
        return [*left, *right]
    numbers = number_of(left), number_of(right)
    if numbers[0] is None or numbers[1] is None:
        raise ScriptFault(f"{sign!r} cannot be used with {_kind(left)} and {_kind(right)}", position)
    try:
        return _ARITHMETIC[sign](numbers[0], numbers[1])
    except (ZeroDivisionError, OverflowError) as error:
        raise ScriptFault(f"{sign!r} cannot be calculated: {error}", position) from None


def _joined(left: JsonValue, right: JsonValue, position: Position) -> str:
    text = text_of(left) + text_of(right)
    if len(text) > _MAX_JOINED:
        raise ScriptFault(f"a text has more than {_MAX_JOINED:,} characters", position)
    return text


def _call(function: Expression, arguments: Sequence[JsonValue], position: Position) -> JsonValue:
    name = function.name if isinstance(function, Name) else ""
    if name == "len" and len(arguments) == 1:
        return _length(arguments[0], position)
    if name in {"max", "min"}:
        values = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
        numbers = [number for value in values if (number := number_of(value)) is not None]
        if not values or len(numbers) < len(values):
            raise ScriptFault(f"{name} needs numbers", position)
        return max(numbers) if name == "max" else min(numbers)
    raise ScriptFault(f"{name or 'this'} is not a function with {len(arguments)} arguments: len, max, min", position)


def _length(value: JsonValue, position: Position) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise ScriptFault(f"len cannot be used with {_kind(value)}", position)


def _kind(value: JsonValue) -> str:
    """Return the kind of a value, without the value: it may be confidential."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "None")
