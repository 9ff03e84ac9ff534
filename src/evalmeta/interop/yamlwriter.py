"""Values to YAML that YAML 1.1 and 1.2 read alike: blocks, a line each, texts in double quotes where it matters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Yaml", "write_yaml"]

Yaml: TypeAlias = "str | int | bool | Sequence[Yaml] | Mapping[str, Yaml] | None"

# Begins with a letter and has nothing that means something: most names and sentences.
_PLAIN: Final = re.compile(r"[A-Za-z$][A-Za-z0-9_$()/.,;'?!+*=<>-]*(?: [A-Za-z0-9_$()/.,;'?!+*=<>&%-]+)*")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# JSON leaves these as they are; YAML 1.1 breaks lines at them, or does not print them.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def write_yaml(value: Mapping[str, Yaml]) -> bytes:
    """Writes a mapping as a YAML document in UTF-8."""
    return "".join(f"{line}\n" for line in _mapping(value)).encode()


def _mapping(value: Mapping[str, Yaml]) -> Iterator[str]:
    for key, each in value.items():
        if isinstance(each, Mapping) and each:
            yield f"{key}:"
            yield from (f"  {line}" for line in _mapping(each))
        elif isinstance(each, Sequence) and not isinstance(each, str) and each:
            yield f"{key}:"
            yield from (f"  {line}" for line in _sequence(each))
        else:
            yield f"{key}: {_scalar(each)}".rstrip()


def _sequence(items: Sequence[Yaml]) -> Iterator[str]:
    for item in items:
        lines = _mapping(item) if isinstance(item, Mapping) and item else iter([_scalar(item)])
        yield f"- {next(lines)}"
        yield from (f"  {line}" for line in lines)


def _scalar(value: Yaml) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, bool | int):
        return str(value).lower()
    return "[]" if isinstance(value, Sequence) else "{}"


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))
