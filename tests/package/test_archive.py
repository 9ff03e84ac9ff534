from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.errors import ArchiveError
from evalmeta.package.archive import build_zip, read_zip
from hostile_zips import HOSTILE_ENTRIES, HOSTILE_ZIPS, SUFFIX, bomb_in_pieces, overlapping
from package.handmade import Entry, zip_of

FILES = {"package.xml": b"<Package/>", "a/b.xml": b"text " * 500, "a/c.xml": b""}
PROC = Path("/proc/self")
GOOD = build_zip(FILES.items())
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)

BUILD = """
import hashlib
from evalmeta.package.archive import build_zip
names = list({f"folder/Name_{number}.xml" for number in range(50)})
print(hashlib.sha256(build_zip((name, name.encode() * 20) for name in names)).hexdigest())
"""

WATCH = """
import sys
from pathlib import Path
from evalmeta.errors import ArchiveError
from evalmeta.package.archive import build_zip
path, opened = Path(sys.argv[1]), []
sys.addaudithook(lambda event, values: opened.append(values) if event == "open" and values[0] == str(path) else None)
try:
    build_zip((f"file_{number}", path) for number in range(int(sys.argv[2])))
except ArchiveError:
    print("refused")
print("opened", len(opened), "times")
"""


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def refusal(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        read_zip(data)
    return str(caught.value)


@given(st.dictionaries(NAMES.map(str.lower), st.binary()))
def test_a_zip_is_read_back_unchanged(files: dict[str, bytes]) -> None:
    assert read_zip(build_zip(files.items())) == files


@given(st.permutations(list(FILES.items())))
def test_the_order_of_the_input_does_not_matter(entries: list[tuple[str, bytes]]) -> None:
    assert build_zip(entries) == GOOD


def test_processes_with_other_hash_seeds_and_time_zones_build_the_same_bytes() -> None:
    digests = set()
    for seed, zone in (("1", "UTC"), ("2", "Pacific/Auckland"), ("3", "America/New_York")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", BUILD], env=environment, capture_output=True, check=True, timeout=120
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def test_files_give_the_same_bytes_as_their_contents(tmp_path: Path) -> None:
    for number, content in enumerate(FILES.values()):
        (tmp_path / str(number)).write_bytes(content)
    assert build_zip((name, tmp_path / str(number)) for number, name in enumerate(FILES)) == GOOD


@pytest.mark.parametrize("name", ["../a", "/a", "a\\b", "", "a/", "a\0b"])
def test_unsafe_names_are_not_written(name: str) -> None:
    with pytest.raises(ArchiveError, match="The zip entry"):
        build_zip([(name, b"")])


def test_repeated_names_are_not_written() -> None:
    with pytest.raises(ArchiveError, match="'a' occurs twice"):
        build_zip([("a", b""), ("A", b"")])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"gone: cannot be put into the zip as 'a': No such file"):
        build_zip([("a", tmp_path / "gone")])


def test_only_regular_files_are_zipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ArchiveError, match="it is not a regular file"):
            build_zip([("a", path)])


@pytest.mark.skipif(not PROC.exists(), reason="needs /proc, whose files say that they are empty")
@pytest.mark.parametrize(("file", "why"), [("status", "it changed while it was read"), ("mem", "Input/output error")])
def test_a_file_that_changes_while_it_is_read_is_refused(file: str, why: str) -> None:
    with pytest.raises(ArchiveError, match=f"cannot be put into the zip as 'a': {why}"):
        build_zip([("a", PROC / file)])


def test_too_many_files_are_refused_without_opening_them(tmp_path: Path) -> None:
    entries = ((f"{number}", tmp_path / "gone") for number in range(limits.MAX_ZIP_ENTRIES + 1))
    with pytest.raises(ArchiveError, match="more than 10,000 entries"):
        build_zip(entries)


def test_an_endless_input_ends() -> None:
    with pytest.raises(ArchiveError, match="more than 10,000 entries"):
        build_zip(iter(lambda: ("a", b""), None))


