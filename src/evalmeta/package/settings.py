"""Reading of `evalmeta.toml`, with the line and key of each error."""

from __future__ import annotations

import json
import re
import tomllib
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from evalmeta.errors import SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS, likely_target
from evalmeta.model.problem import Location, Problem, Severity, quote
from evalmeta.model.settings import Settings, rater_adapter, subject_adapter
from evalmeta.package.files import key_name, read_text, shown
from evalmeta.plugins import Group, plugin_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails


_PLACE: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")
_CANDIDATE_LINES: Final = 20
_ADAPTERS: Final = {"subjects": tuple(ENTRY_POINTS["subjects"]), "raters": tuple(ENTRY_POINTS["rater_settings"])}
_TYPES: Final = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
# What a text must be that does not match the pattern of its key.
_FORMS: Final = {
    "agent_id": "the id of a BotDefinition, which begins with 0Xx and has 15 or 18 characters",
    "url": "the address of the Agent API, which ends in /v1",
}


def load_settings(path: Path) -> Settings:
    """Read `evalmeta.toml`; the SettingsError of an invalid file has a problem for each value, with line and key."""
    text = read_text(path, raises=SettingsError)
    table = _parse(path, text)
    try:
        # As JSON, texts are not taken for numbers, but lists can be tuples and texts can be paths.
        settings = Settings.model_validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        problems = [_problem(path, text, table, detail) for detail in error.errors(include_url=False)]
        raise _refusal(path, [*problems, *_unknown_adapters(path, text, table)]) from error
    if problems := list(_unknown_adapters(path, text, table)):
        raise _refusal(path, problems)
    return settings


def _refusal(path: Path, problems: Iterable[Problem]) -> SettingsError:
    ordered = sorted(problems, key=lambda problem: problem.location)
    lines = [f"{problem.location}: {problem.message}. {problem.hint}".rstrip() for problem in ordered]
    return SettingsError("\n".join(lines), problems=ordered, actions=(f"Correct {shown(path)}; nothing was done.",))


def _parse(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        message = str(error)
        place = _PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, 0)
        what = f"this is not valid TOML: {_PLACE.sub('', message)}"
        raise _refusal(path, [_problem_at(path, (line, column), what, "", code="settings-toml")]) from error
    except RecursionError as error:
        raise SettingsError(f"{shown(path)} is nested too deeply") from error


def _unknown_adapters(path: Path, text: str, table: Mapping[str, object]) -> Iterator[Problem]:
    groups: tuple[Group, ...] = ("subjects", "raters")
    for group in groups:
        bound = table.get(group)
        for name, settings in bound.items() if isinstance(bound, dict) else ():
            adapter = settings.get("adapter") if isinstance(settings, dict) else None
            known = [*_ADAPTERS[group], *plugin_names(group)] if isinstance(adapter, str) else []
            if isinstance(adapter, str) and adapter not in known:
                keys = [group, name, "adapter"]
                message = f"{key_name(keys)} {quote(adapter)} is not a valid adapter"
                yield _problem_at(path, _place_of(text, keys), message, _nearest(adapter, known))


def _problem(path: Path, text: str, table: Mapping[str, object], detail: ErrorDetails) -> Problem:
    loc = detail["loc"]
    if not loc:
        return _problem_at(path, (0, 0), "is nested too deeply", "Use fewer levels.")
    keys = loc
    if misspelt := _misspelt_adapter(detail):
        keys = (*keys, misspelt)
        return _problem_at(path, _place_of(text, keys), f"{key_name(keys)} is not a valid key", "Did you mean adapter?")
    message, hint = _reason(detail, str(keys[-1]), table)
    place = _place_of(text, keys[:-1] if detail["type"] == "missing" else keys)
    # What is wrong with a rater's settings as a whole names their keys itself.
    return _problem_at(path, place, f"{key_name(keys)}{':' if detail['type'] == 'rater' else ''} {message}", hint)


