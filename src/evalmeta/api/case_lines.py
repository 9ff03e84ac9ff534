"""The lines of test cases in their files, which are read only if something has to be shown with its line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from evalmeta.api.files import bytes_of
from evalmeta.errors import EvalmetaError
from evalmeta.model.evaluation import evaluation_of
from evalmeta.package.files import shown
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class CaseLines(Mapping[int, int]):
    """The line of each test case of a file, by the case's number; `read` is called when the first line is needed."""

    def __init__(self, read: Callable[[], Mapping[int, int]]) -> None:
        self._read = read

    @cached_property
    def _lines(self) -> Mapping[int, int]:
        return self._read()

    def __getitem__(self, number: int) -> int:
        return self._lines[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def case_lines(path: Path) -> CaseLines:
    """Return the lines of the test cases of a definition file; empty if it cannot be read."""
    return CaseLines(lambda: _read_lines(path))


def _read_lines(path: Path) -> dict[int, int]:
    try:
        document = read_xml(bytes_of(path), label=shown(path))
    except EvalmetaError:
        return {}
    cases = tuple(evaluation_of(read_leniently(document), name="").cases)
    return dict(zip((case.number for case in cases), document.lines_of("testCase"), strict=True))
