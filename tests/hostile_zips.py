"""Zips that would write outside their folder, fill the machine or mean two things; every field can lie."""

from __future__ import annotations

import struct

from evalmeta import limits
from package.handmade import Entry, deflated, zip_of

__all__ = ["HOSTILE_ENTRIES", "HOSTILE_ZIPS", "SUFFIX", "bomb_in_pieces", "hidden", "overlapping"]

SUFFIX = ".aiEvaluationDefinition"
_TAIL = SUFFIX.encode()

HOSTILE_ENTRIES = (
    (Entry(b"../evil" + _TAIL), f"'../evil{SUFFIX}' has a `.` or `..` segment"),
    (Entry(b"a/../../evil" + _TAIL), f"'a/../../evil{SUFFIX}' has a `.` or `..` segment"),
    (Entry(b"./evil" + _TAIL), f"'./evil{SUFFIX}' has a `.` or `..` segment"),
    (Entry(b"a//evil" + _TAIL), f"'a//evil{SUFFIX}' has an empty segment"),
    (Entry(b"/evil" + _TAIL), f"'/evil{SUFFIX}' has an absolute name"),
    (Entry(b"..\\evil" + _TAIL), "has a backslash"),
    (Entry(b"C:evil" + _TAIL), f"'C:evil{SUFFIX}' has a drive in its name"),
    (Entry(b"a\0" + _TAIL), f"'a\\x00{SUFFIX}' has a control character"),
    (Entry(b""), "'' has no name"),
    (Entry(b"\xff" + _TAIL), "has a name that is not UTF-8"),
    (Entry(b"n" * 1_001 + _TAIL), "has a name of more than 1,000 characters"),
    (Entry(b"../", b"", mode=0o40755), "'../' has a `.` or `..` segment"),
    (Entry(b"link" + _TAIL, b"/etc/passwd", mode=0o120777), f"'link{SUFFIX}' is a symlink"),
    (Entry(b"device" + _TAIL, mode=0o020666), f"'device{SUFFIX}' is not a regular file"),
    (Entry(b"pipe" + _TAIL, mode=0o010666), f"'pipe{SUFFIX}' is not a regular file"),
    (Entry(b"folder" + _TAIL, mode=0o040755), f"'folder{SUFFIX}' is not a regular file"),
    (Entry(b"a" + _TAIL, flags=1), f"'a{SUFFIX}' is encrypted"),
    (Entry(b"a" + _TAIL, flags=0x0041), f"'a{SUFFIX}' is encrypted"),
    (Entry(b"a" + _TAIL, method=12, packed=b"x"), f"'a{SUFFIX}' is compressed by method 12"),
    (Entry(b"a" + _TAIL, size=limits.MAX_UNZIPPED_BYTES), "629,145,601 bytes unzipped"),
    (Entry(b"a" + _TAIL, size=0xFFFFFFFF), f"'a{SUFFIX}' needs ZIP64"),
    (Entry(b"a" + _TAIL, method=8, size=100_000_000), f"'a{SUFFIX}' unpacks to 100,000,000 bytes, more than 200 times"),
    (Entry(b"a" + _TAIL, local_name=b"../a" + _TAIL), f"'a{SUFFIX}' is described in two different ways"),
    (Entry(b"a" + _TAIL, b"x" * 1_000, 8, size=10), f"'a{SUFFIX}' does not have the declared 10 bytes"),
    (Entry(b"a" + _TAIL, crc=0), f"'a{SUFFIX}' is damaged: its CRC is wrong"),
)


def overlapping() -> bytes:
    """Gives a zip whose second entry stands inside the first one's content."""
    inner = Entry(b"inner" + _TAIL).local(0)
    outer = Entry(b"outer" + _TAIL, inner)
    return zip_of(outer, Entry(b"inner" + _TAIL, offset=30 + len(outer.name)))


def bomb_in_pieces() -> bytes:
    """Gives a zip of 20 files of 5 MB of nothing, each of which might be honest."""
    piece = deflated(bytes(limits.MAX_XML_BYTES))
    names = (f"{number}{SUFFIX}".encode() for number in range(20))
    return zip_of(*(Entry(name, b"", 8, packed=piece, size=limits.MAX_XML_BYTES) for name in names))


def hidden() -> bytes:
    """Gives a zip with an entry that its directory passes over."""
    unnamed, named = Entry(b"a" + _TAIL), Entry(b"b" + _TAIL)
    before = unnamed.local(0)
    files = before + named.local(len(before))
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(named.central), len(files), 0)
    return files + named.central + end


_GOOD = Entry(b"good" + _TAIL)
HOSTILE_ZIPS = {
    **{why: zip_of(_GOOD, entry) for entry, why in HOSTILE_ENTRIES},
    "the same name twice": zip_of(_GOOD, _GOOD),
    "the same name in another case": zip_of(_GOOD, Entry(b"GOOD" + _TAIL)),
    "overlapping": overlapping(),
    "bomb in pieces": bomb_in_pieces(),
    "hidden entry": hidden(),
    "too many entries": zip_of(_GOOD, count=limits.MAX_ZIP_ENTRIES + 1),
    "one part of several": zip_of(_GOOD, disk=1),
    "bytes in front": b"x" + zip_of(_GOOD),
    "truncated": zip_of(_GOOD)[:-1],
    "no zip": b"PK\x03\x04",
}
