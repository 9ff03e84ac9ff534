"""The parser of Agent Script: blocks and their fields; a damaged script gives all its problems and what can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.agent_script.expressions import LANGUAGE_WORDS, Unreadable, shown_token
from evalmeta.agent_script.lines import Line, read_lines
from evalmeta.agent_script.nodes import (
    SUBAGENT_KINDS,
    ActionDefinition,
    Binding,
    ConnectedSubagent,
    Field,
    Index,
    Literal,
    Name,
    Parameter,
    Position,
    Script,
    Subagent,
    SyntaxProblem,
    Template,
    Text,
    Variable,
    field_text,
)
from evalmeta.agent_script.statements import StatementReader, is_entry, is_statement, reader_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.agent_script.expressions import TokenReader
    from evalmeta.agent_script.nodes import Expression, Statement, With

_MODIFIERS: Final = ("mutable", "linked")
_PROCEDURES: Final = frozenset({"on_init", "on_exit"})
_EMPTY: Final = "empty"
_NO_SCRIPT: Final = Script((), (), (), (), (), (), (), ())


class ParsedScript(NamedTuple):
    """A script, as far as it can be read, and what cannot be read, in the order of the file."""

    script: Script
    problems: tuple[SyntaxProblem, ...]


class _Entry(NamedTuple):
    """A line `key:` or `key name:`, with the reader behind the colon."""

    key: str
    name: str
    reader: TokenReader
    line: Line


def parse_script(text: str) -> ParsedScript:
    """Return the script in a text."""
    start = Position(1, 1)
    if len(text) > limits.MAX_SCRIPT_BYTES:
        message = f"the script has {len(text):,} characters; at most {limits.MAX_SCRIPT_BYTES:,} are read"
        return ParsedScript(_NO_SCRIPT, (SyntaxProblem(message, start),))
    problems: list[SyntaxProblem] = []
    lines = read_lines(text, problems)
    if not lines:
        problems.append(SyntaxProblem("the script is empty", start, "Begin it with a `config:` block."))
    script = _ScriptReader(problems).read(lines)
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: problem.position)
    return ParsedScript(script, tuple(ordered[: limits.MAX_PROBLEMS]))


class _ScriptReader:
    def __init__(self, problems: list[SyntaxProblem]) -> None:
        self._problems = problems
        self._statements = StatementReader(problems, self._fields)

    def read(self, lines: Sequence[Line]) -> Script:
        instructions: tuple[Statement, ...] = ()
        messages: list[tuple[str, Template]] = []
        config: tuple[Field, ...] = ()
        variables: list[Variable] = []
        actions: list[ActionDefinition] = []
        subagents: list[Subagent] = []
        connected: list[ConnectedSubagent] = []
        blocks: list[Field] = []
        for entry in self._entries(lines):
            match entry.key:
                case "system":
                    of_system, fields = self._system(entry)
                    instructions += of_system or ()
                    messages += _messages(fields)
                    blocks.append(Field("system", "", None, fields, (), entry.line.position))
                case "config":
                    config += self._block(entry)
                case "variables":
                    variables += self._variables(entry)
                case "actions":
                    actions += self._actions(entry)
                case "connected_subagent":
                    connected.append(self._connected_subagent(entry))
                case key if key in SUBAGENT_KINDS:
                    subagents.append(self._subagent(entry))
                case _:
                    blocks.append(self._field(entry))
        return Script(
            instructions,
            tuple(messages),
            config,
            tuple(variables),
            tuple(actions),
            tuple(subagents),
            tuple(connected),
            tuple(blocks),
        )

    def _entries(self, lines: Iterable[Line]) -> Iterator[_Entry]:
        """Yield the entries among lines; other lines are reported."""
        for line in lines:
            if not is_entry(line):
                self._refuse(line)
                continue
            reader = reader_of(line, self._problems)
            key = reader.take_name("a key")
            name = "" if reader.at(":") else reader.take_name("a name")
            reader.skip(":")
            yield _Entry(key, name, reader, line)

    def _refuse(self, line: Line) -> None:
        first = line.tokens[0]
        if first.text == _EMPTY and first.kind == "name" and len(line.tokens) == 1 and not line.children:
            # A block without entries.
            return
        if is_statement(line):
            message = f"{shown_token(first)} begins a statement, which is not expected here"
            self._problems.append(SyntaxProblem(message, line.position))
            return
        is_known = len(line.tokens) == 1 and first.kind == "name" and first.text in LANGUAGE_WORDS
        hint = f"Write `{first.text}:`." if is_known else ""
        message = "the line is not an entry `key: value`"
        self._problems.append(SyntaxProblem(message, line.position, hint))

    def _block(self, entry: _Entry) -> tuple[Field, ...]:
        """Return the fields of a block, which has no value on its line."""
        self._end(entry)
        return self._fields(entry.line.children)

    def _end(self, entry: _Entry) -> None:
        try:
            entry.reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)

    def _fields(self, lines: Sequence[Line]) -> tuple[Field, ...]:
        return tuple(self._field(entry) for entry in self._entries(lines))

    def _field(self, entry: _Entry) -> Field:
        key, name, reader, line = entry
        children = line.children
        if reader.skip("->"):
            self._end(entry)
            self._statements.read(children)
            return Field(key, name, None, (), (), line.position)
        value = self._value(entry)
        if isinstance(value, Template) and children:
            self._refuse(children[0])
        if children and all(is_statement(child) for child in children):
            self._statements.read_call(children)
            return Field(key, name, value, (), (), line.position)
        dashes = [child for child in children if _is_item(child)]
        if dashes and len(dashes) == len(children):
            return Field(key, name, value, (), tuple(self._item(child) for child in children), line.position)
        return Field(key, name, value, self._fields(children), (), line.position)

    def _item(self, line: Line) -> tuple[Field, ...]:
        """Return the fields of an item of a list, `- value` or `- key: value` with others below it."""
        if len(line.tokens) == 1:
            return self._fields(line.children)
        rest = Line(line.indent, line.tokens[1:], line.tokens[1].position)
        if is_entry(rest):
            return self._fields([rest, *line.children])
        reader = reader_of(rest, self._problems)
        value = self._value(_Entry("", "", reader, rest))
        return (Field("", "", value, self._fields(line.children), (), line.position),)

    def _value(self, entry: _Entry) -> Expression | None:
        """Return the value on the line of a key; a declaration or a call is read, and its expression returned."""
        reader = entry.reader
        if reader.token is None:
            return None
        try:
            if template := reader.read_template():
                reader.expect_end()
                return template
            any(reader.skip(modifier) for modifier in _MODIFIERS)
            value = reader.read_expression()
            if reader.skip("="):
                reader.read_expression()
            self._read_call(reader, [])
            reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)
            return None
        return value

    def _read_call(self, reader: TokenReader, inputs: list[With]) -> Expression | None:
        """Read `to TARGET` and `with NAME=VALUE` behind an expression; return the target."""
        target: Expression | None = None
        while reader.at("to") or reader.at("with"):
            if reader.skip("to"):
                target = reader.read_expression()
            else:
                reader.skip("with")
                self._statements.read_inputs(reader, inputs)
            reader.skip(",")
        return target

    def _system(self, entry: _Entry) -> tuple[tuple[Statement, ...] | None, tuple[Field, ...]]:
        """Return the instructions of a block `system`, and its other fields."""
        self._end(entry)
        instructions: tuple[Statement, ...] | None = None
        fields: list[Field] = []
        for below in self._entries(entry.line.children):
            if below.key == "instructions":
                instructions = self._procedure(below)
            else:
                fields.append(self._field(below))
        return instructions, tuple(fields)

    def _procedure(self, entry: _Entry) -> tuple[Statement, ...]:
        """Return the statements of a procedure, or the text of a quoted string or a template as a statement."""
        reader, line = entry.reader, entry.line
        reader.skip("->")
        if reader.token is None:
            return self._statements.read(line.children)
        position = reader.position
        try:
            value = reader.read_template() or reader.read_expression()
            reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)
            return self._statements.read(line.children)
        if isinstance(value, Literal) and isinstance(value.value, str):
            value = Template((value.value,), position)
        if not isinstance(value, Template):
            self._problems.append(SyntaxProblem("a text or statements are expected", position))
            return self._statements.read(line.children)
        return (Text(value, position), *self._statements.read(line.children))

    def _variables(self, entry: _Entry) -> Iterator[Variable]:
        self._end(entry)
        for below in self._entries(entry.line.children):
            modifier = next((word for word in _MODIFIERS if below.reader.skip(word)), "")
            if below.reader.token is None:
                hint = "Write `mutable string`, or another type."
                self._problems.append(
                    SyntaxProblem(f"the variable {below.key!r} has no type", below.reader.position, hint)
                )
            kind, default = self._declaration(below)
            fields = self._fields(below.line.children)
            source = next((field.value for field in fields if field.key == "source"), None)
            description = field_text(fields, "description")
            position = below.line.position
            yield Variable(below.key, modifier, kind, default, description, source, fields, position)

    def _parameters(self, entry: _Entry) -> tuple[Parameter, ...]:
        self._end(entry)
        return tuple(
            Parameter(below.key, *self._declaration(below), self._fields(below.line.children), below.line.position)
            for below in self._entries(entry.line.children)
        )

    def _declaration(self, entry: _Entry) -> tuple[str, Expression | None]:
        """Return the type and the default of a variable or a parameter."""
        reader = entry.reader
        kind, default = "", None
        try:
            if reader.token is not None and not reader.at("="):
                kind = _type_text(reader.read_expression())
            if reader.skip("="):
                default = reader.read_expression()
            reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)
        return kind, default

    def _actions(self, entry: _Entry) -> Iterator[ActionDefinition]:
        self._end(entry)
        for below in self._entries(entry.line.children):
            yield self._action(below)

    def _action(self, entry: _Entry) -> ActionDefinition:
        self._end(entry)
        inputs: tuple[Parameter, ...] = ()
        outputs: tuple[Parameter, ...] = ()
        fields: list[Field] = []
        for below in self._entries(entry.line.children):
            match below.key:
                case "inputs":
                    inputs += self._parameters(below)
                case "outputs":
                    outputs += self._parameters(below)
                case _:
                    fields.append(self._field(below))
        texts = [field_text(tuple(fields), key) for key in ("label", "description", "target")]
        label, description, target = texts
        position = entry.line.position
        return ActionDefinition(entry.key, label, description, inputs, outputs, target, tuple(fields), position)

    def _subagent(self, entry: _Entry) -> Subagent:
        self._end(entry)
        system: tuple[Statement, ...] | None = None
        actions: list[ActionDefinition] = []
        bindings: list[Binding] = []
        before: tuple[Statement, ...] = ()
        instructions: tuple[Statement, ...] = ()
        after: tuple[Statement, ...] = ()
        procedures: list[tuple[str, tuple[Statement, ...]]] = []
        fields: list[Field] = []
        for below in self._entries(entry.line.children):
            match below.key:
                case "system":
                    system, others = self._system(below)
                    fields.append(Field("system", "", None, others, (), below.line.position))
                case "actions":
                    actions += self._actions(below)
                case "before_reasoning":
                    before += self._procedure(below)
                case "after_reasoning":
                    after += self._procedure(below)
                case "reasoning":
                    of_reasoning, its_bindings, its_fields = self._reasoning(below)
                    instructions += of_reasoning
                    bindings += its_bindings
                    fields += its_fields
                case key if key in _PROCEDURES:
                    procedures.append((key, self._procedure(below)))
                case _:
                    fields.append(self._field(below))
        return Subagent(
            entry.key,
            entry.name,
            field_text(tuple(fields), "label"),
            field_text(tuple(fields), "description"),
            system,
            tuple(actions),
            before,
            instructions,
            tuple(bindings),
            after,
            tuple(procedures),
            tuple(fields),
            entry.line.position,
        )

    def _reasoning(self, entry: _Entry) -> tuple[tuple[Statement, ...], list[Binding], list[Field]]:
        self._end(entry)
        instructions: tuple[Statement, ...] = ()
        bindings: list[Binding] = []
        fields: list[Field] = []
        for below in self._entries(entry.line.children):
            match below.key:
                case "instructions":
                    instructions += self._procedure(below)
                case "actions":
                    self._end(below)
                    bindings += [self._binding(binding) for binding in self._entries(below.line.children)]
                case _:
                    fields.append(self._field(below))
        return instructions, bindings, fields

    def _binding(self, entry: _Entry) -> Binding:
        inputs: list[With] = []
        target, to = self._called(entry, inputs)
        guards: list[Expression] = []
        fields: list[Field] = []
        calls: list[Line] = []
        for line in entry.line.children:
            if line.tokens[0].text == "available" and not is_entry(line):
                guards += self._guard(line)
            elif is_entry(line):
                fields += self._fields([line])
            else:
                calls.append(line)
        more_inputs, callbacks = self._statements.read_call(calls)
        return Binding(
            entry.key,
            target,
            to,
            field_text(tuple(fields), "description"),
            tuple(guards),
            (*inputs, *more_inputs),
            callbacks,
            tuple(fields),
            entry.line.position,
        )

    def _called(self, entry: _Entry, inputs: list[With]) -> tuple[Expression | None, Expression | None]:
        reader = entry.reader
        if reader.token is None:
            return None, None
        try:
            target = reader.read_expression()
            to = self._read_call(reader, inputs)
            reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)
            return None, None
        return target, to

    def _guard(self, line: Line) -> list[Expression]:
        reader = reader_of(line, self._problems)
        reader.skip("available")
        try:
            reader.expect("when", "'available'")
            condition = reader.read_expression()
            reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)
            return []
        return [condition]

    def _connected_subagent(self, entry: _Entry) -> ConnectedSubagent:
        self._end(entry)
        inputs: tuple[Parameter, ...] = ()
        after: tuple[Statement, ...] = ()
        fields: list[Field] = []
        for below in self._entries(entry.line.children):
            match below.key:
                case "inputs":
                    inputs += self._parameters(below)
                case "after_response":
                    after += self._procedure(below)
                case _:
                    fields.append(self._field(below))
        label, description, target = (field_text(tuple(fields), key) for key in ("label", "description", "target"))
        position = entry.line.position
        return ConnectedSubagent(entry.name, label, description, target, inputs, after, tuple(fields), position)


def _is_item(line: Line) -> bool:
    """Return whether a line is an item of a list: a dash, and a blank behind it."""
    dash, following = line.tokens[0], line.tokens[1:2]
    return dash.text == "-" and all(token.position.column > dash.position.column + 1 for token in following)


def _messages(fields: Iterable[Field]) -> Iterator[tuple[str, Template]]:
    for block in fields:
        if block.key != "messages":
            continue
        for message in block.fields:
            if isinstance(message.value, Template):
                yield message.key, message.value
            elif text := message.text:
                yield message.key, Template((text,), message.position)


def _type_text(kind: Expression) -> str:
    """Return a type as scripts write it, such as `list[string]`."""
    match kind:
        case Name(name=name):
            return name
        case Index(value=value, index=index):
            return f"{_type_text(value)}[{_type_text(index)}]"
    return ""