def _problem_at(
    path: Path, place: tuple[int, int], message: str, hint: str, *, code: str = "settings-invalid"
) -> Problem:
    return Problem(code, Severity.ERROR, Location(shown(path), *place), message, hint)


def _misspelt_adapter(detail: ErrorDetails) -> str | None:
    table = detail["input"]
    if detail["type"] != "adapter_missing" or not isinstance(table, dict):
        return None
    return next(iter(get_close_matches("adapter", table, n=1)), None)


def _reason(detail: ErrorDetails, key: str, table: Mapping[str, object]) -> tuple[str, str]:
    """Return what is wrong with a value, and what to do about it."""
    kind = detail["type"]
    if kind == "extra_forbidden":
        *place, wrong = detail["loc"]
        return "is not a valid key", _nearest(str(wrong), _known_keys(place, table))
    if kind == "missing":
        return "is missing", f"Add {key} = ..."
    if kind == "adapter_missing":
        return "has no adapter", f"Add adapter = ... Known: {', '.join(_ADAPTERS[str(detail['loc'][0])])}."
    return _value_reason(detail, key)


def _value_reason(detail: ErrorDetails, key: str) -> tuple[str, str]:
    kind, value = detail["type"], detail["input"]
    if kind not in _TYPES and kind != "string_pattern_mismatch" and not detail["msg"].startswith("Input should be "):
        return detail["msg"].removeprefix("Value error, "), ""
    required = _TYPES.get(kind) or detail["msg"].removeprefix("Input should be ")
    hint = f"Write {key} = {value}, without quotes." if kind in _TYPES and _is_number(value) else ""
    if kind == "string_pattern_mismatch":
        required = _FORMS.get(key, "module:name")
        hint = "" if key in _FORMS else f"Write {likely_target(str(value))}."
    return f"must be {required}, not {_shown_value(value)}", hint


def _shown_value(value: object) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a table"
    return quote(value) if isinstance(value, str) else json.dumps(value)


def _is_number(value: object) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"\d+(?:\.\d+)?", value))


def _nearest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1)
    return f"{f'Did you mean {near[0]}? ' if near else ''}Known: {', '.join(known)}."


def _known_keys(loc: Sequence[str | int], table: Mapping[str, object]) -> list[str]:
    if loc and loc[0] in _ADAPTERS:
        adapter = str(_item(_item(_item(table, loc[0]), loc[1]), "adapter"))
        model = subject_adapter(adapter) if loc[0] == "subjects" else rater_adapter(adapter)
        return list(model.model_fields) if model else []
    schema = Settings.model_json_schema()
    node = schema
    for key in loc:
        node = node["items"] if isinstance(key, int) else node["properties"][key]
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return list(node["properties"])


def place_of_key(path: Path, keys: Sequence[str | int]) -> tuple[int, int]:
    """Return line and column of a key of a file; both are 0 if they are unknown."""
    return _place_of(read_text(path, raises=SettingsError), keys)


def _place_of(text: str, keys: Sequence[str | int]) -> tuple[int, int]:
    """Return line and column of the line that adds the key, which the file up to there has for the first time.

    Both are 0 if there is no such line.
    """
    lines, key = text.split("\n"), next(step for step in reversed(keys) if isinstance(step, str))
    candidates = (number for number, line in enumerate(lines) if key in line)
    for number in islice(candidates, _CANDIDATE_LINES):
        if not _holds(lines[:number], keys) and _holds(lines[: number + 1], keys):
            return number + 1, lines[number].index(key) + 1
    return 0, 0


def _holds(lines: Sequence[str], keys: Sequence[str | int]) -> bool:
    try:
        node: object = tomllib.loads("\n".join(lines))
    except ValueError:
        return False
    for key in keys:
        node = _item(node, key)
        if node is None:
            return False
    return True


def _item(node: object, key: str | int) -> object:
    if isinstance(node, dict):
        return node.get(key)
    return node[key] if isinstance(node, list) and isinstance(key, int) and key < len(node) else None
