"""Differences of definitions for people and for programs: by test case, old above new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from evalmeta.model.change import ChangeKind
from evalmeta.report.plain import one_line, quote, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.change import Change, Difference
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["Line", "difference_json", "difference_lines"]

Style = Literal["title", "plain", "old", "new"]


class Line(NamedTuple):
    """Clean text, and how it is to look."""

    style: Style
    text: str


def difference_lines(difference: Difference) -> Iterator[Line]:
    """Writes a difference: a title, then each change under its test case, `-` old and `+` new."""
    yield Line("title", one_line(_title(difference), chars=400))
    if difference.is_form_only:
        yield Line("plain", "  the same content in another form: order, layout, escaping or comments")
    case: int | None = None
    for change in difference.changes:
        if change.case is not None and change.case != case and change.what:
            yield Line("plain", f"  test case {change.case}")
        case = change.case
        yield from _change(change)


def difference_json(difference: Difference) -> JsonObject:
    """Gives a difference as JSON values, without its problems."""
    return {
        "fullName": difference.name or None,
        "before": difference.before,
        "after": difference.after,
        "formOnly": difference.is_form_only,
        "changes": [
            {
                "kind": change.kind.value,
                "testCase": change.case,
                "what": list(change.what),
                "before": change.before,
                "after": change.after,
            }
            for change in difference.changes
        ],
    }


def _title(difference: Difference) -> str:
    if difference.before is None:
        return f"{difference.name}: only in the project ({difference.after})"
    if difference.after is None:
        return f"{difference.name}: only in {difference.before}"
    sides = f"- {difference.before}, + {difference.after}"
    return f"{difference.name} ({sides})" if difference.name else sides


def _change(change: Change) -> Iterator[Line]:
    what = one_line(", ".join(change.what) or f"test case {change.case}", chars=400)
    indent = "  " if change.case is None or not change.what else "    "
    word = "" if change.kind is ChangeKind.CHANGED else f": {change.kind}"
    yield Line("plain", f"{indent}{what}{word}")
    exact = _differ_in_blanks(change)
    if change.before is not None:
        yield Line("old", _text(change.before, first=f"{indent}  - ", exact=exact))
    if change.after is not None:
        yield Line("new", _text(change.after, first=f"{indent}  + ", exact=exact))


def _differ_in_blanks(change: Change) -> bool:
    return change.before is not None and change.after is not None and change.before.split() == change.after.split()


def _text(text: str, *, first: str, exact: bool) -> str:
    shown = quote(text) if exact or text != text.strip() or not text else text
    return wrap(shown, first=first, indent=" " * len(first))
