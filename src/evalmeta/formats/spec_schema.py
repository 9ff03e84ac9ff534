"""The JSON Schema of test specs: a published file, in which the properties of checks derive from their declarations."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Final

from evalmeta.plugins import all_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.checks import Check, Shape
    from evalmeta.model.json_value import JsonValue


_DEFINITIONS: Final[Mapping[Shape, str]] = {
    "text": "optional",
    **dict.fromkeys(("texts", "any text", "patterns", "criteria"), "oneOrMore"),
    "functions": "functions",
    "maximum": "maximum",
    "actions": "texts",
}
_ONE_OR_MORE_JSON: Final[JsonValue] = [
    {"$ref": "#/$defs/jsonCheck"},
    {"type": "array", "items": {"$ref": "#/$defs/jsonCheck"}},
    {"type": "null"},
]
# The properties of checks stand between those of sf and the flags.
_PROPERTIES: Final = re.compile(r'(?<="#/\$defs/customEvaluation"}},\n).*?(?= *"exact": )', re.DOTALL)


def spec_schema() -> bytes:
    """Return the published schema, with the checks of installed packages."""
    return with_checks(published_schema(), all_checks().values()).encode()


def published_schema() -> str:
    """Return the content of the published file."""
    return (resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_text(encoding="utf-8")


def with_checks(schema: str, checks: Iterable[Check]) -> str:
    """Return the text of the schema with properties for these checks."""
    properties = "".join(map(_property, checks))
    return _PROPERTIES.sub(lambda _: properties, schema, count=1)


def _property(check: Check) -> str:
    name, says = json.dumps(check.name), json.dumps(check.says, ensure_ascii=False)
    if check.shape == "json":
        any_of = json.dumps(_ONE_OR_MORE_JSON)
        return f'        {name}: {{\n          "description": {says},\n          "anyOf": {any_of}\n        }},\n'
    return f'        {name}: {{"$ref": "#/$defs/{_DEFINITIONS[check.shape]}", "description": {says}}},\n'
