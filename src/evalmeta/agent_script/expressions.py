"""Expressions and templates: a recursive-descent parser over the tokens of a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.agent_script.lines import SourceText, Token, read_expression_tokens
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
    Position,
    Reference,
    SyntaxProblem,
    Template,
    Unary,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.agent_script.nodes import Expression

_CONSTANTS: Final = {"True": True, "False": False, "None": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
# Operators with two operands bind tighter with a higher number; `not` stands between `and` and the comparisons.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN = range(1, 8)
_BINARY: Final = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "is"), _COMPARISON),
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
}


LANGUAGE_WORDS: Final = frozenset(
    {
        *(
            "and",
            "or",
            "not",
            "is",
            "if",
            "else",
            "elif",
            "run",
            "set",
            "transition",
            "to",
            "with",
            "available",
            "when",
        ),
        *("collect", "mutable", "linked", "string", "number", "boolean", "object", "list", "empty"),
        *("True", "False", "None", "system", "config", "variables", "start_agent", "subagent", "topic", "actions"),
        *("inputs", "outputs", "reasoning", "instructions", "before_reasoning", "after_reasoning", "messages"),
        *(
            "language",
            "connection",
            "knowledge",
            "connected_subagent",
            "model_config",
            "description",
            "label",
            "target",
        ),
    }
)
"""Words that messages may show: they are not a part of a value."""
_KINDS: Final = {"string": "a string", "number": "a number", "date": "a date", "name": "a word"}


class Unreadable(Exception):
    """A line cannot be read beyond this point."""

    def __init__(self, message: str, position: Position, hint: str = "") -> None:
        super().__init__(message)
        self.problem = SyntaxProblem(message, position, hint)


def shown_token(token: Token) -> str:
    """Return a token for a message: words of the language as they are; other texts may be secret."""
    if token.kind == "operator" or (token.kind == "name" and token.text in LANGUAGE_WORDS):
        return repr(token.text)
    return _KINDS.get(token.kind, "the text")


class TokenReader:
    """The tokens of a line, or of an expression of a template, read from left to right."""

    __slots__ = ("_end", "_index", "_operators", "_problems", "_tokens")

    def __init__(self, tokens: Sequence[Token], problems: list[SyntaxProblem], end: Position) -> None:
        self._tokens = tokens
        self._problems = problems
        self._index = 0
        self._operators = 0
        self._end = end

    @property
    def position(self) -> Position:
        """Return the position of the next token, or the end of the line."""
        return self._tokens[self._index].position if self._index < len(self._tokens) else self._end

    @property
    def token(self) -> Token | None:
        """Return the next token; None at the end of the line."""
        return self._tokens[self._index] if self._index < len(self._tokens) else None

    def at(self, *texts: str) -> bool:
        """Return whether the next tokens are these names and operators."""
        following = self._tokens[self._index : self._index + len(texts)]
        return tuple(token.text for token in following if token.kind != "string") == texts

    def skip(self, *texts: str) -> bool:
        """Skip the next tokens if they are these; return whether they are."""
        if not self.at(*texts):
            return False
        self._index += len(texts)
        return True

    def expect(self, text: str, after: str) -> None:
        """Skip an operator or a word that must follow."""
        if not self.skip(text):
            raise Unreadable(f"{text!r} is missing after {after}", self.position)

    def take_name(self, what: str) -> str:
        """Return the next token, which must be a name or a string."""
        token = self.token
        if token is None or token.kind not in {"name", "string"}:
            raise Unreadable(f"{what} is missing", self.position)
        self._index += 1
        return unescape(token.text) if token.kind == "string" else token.text

    def expect_end(self) -> None:
        """Refuse what follows on the line."""
        if token := self.token:
            raise Unreadable(f"{shown_token(token)} is not expected here", token.position)

    def read_expression(self, depth: int = 0) -> Expression:
        """Return the expression that follows."""
        value = self._binary(_OR, depth)
        if not self.at("if"):
            return value
        position = self.position
        self._count(position)
        self.skip("if")
        condition = self._binary(_OR, depth + 1)
        self.expect("else", "the condition")
        return Conditional(value, condition, self.read_expression(depth + 1), position)

    def read_template(self) -> Template | None:
        """Return the template that follows (`| text`), if there is one."""
        token = self.token
        if token is None or token.body is None:
            return None
        self._index += 1
        return parse_template(token.body, token.position, self._problems)

    def _binary(self, least: int, depth: int) -> Expression:
        left = self._unary(depth)
        while (token := self.token) and token.kind in {"name", "operator"}:
            binding = _BINARY.get(token.text, 0)
            if binding < least:
                break
            self._count(token.position)
            self._index += 1
            operator = "is not" if token.text == "is" and self.skip("not") else token.text
            left = Binary(operator, left, self._binary(binding + 1, depth + 1), token.position)
        return left

    def _unary(self, depth: int) -> Expression:
        if depth > limits.MAX_SCRIPT_DEPTH:
            message = f"the expression is nested more than {limits.MAX_SCRIPT_DEPTH} levels deep"
            raise Unreadable(message, self.position)
        token = self.token
        if token and token.kind != "string" and token.text in {"not", "+", "-", "*"}:
            self._count(token.position)
            self._index += 1
            return Unary(token.text, self._binary(_NOT if token.text == "not" else _SIGN, depth + 1), token.position)
        value = self._atom(depth)
        while token := self.token:
            if token.kind != "operator" or token.text not in {".", "(", "["}:
                break
            self._count(token.position)
            self._index += 1
            value = self._postfix(value, token, depth)
        return value

    def _postfix(self, value: Expression, token: Token, depth: int) -> Expression:
        if token.text == ".":
            return Member(value, self._member(), token.position)
        if token.text == "[":
            index = self.read_expression(depth + 1)
            self.expect("]", "the index")
            return Index(value, index, token.position)
        return Call(value, tuple(self._items(")", depth)), token.position)

    def _member(self) -> str:
        token = self.token
        if token is None or token.kind != "name":
            raise Unreadable("a name is missing after '.'", self.position)
        self._index += 1
        return token.text

    def _items(self, closing: str, depth: int) -> list[Expression]:
        items: list[Expression] = []
        while not self.skip(closing):
            if items:
                self.expect(",", "an item")
            items.append(self.read_expression(depth + 1))
        return items

    def _atom(self, depth: int) -> Expression:
        token = self.token
        if token is None:
            raise Unreadable("an expression is missing", self.position)
        self._index += 1
        match token.kind:
            case "string":
                return self._string(token)
            case "number":
                return Literal(float(token.text) if "." in token.text else _whole(token), token.position)
            case "date":
                return Literal(token.text, token.position)
            case "name":
                return self._named(token)
        return self._bracketed(token, depth)

    def _named(self, token: Token) -> Expression:
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.position)
        if token.text in {"and", "or", "is", "if", "else"}:
            raise Unreadable(f"an expression is missing before {token.text!r}", token.position)
        return Name(token.text, token.position)

    def _bracketed(self, token: Token, depth: int) -> Expression:
        self._count(token.position)
        match token.text:
            case "...":
                return ModelValue(token.position)
            case "@":
                namespace = self._member_of_namespace()
                return Reference(namespace, self._member() if self.skip(".") else "", token.position)
            case "(":
                value = self.read_expression(depth + 1)
                self.expect(")", "the expression")
                return value
            case "[":
                return ListLiteral(tuple(self._items("]", depth)), token.position)
            case "{":
                return DictLiteral(tuple(self._pairs(depth)), token.position)
        raise Unreadable(f"{shown_token(token)} is not expected here", token.position)

    def _member_of_namespace(self) -> str:
        token = self.token
        if token is None or token.kind != "name":
            raise Unreadable("a name is missing after '@'", self.position)
        self._index += 1
        return token.text

    def _pairs(self, depth: int) -> list[tuple[str, Expression]]:
        pairs: list[tuple[str, Expression]] = []
        while not self.skip("}"):
            if pairs:
                self.expect(",", "a value")
            key = self.take_name("the name of a value")
            self.expect(":", "the name of a value")
            pairs.append((key, self.read_expression(depth + 1)))
        return pairs

    def _string(self, token: Token) -> Expression:
        if unknown := next((match for match in _ESCAPE.finditer(token.text) if match[1] not in _ESCAPES), None):
            position = Position(token.position.line, token.position.column + unknown.start())
            self._problems.append(
                SyntaxProblem(f"{unknown[0]} is not an escape of strings", position, r"Write \\ for a backslash.")
            )
        text = unescape(token.text)
        if "{!" not in text:
            return Literal(text, token.position)
        inside = Position(token.position.line, token.position.column + 1)
        return parse_template(SourceText(text, [0], [inside]), token.position, self._problems)

    def _count(self, position: Position) -> None:
        self._operators += 1
        if self._operators > limits.MAX_SCRIPT_OPERATORS:
            message = f"the expression has more than {limits.MAX_SCRIPT_OPERATORS} operators and brackets"
            raise Unreadable(message, position)


def _whole(token: Token) -> int:
    digits = token.text.lstrip("0")
    if len(digits) > len(str(_MAX_WHOLE)) or int(token.text) > _MAX_WHOLE:
        raise Unreadable(f"a whole number is larger than {_MAX_WHOLE:,}", token.position)
    return int(digits or "0")


# What JSON libraries and databases hold.
_MAX_WHOLE: Final = 2**63 - 1


def unescape(literal: str) -> str:
    """Return the text of a string literal in quotes; unknown escapes stay as they are."""
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), literal[1:-1])


def parse_template(body: SourceText, position: Position, problems: list[SyntaxProblem]) -> Template:
    """Return a template with its expressions; one that cannot be read is reported and stays text."""
    parts: list[str | Expression] = []
    offset = 0
    while (start := body.text.find("{!", offset)) >= 0:
        if start > offset:
            parts.append(body.text[offset:start])
        tokens, end = read_expression_tokens(body, start + 2, problems)
        if end < 0:
            problems.append(SyntaxProblem("the expression {! is not closed", body.position(start), "Add } at its end."))
            parts.append(body.text[start:])
            return Template(tuple(parts), position)
        reader = TokenReader(tokens, problems, body.position(end))
        try:
            parts.append(reader.read_expression())
            reader.expect_end()
        except Unreadable as error:
            problems.append(error.problem)
        offset = end + 1
    if offset < len(body.text):
        parts.append(body.text[offset:])
    return Template(tuple(parts), position)
