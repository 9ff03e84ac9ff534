"""JSON Schema of answers: a schema is checked when its test file is read, and nothing is ever loaded for it.

A `$ref` leads into the schema itself or to a published draft. Patterns are those of `model/checks.py`, so that no
answer can hang a run.
"""

from __future__ import annotations

from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, cast

import orjson

from evalmeta.model.checks import Pattern, PatternSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from evalmeta.model.json_value import JsonValue


_MAX_FAULTS: Final = 100
_SHOWN: Final = 100
# Of each type of JSON.
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords that say something about the schema, or about others of its keywords.
_ANNOTATIONS: Final = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "$comment",
        "$id",
        "id",
        "$schema",
        "$anchor",
        "$defs",
        "definitions",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$vocabulary",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "then",
        "else",
        "minContains",
        "maxContains",
    ]
)
_NEAR: Final = 0.8
_INSTANCES: Final[Sequence[JsonValue]] = (None, "", 0, [], {})


class SchemaFault(ValueError):
    """The value is not a schema that can be used; the message says why."""


class _Error(Protocol):
    """What jsonschema says of a value that is not as the schema requires."""

    instance: JsonValue
    validator: str
    validator_value: JsonValue
    message: str

    @property
    def json_path(self) -> str: ...


class _Validator(Protocol):
    def iter_errors(self, instance: JsonValue) -> Iterator[_Error]: ...


def check_schema(schema: JsonValue) -> None:
    """Raise SchemaFault if answers cannot be compared with the schema."""
    _compiled(_written(schema))


def fault_of(schema: JsonValue, value: JsonValue, *, path: str = "$") -> str:
    """Return the path, what was expected there and what a value has; empty if the value is as the schema requires."""
    from jsonschema.exceptions import best_match

    errors = [*islice(_compiled(_written(schema)).iter_errors(value), _MAX_FAULTS)]
    if not errors:
        return ""
    error = cast("_Error", best_match(errors))
    place = f"{path}{error.json_path.removeprefix('$')}"
    others = f"; {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"{place}: expected {_expected(error)}, got {_shown(error.instance)}{others}"


def _expected(error: _Error) -> str:
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [name for name in cast("list[str]", error.validator_value) if name not in error.instance]
        return f"the key {', '.join(map(repr, missing))}"
    if error.validator == "additionalProperties" and error.validator_value is False:
        return f"no other keys ({error.message})"
    return f"{error.validator} {_shown(error.validator_value)}"


def _shown(value: JsonValue) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _written(schema: JsonValue) -> bytes:
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)


def _own_keywords() -> Mapping[str, Callable[[object, str, JsonValue, object], Iterator[Exception]]]:
    """Return the keywords that are judged here: patterns that cannot hang, and multiples of decimal numbers."""
    from jsonschema.exceptions import ValidationError

    def pattern(_: object, wanted: str, instance: JsonValue, __: object) -> Iterator[Exception]:
        if isinstance(instance, str) and not Pattern(wanted).is_in(instance):
            yield ValidationError(f"{instance!r:.100} does not match {wanted!r:.100}")

    def multiple(_: object, of: str, instance: JsonValue, __: object) -> Iterator[Exception]:
        is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
        # 1.13 is a multiple of 0.01, though not as a binary fraction.
        if is_number and Decimal(str(instance)) % Decimal(str(of)):
            yield ValidationError(f"{instance} is not a multiple of {of}")

    return {"pattern": pattern, "multipleOf": multiple}


@lru_cache(maxsize=256)
def _compiled(text: bytes) -> _Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend, validator_for
    from jsonschema_specifications import REGISTRY

    schema = orjson.loads(text)
    if not isinstance(schema, dict):
        raise SchemaFault("a schema is a mapping, such as {type: object}")
    if not schema:
        raise SchemaFault("an empty schema accepts every JSON value, so it checks nothing")
    draft = validator_for(schema, default=None) if "$schema" in schema else Draft202012Validator
    if draft is None:
        raise SchemaFault(f"its $schema is not a draft that is known: {_shown(schema['$schema'])}")
    _check_keywords(schema, draft.VALIDATORS)
    try:
        # Also what a meta-schema cannot resolve.
        _check_parts(schema, _ANNOTATIONS | draft.VALIDATORS.keys())
        draft.check_schema(schema)
    except SchemaError as error:
        raise SchemaFault(f"{error.json_path}: {error.message:.200}") from None
    try:
        validator = extend(draft, _own_keywords())(schema, registry=REGISTRY)
        # Meets a reference that leads to itself.
        for instance in _INSTANCES:
            validator.is_valid(instance)
    except RecursionError:
        raise SchemaFault("a $ref leads to itself") from None
    return cast("_Validator", validator)


def _check_keywords(schema: Mapping[str, JsonValue], keywords: Mapping[str, object]) -> None:
    if schema.keys().isdisjoint(keywords):
        raise SchemaFault("it has no keyword of JSON Schema, so it checks nothing")


def _check_parts(schema: JsonValue, known: AbstractSet[str]) -> None:
    """Raise SchemaFault for a reference or a pattern that cannot be used, and for a mistyped keyword."""
    from jsonschema_specifications import REGISTRY
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    whole = Resource.from_contents(schema, default_specification=DRAFT202012)
    parts = [(whole, REGISTRY.resolver_with_root(whole))]
    while parts:
        resource, resolver = parts.pop()
        keys = resource.contents if isinstance(resource.contents, dict) else {}
        for key in keys:
            if key not in known and (near := get_close_matches(key, known, n=1, cutoff=_NEAR)):
                raise SchemaFault(f"{key!r} is not a keyword of JSON Schema; did you mean {near[0]!r}?")
        for key in _REFERENCES:
            if isinstance(reference := keys.get(key), str):
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    raise SchemaFault(
                        f"the {key} {reference!r:.200} is not in the schema, and no other one is loaded"
                    ) from None
        if "patternProperties" in keys:
            raise SchemaFault("patternProperties is not supported; use properties or additionalProperties")
        try:
            Pattern(str(keys.get("pattern", "")))
        except PatternSyntax as error:
            raise SchemaFault(f"the pattern {keys['pattern']!r:.100} is not a valid one: {error}") from None
        parts += [(part, resolver.in_subresource(part)) for part in resource.subresources()]
