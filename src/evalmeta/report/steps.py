"""The steps of an agent in one turn as lines: an indented tree with the times and the tokens in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model.steps import Step, StepKind, step_tree
from evalmeta.report.summary import milliseconds
from evalmeta.report.text import count, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.steps import StepTree

STEPS_LABEL: Final = "steps"
ERROR_WORD: Final = "error: "
# With these, a tree is shorter than `text.SHOWN_CHARS`.
_MAX_LINES: Final = 36
_MAX_CHARS: Final = 96
_MIN_CHARS: Final = 20
_INDENT: Final = "  "
_GAP: Final = "  "
_SECOND: Final = 1_000


class _Row(NamedTuple):
    level: int
    text: str
    duration: str = ""
    tokens: str = ""
    is_step: bool = True


def steps_text(generated: GeneratedData, *, chars: int) -> str:
    """Return the steps of an answer, a line for each of at most `chars` characters; empty if it has none.

    The error of a step is on a line of its own, which begins with `ERROR_WORD`.
    """
    tree = step_tree(generated)
    if tree is None or not tree.steps:
        return ""
    rows = list(_rows(tree.steps))
    lines = _lines(rows[:_MAX_LINES], max(min(chars, _MAX_CHARS), _MIN_CHARS))
    return "\n".join((*lines, *_left_out(rows[_MAX_LINES:], tree)))


def _rows(steps: Sequence[Step], level: int = 0) -> Iterator[_Row]:
    for step in steps:
        yield _Row(level, _called(step), _duration(step), _tokens(step))
        if step.error is not None:
            yield _Row(level + 1, f"{ERROR_WORD}{step.error}", is_step=False)
        yield from _rows(step.steps, level + 1)


def _lines(rows: Sequence[_Row], chars: int) -> Iterator[str]:
    duration, tokens = (
        max(map(len, column)) for column in zip(*((row.duration, row.tokens) for row in rows), strict=True)
    )
    room = max(chars - sum(width + len(_GAP) for width in (duration, tokens) if width), _MIN_CHARS)
    texts = [_fitted(row, room if row.is_step else chars) for row in rows]
    width = max((len(text) for text, row in zip(texts, rows, strict=True) if row.is_step), default=0)
    for text, row in zip(texts, rows, strict=True):
        columns = (f"{text:{width}}", f"{row.duration:>{duration}}" if duration else "", row.tokens)
        yield _GAP.join(filter(None, columns)).rstrip() if row.is_step else text


def _fitted(row: _Row, chars: int) -> str:
    indent = (_INDENT * row.level)[: chars - _MIN_CHARS // 2]
    return indent + one_line(row.text, chars=chars - len(indent))


def _called(step: Step) -> str:
    if step.kind is not StepKind.TOOL:
        return f"{step.kind} {step.name}".rstrip()
    return f"{step.kind} {step.name}({_arguments(step.input)})"


def _arguments(given: JsonValue) -> str:
    if isinstance(given, dict):
        return ", ".join(f"{name}={orjson.dumps(value).decode()}" for name, value in given.items())
    return given if isinstance(given, str) else "" if given is None else orjson.dumps(given).decode()


def _duration(step: Step) -> str:
    if step.duration_ms is None:
        return ""
    return (
        milliseconds(step.duration_ms) if step.duration_ms < _SECOND else seconds(round(step.duration_ms / _SECOND, 1))
    )


def _tokens(step: Step) -> str:
    if step.tokens is None:
        return ""
    if step.tokens.total is not None:
        return count(step.tokens.total, "token")
    parts = ((step.tokens.input, "in"), (step.tokens.output, "out"))
    return ", ".join(f"{number:,} tokens {way}" for number, way in parts if number is not None)


def _left_out(rows: Sequence[_Row], tree: StepTree) -> Iterator[str]:
    if rows:
        errors = sum(not row.is_step for row in rows)
        noted = f", {count(errors, 'error')} among them" if errors else ""
        yield f"... and {count(len(rows) - errors, 'more step')}{noted}; the json report has all"
    if text := not_kept_text(tree):
        yield text


def not_kept_text(tree: StepTree) -> str:
    """Return what a tree lacks because of the limits of traces; empty if it is complete."""
    parts = (
        count(tree.left_out_steps, "step") if tree.left_out_steps else "",
        f"{count(tree.left_out_bytes, 'byte')} of texts" if tree.left_out_bytes else "",
    )
    return f"not kept: {' and '.join(filter(None, parts))}" if any(parts) else ""
