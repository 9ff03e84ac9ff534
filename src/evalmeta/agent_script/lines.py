"""The lines of a script: tokens, templates, and the tree that their indentation makes."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.agent_script.nodes import Position, SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\f\v\r\u00a0\ufeff\u2060\u200b]+)
    |(?P<comment>\#[^\n]*)
    |(?P<newline>\n)
    |(?P<continued>\\\r?\n)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*")
    |(?P<open_string>"[^\n]*)
    |(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{1,2}(?::[0-9]{2})?(?::[0-9]{2})?(?:\.[0-9]+)?Z?)?)
    |(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<operator>\.\.\.|->|==|!=|<=|>=|[-+*/<>=.,:|@()\[\]{}])
    |(?P<other>.)""",
    re.VERBOSE,
)
_LINE: Final = re.compile(r"(?P<indent>[ \t\ufeff]*)(?P<rest>[^\n]*)")
_BLANKS: Final = frozenset({"blank", "comment", "newline", "continued"})
_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}
_TAB_WIDTH: Final = 3
_MANY_PROBLEMS: Final = 50


class SourceText:
    """A text of a script, with the positions of its characters in the file."""

    __slots__ = ("_places", "_starts", "text")

    def __init__(self, text: str, starts: list[int], places: list[Position]) -> None:
        self.text = text
        self._starts = starts
        self._places = places

    @classmethod
    def of_file(cls, text: str) -> SourceText:
        """Return the whole text of a file."""
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        return cls(text, starts, [Position(number, 1) for number in range(1, len(starts) + 1)])

    def position(self, offset: int) -> Position:
        """Return the position of a character in the file."""
        index = bisect_right(self._starts, offset) - 1
        line, column = self._places[index]
        return Position(line, column + offset - self._starts[index])


class Token(NamedTuple):
    """A token; that of a template (`|`) has its text, without the script's indentation, as `body`."""

    kind: str
    text: str
    position: Position
    body: SourceText | None = None


@dataclass(slots=True)
class Line:
    """A line with the lines that are indented below it; brackets and templates may reach over several lines."""

    indent: int
    tokens: list[Token]
    position: Position
    children: list[Line] = field(default_factory=list)


def read_expression_tokens(source: SourceText, offset: int, problems: list[SyntaxProblem]) -> tuple[list[Token], int]:
    """Return the tokens of an expression in a template, and the offset of the brace behind it; -1 without a brace."""
    tokens: list[Token] = []
    depth = 0
    while match := _TOKEN.match(source.text, offset):
        if match.group() == "}" and not depth:
            return tokens, offset
        if token := _token(match, source, problems):
            tokens.append(token)
            depth += (token.text == "{") - (token.text == "}")
        offset = match.end()
    return tokens, -1


def _read_tokens(source: SourceText, offset: int, problems: list[SyntaxProblem]) -> tuple[list[Token], int]:
    """Return the tokens of a line from an offset on, and the offset of the next line, or that after `|`."""
    tokens: list[Token] = []
    closing: list[str] = []
    # If no bracket is closed, the line ends where its first line ends: that offset, and the tokens until there.
    first_end: tuple[int, int] | None = None
    newlines, known = 0, len(problems)
    # In a script that is damaged in many places, brackets end with their line: searching for their ends takes long.
    most = limits.MAX_SCRIPT_BRACKET_LINES if len(problems) < _MANY_PROBLEMS else 0
    while (match := _TOKEN.match(source.text, offset)) and newlines <= most:
        offset = match.end()
        if match.lastgroup == "newline":
            if not closing:
                return tokens, offset
            newlines += 1
            first_end = first_end or (offset, len(tokens))
        elif token := _token(match, source, problems):
            tokens.append(token)
            if token.text == "|" and not closing:
                return tokens, offset
            if token.text in _BRACKETS:
                closing.append(_BRACKETS[token.text])
            elif closing and token.text == closing[-1]:
                closing.pop()
    if not closing or not first_end:
        return tokens, offset
    end, count = first_end
    behind = source.position(end)
    problems[known:] = [problem for problem in problems[known:] if problem.position < behind]
    opened = next(token for token in reversed(tokens[:count]) if token.text in _BRACKETS)
    problems.append(SyntaxProblem(f"the bracket {opened.text} is not closed", opened.position))
    return tokens[:count], end


