"""Templates of JSON: values with `{{placeholders}}` in their texts."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.jsonvalue import JsonObject, JsonValue

__all__ = ["PLACEHOLDERS", "check_template", "filled_template"]

PLACEHOLDERS: Final = ("utterance", "history", "context", "session")
_MEMBER: Final = "context."
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def check_template(template: JsonValue) -> None:
    """Sees to it that every placeholder has a meaning.

    Raises:
        SettingsError: one has none.
    """
    for name in _names(template):
        if name not in PLACEHOLDERS and not (name.startswith(_MEMBER) and name != _MEMBER):
            near = get_close_matches(name, PLACEHOLDERS, n=1)
            hint = f"Did you mean {{{{{near[0]}}}}}? " if near else ""
            known = ", ".join(f"{{{{{each}}}}}" for each in (*PLACEHOLDERS, "context.NAME"))
            raise SettingsError(
                f"the subject's request has a placeholder that means nothing: {{{{{name}}}}}",
                actions=(f"{hint}Known: {known}.",),
            )


def filled_template(template: JsonValue, values: JsonObject) -> JsonValue:
    """Gives a template with values in place of its placeholders.

    A text that is nothing but a placeholder becomes the value with its JSON type; inside
    other text, a value that is no text is written as JSON, and null as nothing. What the
    values themselves hold is never taken for a placeholder.
    """
    if isinstance(template, dict):
        return {key: filled_template(each, values) for key, each in template.items()}
    if isinstance(template, list):
        return [filled_template(each, values) for each in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return _value(whole[1], values)
    return _PLACEHOLDER.sub(lambda found: _text(_value(found[1], values)), template)


def _names(template: JsonValue) -> Iterator[str]:
    if isinstance(template, dict):
        template = list(template.values())
    if isinstance(template, list):
        for each in template:
            yield from _names(each)
    if isinstance(template, str):
        yield from _PLACEHOLDER.findall(template)


def _value(name: str, values: JsonObject) -> JsonValue:
    context = values.get("context")
    if name.startswith(_MEMBER) and isinstance(context, dict):
        return context.get(name.removeprefix(_MEMBER))
    return values.get(name)


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()
