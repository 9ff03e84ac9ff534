from __future__ import annotations

import io
import shutil
import struct
import subprocess
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import ArchiveError
from evalmeta.package.zip_reader import content_of, read_directory
from hostile_zips import hidden
from package.handmade import Entry, deflated, zip_of

if TYPE_CHECKING:
    from pathlib import Path

ZIP = shutil.which("zip") or ""
BOMB = deflated(b"x" * 1000)


def refusal(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        [content_of(data, entry) for entry in read_directory(data)]
    return str(caught.value)


def test_entries_are_those_of_the_directory() -> None:
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


@pytest.mark.skipif(not ZIP, reason="the program zip is not there")
@pytest.mark.parametrize("words", [["-r"], ["-0r"], ["-rfd"]])
def test_zips_of_the_program_zip_are_read(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_bytes(b"content" * 100)
    subprocess.run([ZIP, "-q", *words, "it.zip", "d"], cwd=tmp_path, check=True)
    data = (tmp_path / "it.zip").read_bytes()
    assert [(each.name, len(content_of(data, each))) for each in read_directory(data)] == [("d/", 0), ("d/a", 700)]


@pytest.mark.parametrize("comment", [b"hello", b"PK\x05\x06", b"PK\x05\x06" * 100, b"x" * 0xFFFF])
def test_a_comment_is_skipped(comment: bytes) -> None:
    assert len(read_directory(zip_of(Entry(b"a"), comment=comment))) == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no end record"),
        (zip_of(Entry(b"a")) + b"more", "no end record"),
        (zip_of(Entry(b"a"))[:-1], "no end record"),
        (zip_of(Entry(b"a"), shift=1), "is not where"),
        (b"MZ" + zip_of(Entry(b"a")), "is not where"),
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


def test_an_entry_beyond_its_directory_is_refused() -> None:
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
        (Entry(b"a", packed_size=2), "'a' overlaps the directory"),
        (Entry(b"a", size=2), "'a' does not have the declared 2 bytes"),
        (Entry(b"a", crc=0), "'a' is damaged: its CRC is wrong"),
        (Entry(b"a", method=8, packed=b"\xff\xff"), "'a' is damaged: Error -3"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB, size=10), "'a' does not have the declared 10 bytes"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB, size=1001), "'a' does not have the declared 1,001 bytes"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB[:-1]), "'a' is damaged: its content does not end"),
        (Entry(b"a", b"x" * 1000, method=8, packed=BOMB + b"tail"), "'a' is damaged: its content does not end"),
        (Entry(b"n" * 1000, crc=0), "n...' is damaged"),
    ],
)
def test_a_bad_entry_is_named_with_the_reason(entry: Entry, why: str) -> None:
    assert why in refusal(zip_of(entry))


DESCRIPTOR = struct.pack("<3L", zlib.crc32(b"x"), 1, 1)


@pytest.mark.parametrize("behind", [DESCRIPTOR, b"PK\x07\x08" + DESCRIPTOR])
def test_a_streamed_entry_is_described_after_its_content(behind: bytes) -> None:
    streamed = Entry(b"a", flags=0x0808, local_sums=(0, 0, 0), behind=behind)
    assert [entry.name for entry in read_directory(zip_of(streamed, Entry(b"b")))] == ["a", "b"]


@pytest.mark.parametrize("sums", [(1, 1, 1), (zlib.crc32(b"x"), 2, 1), (zlib.crc32(b"x"), 1, 2)])
def test_a_local_header_with_other_checksums_is_refused(sums: tuple[int, int, int]) -> None:
    assert "'a' is described in two different ways" in refusal(zip_of(Entry(b"a", local_sums=sums)))


@pytest.mark.parametrize("flags", [0x0800, 0x0808])
@pytest.mark.parametrize("behind", [Entry(b"hidden").local(0), b"x", DESCRIPTOR[:-1] + b"\1"])
def test_bytes_between_entries_are_refused(flags: int, behind: bytes) -> None:
    hiding = Entry(b"a", flags=flags, behind=behind)
    for data in (zip_of(hiding), zip_of(hiding, Entry(b"b"))):
        assert "'a' is not followed by the next one" in refusal(data)


def test_an_entry_missing_in_the_directory_is_refused() -> None:
    assert "does not begin with an entry" in refusal(hidden())