def test_too_many_bytes_are_refused_before_a_file_is_read(tmp_path: Path) -> None:
    half = sparse(tmp_path / "half", limits.MAX_UNZIPPED_BYTES // 2 + 1)
    half.chmod(0)
    with pytest.raises(ArchiveError, match="629,145,602 bytes unzipped; 629,145,600 are allowed") as caught:
        build_zip([("a", half), ("b", half)])
    assert caught.value.actions == ("Split it: list fewer members in the manifest.",)


@pytest.mark.parametrize(("count", "size"), [(2, limits.MAX_UNZIPPED_BYTES // 2 + 1), (limits.MAX_ZIP_ENTRIES + 1, 0)])
def test_limits_are_checked_before_a_file_is_opened(tmp_path: Path, count: int, size: int) -> None:
    sparse(tmp_path / "watched", size)
    watched = [sys.executable, "-c", WATCH, str(tmp_path / "watched"), str(count)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(watched, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.splitlines() == ["refused", "opened 0 times"]


@pytest.mark.slow
def test_a_zip_over_the_limit_is_refused() -> None:
    noise = random.Random(0).randbytes(limits.MAX_ZIP_BYTES + 1)  # noqa: S311 - no secret
    with pytest.raises(ArchiveError, match=r"bytes zipped; 39,000,000 are allowed"):
        build_zip([("a", noise)])


@pytest.mark.slow
def test_the_directory_counts_towards_the_limit() -> None:
    noise = random.Random(0).randbytes(limits.MAX_ZIP_BYTES - 12_000)  # noqa: S311 - no secret
    with pytest.raises(ArchiveError, match="bytes zipped"):
        build_zip([("a", noise), *((f"{number:0900}", b"") for number in range(10))])


def test_folder_entries_are_left_out() -> None:
    assert read_zip(zip_of(Entry(b"a/", b"", mode=0o40755), Entry(b"a/b"))) == {"a/b": b"x"}


def test_an_empty_zip_has_no_files() -> None:
    assert read_zip(build_zip([])) == {}


@pytest.mark.parametrize(("entry", "why"), HOSTILE_ENTRIES)
def test_a_hostile_entry_is_refused_by_name(entry: Entry, why: str) -> None:
    assert why in refusal(zip_of(Entry(b"good"), entry))


@pytest.mark.parametrize("data", HOSTILE_ZIPS.values(), ids=HOSTILE_ZIPS)
def test_a_hostile_zip_is_refused(data: bytes) -> None:
    assert refusal(data).startswith("The zip ")


@pytest.mark.parametrize("name", [b"a", b"A"])
def test_repeated_names_are_refused(name: bytes) -> None:
    assert "occurs twice" in refusal(zip_of(Entry(b"a"), Entry(name)))


def test_entries_that_share_bytes_are_refused() -> None:
    data = zip_of(Entry(b"a", b"x" * 100), Entry(b"b", b"x" * 10))
    assert set(read_zip(data)) == {"a", "b"}
    assert f"'inner{SUFFIX}' overlaps 'outer{SUFFIX}'" in refusal(overlapping())


def test_a_zip_bomb_of_many_small_entries_is_refused() -> None:
    assert "100,000,000 bytes unzipped, more than 200 times its size" in refusal(bomb_in_pieces())


def test_a_metadata_file_may_compress_as_well_as_it_can() -> None:
    case = b"<testCase><inputs><utterance>Where is my order?</utterance></inputs></testCase>\n"
    content = case * (limits.MAX_XML_BYTES // len(case))
    assert read_zip(build_zip([("a", content)])) == {"a": content}


def test_a_zip_over_the_limit_is_not_parsed() -> None:
    assert refusal(bytes(limits.MAX_ZIP_BYTES + 1)) == "The zip has 39,000,001 bytes zipped; 39,000,000 are allowed."


def test_a_refusal_says_that_nothing_was_used() -> None:
    with pytest.raises(ArchiveError) as caught:
        read_zip(GOOD[:-1])
    assert "nothing of it was used" in caught.value.actions[0]


@given(st.binary() | st.binary(max_size=100).map(lambda noise: b"PK\x03\x04" + noise + GOOD[-22:]))
def test_any_bytes_are_a_zip_or_an_archive_error(data: bytes) -> None:
    try:
        assert isinstance(read_zip(data), dict)
    except ArchiveError as error:
        assert error.actions  # noqa: PT017 - either outcome is right


@given(st.integers(0, len(GOOD) - 1))
def test_a_truncated_zip_is_an_archive_error(length: int) -> None:
    with pytest.raises(ArchiveError):
        read_zip(GOOD[:length])


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 7)), min_size=1, max_size=4))
@example([(len(GOOD) - 1, 0)])
def test_flipped_bits_are_always_detected(flips: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for place, bit in flips:
        data[place] ^= 1 << bit
    try:
        files = read_zip(bytes(data))
    except ArchiveError:
        return
    assert set(files.values()) <= set(FILES.values())
