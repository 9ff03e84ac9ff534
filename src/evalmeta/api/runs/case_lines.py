"""The files and lines of test cases, which are read only if something has to be shown with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from os.path import normpath
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from evalmeta import limits
from evalmeta.errors import EvalmetaError
from evalmeta.formats.document import Document, Reading
from evalmeta.formats.files import read_document
from evalmeta.model.evaluation import Evaluation, case_numbers
from evalmeta.package.files import bytes_of, parse_test_name, shown
from evalmeta.xmlio.definitions import given_numbers
from evalmeta.xmlio.reader import read_xml

_T = TypeVar("_T")
_DEFAULT_READING: Final = Reading()


class _ByNumber(Mapping[int, _T]):
    """A value for each test case of a file, by the case's number; `read` is called when the first one is needed."""

    def __init__(self, read: Callable[[], Mapping[int, _T]]) -> None:
        self._read = read

    @cached_property
    def _values(self) -> Mapping[int, _T]:
        return self._read()

    def __getitem__(self, number: int) -> _T:
        return self._values[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class CasePlaces(NamedTuple):
    """Where the test cases of a file are.

    Attributes:
        lines: the line of each test case, by its number.
        files: the paths of other files that have some of the test cases, by their numbers.
    """

    lines: Mapping[int, int]
    files: Mapping[int, str]


def case_places(path: Path, document: Document | None = None, reading: Reading = _DEFAULT_READING) -> CasePlaces:
    """Return where the test cases of a file in any format are; empty if it cannot be read.

    A file whose document is not known is read when the first place is needed, unless it is large.
    """
    if parse_test_name(path.name):
        return CasePlaces(case_lines(path), {})
    read = cache(lambda: document or _read_document(path, reading))

    def files() -> dict[int, str]:
        return {number: shown(Path(normpath(path.parent / name))) for number, name in read().files.items()}

    return CasePlaces(_ByNumber(lambda: read().lines), _ByNumber(files))


def _read_document(path: Path, reading: Reading) -> Document:
    with suppress(EvalmetaError, OSError):
        if path.stat().st_size <= limits.MAX_SPEC_BYTES:
            return read_document(path, label=path.name, name=path.name, reading=reading)
    return Document(Evaluation("", "", ()))


def case_lines(path: Path) -> Mapping[int, int]:
    """Return the lines of the test cases of a definition file; empty if it cannot be read."""
    return _ByNumber(lambda: _read_lines(path))


def _read_lines(path: Path) -> dict[int, int]:
    try:
        document = read_xml(bytes_of(path), label=shown(path))
    except EvalmetaError:
        return {}
    return dict(zip(case_numbers(given_numbers(document)), document.lines_of("testCase"), strict=True))
