"""Procedures: the statements in the lines of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.expressions import TokenReader, Unreadable, shown_token
from evalmeta.agent_script.nodes import Collect, If, Literal, Position, Run, Set, SyntaxProblem, Text, Transition, With
from evalmeta.errors import nearest_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evalmeta.agent_script.lines import Line
    from evalmeta.agent_script.nodes import Expression, Field, Statement

_KEYWORDS: Final = frozenset({"if", "else", "elif", "run", "set", "transition", "with", "available", "collect"})
_PLACES: Final = {
    "with": "Indent it below `run`, or below an entry of reasoning.actions.",
    "available": "Move it below an entry of reasoning.actions.",
    "else": "Write it after the statements of an `if`, with the same indentation.",
}
_MAX_BRANCHES: Final = 100


def reader_of(line: Line, problems: list[SyntaxProblem]) -> TokenReader:
    """Return a reader of the tokens of a line."""
    last = line.tokens[-1]
    return TokenReader(line.tokens, problems, Position(last.position.line, last.position.column + len(last.text)))


def is_entry(line: Line) -> bool:
    """Return whether a line is `key:` or `key name:`."""
    texts = [token.text for token in line.tokens[:3]]
    if not texts or line.tokens[0].kind not in {"name", "string"}:
        return False
    if len(texts) > 1 and texts[1] == ":":
        return texts[0] != "else"
    is_named = texts[2:] == [":"] and line.tokens[1].kind in {"name", "string"}
    return is_named and texts[0] not in {"if", "else", "elif", "run", "collect"}


def is_statement(line: Line) -> bool:
    """Return whether a line is a statement of a procedure, or a part of one such as `with`."""
    if is_entry(line):
        return False
    first = line.tokens[0]
    return first.kind == "template" or (first.kind == "name" and first.text in _KEYWORDS)


class StatementReader:
    """Reads the statements of blocks, and reports those that it cannot read."""

    def __init__(
        self, problems: list[SyntaxProblem], read_fields: Callable[[Sequence[Line]], tuple[Field, ...]]
    ) -> None:
        self._problems = problems
        self._read_fields = read_fields

    def read(self, lines: Iterable[Line]) -> tuple[Statement, ...]:
        """Return the statements in lines."""
        statements: list[Statement] = []
        groups: list[list[Line]] = []
        for line in lines:
            if _is_branch(line) and groups and groups[-1][0].tokens[0].text == "if":
                groups[-1].append(line)
            else:
                groups.append([line])
        for line, *branches in groups:
            try:
                statements.append(self._if(line, branches) if line.tokens[0].text == "if" else self._statement(line))
            except Unreadable as error:
                self._problems.append(error.problem)
        return tuple(statements)

    def read_call(self, lines: Sequence[Line]) -> tuple[tuple[With, ...], tuple[Statement, ...]]:
        """Return the inputs of an action, and the statements that follow when it has returned."""
        inputs: list[With] = []
        callbacks: list[Line] = []
        for line in lines:
            if line.tokens[0].text != "with" or is_entry(line):
                callbacks.append(line)
                continue
            if callbacks:
                hint = "Move it to the line after `run`."
                message = "`with` stands after the statements that follow the call"
                self._problems.append(SyntaxProblem(message, line.position, hint))
            inputs += self.read_with(line)
        return tuple(inputs), self.read(callbacks)

    def read_with(self, line: Line) -> list[With]:
        """Return the inputs of a line `with name=value, name=value`."""
        reader = reader_of(line, self._problems)
        inputs: list[With] = []
        try:
            reader.expect("with", "the action")
            self.read_inputs(reader, inputs)
            self._end(reader, line)
        except Unreadable as error:
            self._problems.append(error.problem)
        return inputs

    def read_inputs(self, reader: TokenReader, inputs: list[With]) -> None:
        """Add `name=value` and those after commas to inputs; the word `with` is behind the reader."""
        while True:
            position = reader.position
            name = reader.take_name("the name of an input")
            reader.expect("=", "the name of an input")
            inputs.append(With(name, reader.read_expression(), position))
            if not reader.skip(","):
                return
            reader.skip("with")

    def _statement(self, line: Line) -> Statement:
        reader = reader_of(line, self._problems)
        position = line.position
        if template := reader.read_template():
            self._refuse_children(line)
            return Text(template, position)
        if is_entry(line) or not is_statement(line):
            first = line.tokens[0]
            near = nearest_word(first.text, _KEYWORDS) if first.kind == "name" else ""
            hint = f"Did you mean {near}? " if near else ""
            hint += "Statements begin with |, set, run, transition to or if."
            raise Unreadable(f"{shown_token(first)} does not begin a statement", position, hint)
        keyword = reader.take_name("a statement")
        match keyword:
            case "set":
                target = reader.read_expression()
                reader.expect("=", "the variable")
                value = reader.read_expression()
                self._end(reader, line)
                return Set(target, value, position)
            case "run":
                action = reader.read_expression()
                reader.expect_end()
                return Run(action, *self.read_call(line.children), position)
            case "transition":
                return self._transition(reader, line)
            case "collect":
                target = reader.read_expression()
                reader.expect_end()
                return Collect(target, self._read_fields(line.children), position)
        raise Unreadable(f"{keyword!r} is not expected here", position, _PLACES.get(keyword, ""))

    def _transition(self, reader: TokenReader, line: Line) -> Transition:
        reader.expect("to", "'transition'")
        target = reader.read_expression()
        inputs: list[With] = []
        reader.skip(",")
        if reader.skip("with"):
            self.read_inputs(reader, inputs)
        self._end(reader, line)
        return Transition(target, tuple(inputs), line.position)

    def _if(self, line: Line, branches: Sequence[Line]) -> If:
        reader = reader_of(line, self._problems)
        reader.skip("if")
        condition = self._condition(reader)
        then = self._branch(line)
        if len(branches) > _MAX_BRANCHES:
            raise Unreadable(f"an `if` has more than {_MAX_BRANCHES} branches", branches[_MAX_BRANCHES].position)
        otherwise: tuple[Statement, ...] = ()
        for branch in reversed(branches):
            reader = reader_of(branch, self._problems)
            if reader.skip("elif"):
                message = "'elif' is not a statement of Agent Script"
                self._problems.append(SyntaxProblem(message, branch.position, "Write `else if`."))
            elif reader.skip("else") and not reader.at("if"):
                if branch is not branches[-1]:
                    message = "a branch follows the `else` of an `if`"
                    self._problems.append(SyntaxProblem(message, branch.position))
                reader.expect(":", "'else'")
                reader.expect_end()
                otherwise = self._branch(branch)
                continue
            reader.skip("if")
            otherwise = (If(self._condition(reader), self._branch(branch), otherwise, branch.position),)
        return If(condition, then, otherwise, line.position)

    def _condition(self, reader: TokenReader) -> Expression:
        """Return a condition; one that cannot be read is reported, and does not hide the statements below it."""
        try:
            condition = reader.read_expression()
            reader.expect(":", "the condition")
            reader.expect_end()
        except Unreadable as error:
            self._problems.append(error.problem)
            return Literal(None, error.problem.position)
        return condition

    def _branch(self, line: Line) -> tuple[Statement, ...]:
        if not line.children:
            self._problems.append(SyntaxProblem("a branch has no statements", line.position, "Indent them below it."))
        return self.read(line.children)

    def _end(self, reader: TokenReader, line: Line) -> None:
        reader.expect_end()
        self._refuse_children(line)

    def _refuse_children(self, line: Line) -> None:
        if line.children:
            message = f"nothing can be indented below {shown_token(line.tokens[0])}"
            self._problems.append(SyntaxProblem(message, line.children[0].position))


def _is_branch(line: Line) -> bool:
    return line.tokens[0].kind == "name" and line.tokens[0].text in {"else", "elif"} and not is_entry(line)
