"""The syntax tree of Agent Script: immutable nodes, each with its position in the file."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

START_AGENT: Final = "start_agent"
SUBAGENT_KINDS: Final = (START_AGENT, "subagent", "topic")
"""The words for a subagent: the entry point, the usual word, and the word of older scripts."""


class Position(NamedTuple):
    """A position in a script: line and column from 1, the column in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number, `True`, `False` or `None`; dates are strings."""

    value: str | int | float | bool | None
    position: Position


@dataclass(frozen=True, slots=True)
class ModelValue:
    """`...`: the model chooses the value."""

    position: Position


@dataclass(frozen=True, slots=True)
class Name:
    """A bare identifier, such as the function of a call."""

    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Reference:
    """`@namespace.member`; the member is empty in `@namespace` alone."""

    namespace: str
    member: str
    position: Position

    def __str__(self) -> str:
        """Return the reference as scripts write it."""
        return f"@{self.namespace}.{self.member}" if self.member else f"@{self.namespace}"


@dataclass(frozen=True, slots=True)
class Member:
    """`value.name`; the first member after a namespace is part of its `Reference`."""

    value: Expression
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Index:
    """`value[index]`."""

    value: Expression
    index: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`."""

    function: Expression
    arguments: tuple[Expression, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Unary:
    """`not`, `+`, `-` or `*` before an operand."""

    operator: str
    operand: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and `or`, `and`, `==`, `!=`, `<`, `<=`, `>`, `>=`, `is`, `is not`, `+`, `-`, `*` or `/`."""

    operator: str
    left: Expression
    right: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Conditional:
    """`value if condition else otherwise`."""

    value: Expression
    condition: Expression
    otherwise: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`."""

    items: tuple[Expression, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class DictLiteral:
    """`{key: value}`."""

    items: tuple[tuple[str, Expression], ...]
    position: Position


Expression: TypeAlias = (
    "Literal | ModelValue | Name | Reference | Member | Index | Call | Unary | Binary | Conditional"
    " | ListLiteral | DictLiteral | Template"
)


@dataclass(frozen=True, slots=True)
class Template:
    """Text with expressions (`{! expression }`): after `|`, without the script's indentation, or in a quoted string."""

    parts: tuple[str | Expression, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class With:
    """`with name=value`: an input of an action or of a transition."""

    name: str
    value: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Text:
    """`| text`: appended to the instructions, with a line break."""

    template: Template
    position: Position


@dataclass(frozen=True, slots=True)
class Set:
    """`set @variables.name = value`."""

    target: Expression
    value: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Run:
    """`run @actions.Name` with its inputs, and the statements that follow when the action has returned."""

    action: Expression
    inputs: tuple[With, ...]
    callbacks: tuple[Statement, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Transition:
    """`transition to @subagent.Name`."""

    target: Expression
    inputs: tuple[With, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class If:
    """`if condition:` and `else:`; `else if` is an `If` as the only statement of `otherwise`."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Collect:
    """`collect @variables.name`: ask the user for one variable; its fields, such as `message`, are below it."""

    target: Expression
    fields: tuple[Field, ...]
    position: Position


Statement: TypeAlias = "Text | Set | Run | Transition | If | Collect"


@dataclass(frozen=True, slots=True)
class Field:
    """`key: value` or `key name:` of a block, with the fields and the items of lists below it.

    Attributes:
        key: the key, such as `description`.
        name: the second word of `key name:`, otherwise empty.
        value: the value on the line of the key, or its template; None without a value.
        fields: what stands below it, in order.
        items: the fields of each item of a list (`- `); an item that is a value is one field without a key.
    """

    key: str
    name: str
    value: Expression | None
    fields: tuple[Field, ...]
    items: tuple[tuple[Field, ...], ...]
    position: Position

    @property
    def text(self) -> str:
        """Return the value as text; empty if it is not a text, expressions are left out."""
        if isinstance(self.value, Literal):
            return self.value.value if isinstance(self.value.value, str) else ""
        if isinstance(self.value, Template):
            return "".join(part for part in self.value.parts if isinstance(part, str))
        return ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input or output of an action: `name: type = default` with fields such as `is_required` below it."""

    name: str
    type: str
    default: Expression | None
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable.

    Attributes:
        modifier: `mutable`, `linked`, or empty.
        type: such as `string` or `list[object]`.
        source: what a linked variable is linked to, such as `@MessagingSession.Id`.
        fields: all fields below it, `description` and `source` included.
    """

    name: str
    modifier: str
    type: str
    default: Expression | None
    description: str
    source: Expression | None
    fields: tuple[Field, ...]
    position: Position

    @property
    def is_linked(self) -> bool:
        """Return whether the variable is read-only, with a value that the channel gives."""
        return self.modifier == "linked"


@dataclass(frozen=True, slots=True)
class ActionDefinition:
    """An action that subagents may call; `fields` has all its fields except inputs and outputs."""

    name: str
    label: str
    description: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    target: str
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Binding:
    """What the model may call: an action, a utility such as `@utils.escalate`, or a subagent.

    Attributes:
        target: what is called, such as `@actions.Find_Order` or `@utils.transition`.
        to: the subagent of `@utils.transition to @subagent.Name`.
        guards: the conditions of `available when`, which must all be true.
        callbacks: the statements that follow when the action has returned.
    """

    name: str
    target: Expression | None
    to: Expression | None
    description: str
    guards: tuple[Expression, ...]
    inputs: tuple[With, ...]
    callbacks: tuple[Statement, ...]
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Subagent:
    """A subagent.

    Attributes:
        kind: one of `SUBAGENT_KINDS`.
        system_instructions: override the script's; None without any.
        procedures: other procedures by their keys, such as `on_init` and `on_exit`.
        fields: all other fields, such as `model_config`.
    """

    kind: str
    name: str
    label: str
    description: str
    system_instructions: tuple[Statement, ...] | None
    actions: tuple[ActionDefinition, ...]
    before_reasoning: tuple[Statement, ...]
    instructions: tuple[Statement, ...]
    bindings: tuple[Binding, ...]
    after_reasoning: tuple[Statement, ...]
    procedures: tuple[tuple[str, tuple[Statement, ...]], ...]
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class ConnectedSubagent:
    """An agent that is deployed elsewhere; `after_response` follows its answer."""

    name: str
    label: str
    description: str
    target: str
    inputs: tuple[Parameter, ...]
    after_response: tuple[Statement, ...]
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Script:
    """A script.

    Attributes:
        system_instructions: the instructions of the block `system`, as statements.
        messages: the texts of `system.messages`, such as `welcome` and `error`.
        config: the fields of the block `config`.
        actions: actions that are defined for all subagents.
        blocks: all other blocks, such as `language`, `connection` and `knowledge`.
    """

    system_instructions: tuple[Statement, ...]
    messages: tuple[tuple[str, Template], ...]
    config: tuple[Field, ...]
    variables: tuple[Variable, ...]
    actions: tuple[ActionDefinition, ...]
    subagents: tuple[Subagent, ...]
    connected_subagents: tuple[ConnectedSubagent, ...]
    blocks: tuple[Field, ...]

    @property
    def start(self) -> Subagent | None:
        """Return the entry point, the first `start_agent`."""
        return next((subagent for subagent in self.subagents if subagent.kind == START_AGENT), None)


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """What the parser could not read, and where."""

    message: str
    position: Position
    hint: str = ""


def field_text(fields: tuple[Field, ...], key: str) -> str:
    """Return the text of the first field with a key; empty if the key is missing or is not a text."""
    return next((field.text for field in fields if field.key == key), "")


def nodes_of(node: object) -> Iterator[object]:
    """Yield a node and all nodes below it, in their order."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, tuple):
            waiting += reversed(current)
        elif is_dataclass(current):
            yield current
            waiting += [getattr(current, field.name) for field in reversed(fields(current))]
