"""The files of test cases that a test spec names with `cases: questions.csv`."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.yaml_source import YamlScalar, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# Also in JSON, whose test cases are not read here.
_NAMES_A_FILE: Final = re.compile(rb"""(?:^|[\s{,])["']?cases["']?\s*:\s*(?:[\[-]\s*)?["']?[^\s"'{\[]""", re.MULTILINE)


def files_of(path: Path) -> list[Path]:
    """Return the files with cases that a test spec names and that exist; an empty list for other files."""
    if (
        path.suffix.lower() not in {".yaml", ".yml", ".json"}
        or not path.is_file()
        or path.stat().st_size > limits.MAX_SPEC_BYTES
    ):
        return []
    data = path.read_bytes()
    if not _NAMES_A_FILE.search(data):
        return []
    try:
        value = read_yaml(data, label=path.name).value
    except FormatError:
        return []
    cases = value.get("cases") if isinstance(value, dict) else None
    named = (path.parent / name for _, name in islice(named_files(cases), limits.MAX_CASE_FILES))
    return [*filter(is_file, named)]


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that the system does not allow is not one."""
    try:
        return path.is_file()
    except OSError:
        return False


def named_files(cases: object) -> Iterator[tuple[int | None, str]]:
    """Yield the files that the value of `cases` names, with their index if it is a list."""
    if isinstance(cases, YamlScalar):
        yield None, cases.text
    for place, case in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(case, YamlScalar):
            yield place, case.text
