"""Which format a file has, told by its content."""

from __future__ import annotations

from typing import Final, Literal

from evalmeta.interop.testing_center_csv import is_testing_center_csv

__all__ = ["FORMATS", "SourceFormat", "recognise"]

SourceFormat = Literal["definition", "testspec", "csv"]
FORMATS: Final[tuple[SourceFormat, ...]] = ("definition", "testspec", "csv")

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def recognise(data: bytes) -> SourceFormat:
    """Tells a format: XML is a definition, a first line with the column Utterance a table; anything else is a spec."""
    begin = data.removeprefix(_UTF8_MARK).lstrip()
    if begin.startswith((b"<", *_UTF16_MARKS)):
        return "definition"
    return "csv" if is_testing_center_csv(data) else "testspec"
