from __future__ import annotations

import io
import zipfile

from evalmeta.package.archive import zip_chunks

FILES = {"b.xml": b"text " * 500, "a/ü.xml": b"", "a/c.xml": b"<x/>"}
WRITTEN = b"".join(zip_chunks(FILES.items()))


def test_the_standard_library_reads_what_was_written() -> None:
    with zipfile.ZipFile(io.BytesIO(WRITTEN)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == FILES


def test_entries_keep_their_order_and_have_no_time_or_machine() -> None:
    entries = zipfile.ZipFile(io.BytesIO(WRITTEN)).infolist()
    assert [entry.filename for entry in entries] == list(FILES)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {(entry.create_system, entry.external_attr >> 16) for entry in entries} == {(3, 0o100644)}


def test_files_are_read_one_at_a_time() -> None:
    taken: list[str] = []
    chunks = zip_chunks((taken.append(name) or name, b"") for name in ("a", "b"))
    next(chunks)
    assert taken == ["a"]
