from __future__ import annotations

import pytest

from evalmeta.interop.formats import recognise


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xef\xbb\xbf\n <?xml version='1.0'?>", "definition"),
        ("<a/>".encode("utf-16"), "definition"),
        (b"\xef\xbb\xbfUtterance;Expected Topic\n", "csv"),
        (b"name: Utterance\n", "testspec"),
        (b'{"name": "x"}', "testspec"),
        (b"", "testspec"),
    ],
)
def test_a_format_is_told_by_the_content(data: bytes, found: str) -> None:
    assert recognise(data) == found
