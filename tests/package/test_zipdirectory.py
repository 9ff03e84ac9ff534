from __future__ import annotations

import io
import zipfile

import pytest

from evalmeta.errors import ArchiveError
from evalmeta.package.zipdirectory import content_of, read_directory
from package.handmade import Entry, deflated, zip_of

BOMB = deflated(b"x" * 1000)


def refusal(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        [content_of(data, entry) for entry in read_directory(data)]
    return str(caught.value)


def test_entries_come_as_the_directory_declares_them() -> None:
    data = zip_of(Entry(b"a/", b"", mode=0o40755), Entry(b"a/b", b"content", method=8))
    folder, file = read_directory(data)
    assert (folder.name, folder.is_folder, folder.mode) == ("a/", True, 0o40755)
    assert (file.name, file.is_folder, file.size, content_of(data, file)) == ("a/b", False, 7, b"content")


def test_names_without_the_utf_8_flag_are_cp437() -> None:
    assert read_directory(zip_of(Entry(b"\x81", flags=0)))[0].name == "ü"


def test_the_standard_librarys_streamed_zips_are_read() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise io.UnsupportedOperation

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"content" * 100)
    (entry,) = read_directory(pipe.getvalue())
    assert content_of(pipe.getvalue(), entry) == b"content" * 100


@pytest.mark.parametrize("comment", [b"hello", b"PK\x05\x06", b"PK\x05\x06" * 100, b"x" * 0xFFFF])
def test_a_comment_is_skipped(comment: bytes) -> None:
    assert len(read_directory(zip_of(Entry(b"a"), comment=comment))) == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no end record"),
        (zip_of(Entry(b"a")) + b"more", "no end record"),
        (zip_of(Entry(b"a"))[:-1], "no end record"),
        (zip_of(Entry(b"a"), shift=1), "does not stand where"),
        (b"MZ" + zip_of(Entry(b"a")), "does not stand where"),
        (zip_of(Entry(b"a"), disk=1), "one part of several"),
        (zip_of(Entry(b"a"), here=2), "one part of several"),
        (zip_of(Entry(b"a"), count=0), "more entries than"),
        (zip_of(Entry(b"a"), count=2), "directory is truncated"),
        (zip_of(Entry(b"a"), count=2, padding=b"x" * 46), "directory is broken"),
        (zip_of(Entry(b"a"), count=0xFFFF), "needs ZIP64"),
    ],
)
def test_a_damaged_archive_says_why(data: bytes, why: str) -> None:
    assert refusal(data).startswith("The zip is damaged: ")
    assert why in refusal(data)


def test_an_entry_that_reaches_behind_its_directory_is_refused() -> None:
    data = bytearray(zip_of(Entry(b"a")))
    data[data.rindex(b"PK\x01\x02") + 30] = 0xFF
    assert "its directory is broken" in refusal(bytes(data))


def test_too_many_entries_are_refused_before_they_are_read() -> None:
    assert refusal(zip_of(count=10_001)) == "The zip has 10,001 entries; 10,000 are allowed."


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (Entry(b"\xff"), "has a name that is not UTF-8"),
        (Entry(b"a", size=0xFFFFFFFF), "'a' needs ZIP64"),
        (Entry(b"a", offset=0xFFFFFFFF), "'a' needs ZIP64"),
        (Entry(b"a", offset=500), "'a' begins outside"),
        (Entry(b"a", local_magic=b"PK\x03\x05"), "'a' has no local header"),
        (Entry(b"a", local_name=b"b"), "'a' is described in two different ways"),
        (Entry(b"a", local_method=8), "'a' is described in two different ways"),
        (Entry(b"a", packed_size=2), "'a' reaches into the directory"),
        (Entry(b"a", size=2), "'a' has not the 2 bytes it declares"),
        (Entry(b"a", crc=0), "'a' is damaged: its CRC is wrong"),
        (Entry(b"a", method=8, packed=b"\xff\xff"), "'a' is damaged: Error -3"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB, size=10), "'a' has not the 10 bytes it declares"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB, size=1001), "'a' has not the 1,001 bytes"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB[:-1]), "'a' is damaged: its content does not end"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB + b"tail"), "'a' is damaged: its content does not end"),
        (Entry(b"n" * 1000, crc=0), "n...' is damaged"),
    ],
)
def test_a_bad_entry_is_named_with_the_reason(entry: Entry, why: str) -> None:
    assert why in refusal(zip_of(entry))
