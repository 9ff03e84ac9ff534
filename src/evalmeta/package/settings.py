"""Reading of `evalmeta.toml`, with the line and key of each error."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from evalmeta.errors import SettingsError
from evalmeta.model.settings import RATER_ADAPTERS, SUBJECT_ADAPTERS, Settings
from evalmeta.package.config_file import key_name, read_text
from evalmeta.plugins import plugin_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from evalmeta.model.settings import RaterSettings, SubjectSettings
    from evalmeta.plugins import Group


_PLACE: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")
_CANDIDATE_LINES: Final = 20
_ADAPTERS: Final = {"subjects": SUBJECT_ADAPTERS, "raters": RATER_ADAPTERS}
_PLAINER: Final = {"missing": "this key is missing", "union_tag_not_found": "the key 'adapter' is missing"}


def load_settings(path: Path) -> Settings:
    """Read `evalmeta.toml`; the SettingsError of an invalid file has a line for each value, with line and key."""
    text = read_text(path, raises=SettingsError)
    table = _parse(path, text)
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        raise _wrong(path, [_finding(path, text, detail) for detail in error.errors(include_url=False)]) from error
    if findings := list(_unknown_adapters(path, text, settings)):
        raise _wrong(path, findings)
    return settings


def _wrong(path: Path, findings: Sequence[str]) -> SettingsError:
    return SettingsError("\n".join(findings), actions=(f"Correct {path}; nothing was done.",))


def _unknown_adapters(path: Path, text: str, settings: Settings) -> Iterator[str]:
    tables: dict[Group, Mapping[str, SubjectSettings | RaterSettings]]
    tables = {"subjects": settings.subjects, "raters": settings.raters}
    for group, table in tables.items():
        for name, each in table.items():
            if each.adapter in _ADAPTERS[group] or each.adapter in plugin_names(group):
                continue
            known = [*_ADAPTERS[group], *plugin_names(group)]
            near = get_close_matches(each.adapter, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            keys = [group, name, "adapter"]
            yield (
                f"{path}:{_line_of(text, keys)}: {key_name(keys)}: {each.adapter!r} is not a valid adapter; {hint}"
                f"Known: {', '.join(known)}."
            )


def _parse(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        message = str(error)
        place = _PLACE.search(message)
        where = f"{path}:{place[1]}:{place[2]}" if place else f"{path}:{text.count(chr(10)) + 1}"
        raise SettingsError(f"{where}: is not valid TOML: {_PLACE.sub('', message)}.") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: is nested too deeply.") from error


def _finding(path: Path, text: str, detail: ErrorDetails) -> str:
    loc = detail["loc"]
    # pydantic adds the selected adapter after the name of a subject or rater.
    keys = loc[:2] + loc[3:] if loc[0] in _ADAPTERS else loc
    line = _line_of(text, keys[:-1] if detail["type"] == "missing" else keys)
    where = f"{path}:{line}" if line else str(path)
    return f"{where}: {key_name(keys)}: {_reason(detail)}"


def _reason(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        *table, key = detail["loc"]
        known = _known_keys(table)
        near = get_close_matches(str(key), known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"is not a valid key; {hint}Valid keys: {', '.join(known)}."
    message = _PLAINER.get(detail["type"]) or detail["msg"][0].lower() + detail["msg"][1:]
    value = detail["input"]
    return f"{message}, not {value!r}." if isinstance(value, str | int | float) else f"{message}."


def _known_keys(loc: Sequence[str | int]) -> list[str]:
    if loc and loc[0] in _ADAPTERS:
        return list(_ADAPTERS[str(loc[0])][str(loc[2])].model_fields)
    schema = Settings.model_json_schema()
    node = schema
    for key in loc:
        node = node["properties"][key]
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return list(node["properties"])


def _line_of(text: str, keys: Sequence[str | int]) -> int:
    """Return the line that adds the key: the file up to this line has it, and without the line does not; 0 if none."""
    lines = text.split("\n")
    candidates = (number for number, line in enumerate(lines) if str(keys[-1]) in line)
    for number in islice(candidates, _CANDIDATE_LINES):
        if not _holds(lines[:number], keys) and _holds(lines[: number + 1], keys):
            return number + 1
    return 0


def _holds(lines: Sequence[str], keys: Sequence[str | int]) -> bool:
    try:
        node: object = tomllib.loads("\n".join(lines))
    except ValueError:
        return False
    for key in keys:
        if not isinstance(node, dict) or key not in node:
            return False
        node = node[key]
    return True