def _token(match: re.Match[str], source: SourceText, problems: list[SyntaxProblem]) -> Token | None:
    kind, text = match.lastgroup or "", match.group()
    if kind in _BLANKS:
        return None
    position = source.position(match.start())
    if kind == "other":
        hint = 'Write strings as "text".' if text in "'`" else ""
        problems.append(SyntaxProblem(f"the character {text!r} has no meaning here", position, hint))
        return None
    if kind == "open_string":
        problems.append(SyntaxProblem("the string is not closed", position, 'Add " at its end.'))
        return Token("string", f'{text}"', position)
    return Token(kind, text, position)


def read_lines(text: str, problems: list[SyntaxProblem]) -> list[Line]:
    """Return the lines of a script that are not indented, with the others below them."""
    source = SourceText.of_file(text.replace("\r\n", "\n"))
    top: list[Line] = []
    blocks: list[tuple[int, list[Line]]] = [(0, top)]
    is_deep = False
    for line in _all_lines(source, problems):
        # A line that is indented less than the lines above it belongs to the innermost block that is not deeper.
        is_lower = line.indent < blocks[-1][0]
        while line.indent < blocks[-1][0]:
            blocks.pop()
        indent, lines = blocks[-1]
        if line.indent > indent and lines and not is_lower:
            if len(blocks) > limits.MAX_SCRIPT_DEPTH:
                if not is_deep:
                    message = f"blocks are nested more than {limits.MAX_SCRIPT_DEPTH} levels deep"
                    problems.append(SyntaxProblem(message, line.position))
                is_deep = True
                continue
            lines = lines[-1].children
            blocks.append((line.indent, lines))
        lines.append(line)
    return top


def _all_lines(source: SourceText, problems: list[SyntaxProblem]) -> Iterator[Line]:
    offset = 0
    while offset < len(source.text):
        match = _LINE.match(source.text, offset)
        if match is None or match["rest"].strip() == "" or match["rest"].startswith("#"):
            offset = _next_line(source.text, offset)
            continue
        indent = _width(match["indent"])
        start = match.end("indent")
        tokens, offset = _read_tokens(source, start, problems)
        if tokens and tokens[-1].text == "|" and source.text[offset - 1] == "|":
            body, offset = _read_body(source, offset, indent)
            tokens[-1] = Token("template", "|", tokens[-1].position, body)
        if tokens:
            yield Line(indent, tokens, source.position(start))


def _next_line(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _width(blanks: str) -> int:
    return sum(_TAB_WIDTH if blank == "\t" else 1 for blank in blanks if blank != "\ufeff")


def _read_body(source: SourceText, offset: int, indent: int) -> tuple[SourceText, int]:
    """Return the text of a template from the offset after `|` on, and the offset of the line after it."""
    text = source.text
    end = _next_line(text, offset)
    first = text[offset:end].rstrip("\n")
    blanks = len(first) - len(first.lstrip(" \t"))
    pieces = [(first[blanks:].rstrip(), source.position(offset + blanks))]
    base: int | None = None
    empty: list[tuple[str, Position]] = []
    offset = end
    while offset < len(text):
        match = _LINE.match(text, offset)
        if match is None:
            break
        rest, width = match["rest"].rstrip(), _width(match["indent"])
        if not rest:
            empty.append(("", source.position(offset)))
        elif width > indent:
            base = width if base is None else base
            deeper = " " * max(width - base, 0)
            pieces += [*empty, (deeper + rest, _before(source.position(match.end("indent")), len(deeper)))]
            empty = []
        else:
            break
        offset = _next_line(text, offset)
    if not pieces[0][0] and len(pieces) > 1:
        del pieces[0]
    starts, length = [], 0
    for piece, _ in pieces:
        starts.append(length)
        length += len(piece) + 1
    return SourceText("\n".join(piece for piece, _ in pieces), starts, [place for _, place in pieces]), offset


def _before(position: Position, characters: int) -> Position:
    return Position(position.line, position.column - characters)
