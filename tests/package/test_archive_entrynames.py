from __future__ import annotations

import ntpath
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import ArchiveError
from evalmeta.package.archive import check_names


@pytest.mark.parametrize(
    "name",
    [
        "package.xml",
        "unpackaged/aiEvaluationDefinitions/X.aiEvaluationDefinition",
        "a/",
        "a b/ü.xml",
        "..a/b..",
        "12:3",
    ],
)
def test_ordinary_names_pass(name: str) -> None:
    check_names([name])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "has no name"),
        ("/", "absolute"),
        ("/etc/passwd", "absolute"),
        ("..", "segment"),
        ("../evil", "segment"),
        ("a/../../evil", "segment"),
        ("a/..", "segment"),
        ("./a", "segment"),
        ("../", "segment"),
        ("a//b", "empty segment"),
        ("..\\evil", "backslash"),
        ("C:evil", "drive"),
        ("c:/evil", "drive"),
        ("0:", "drive"),
        ("a\0.xml", "control character"),
        ("a\nb", "control character"),
        ("a\x7f", "control character"),
        ("a\x9b", "control character"),
        ("a\ud800", "valid Unicode"),
        ("n" * 1001, "more than 1,000 characters"),
    ],
)
def test_unsafe_names_are_refused(name: str, why: str) -> None:
    with pytest.raises(ArchiveError, match=why):
        check_names([name])


@pytest.mark.parametrize(
    "names",
    [("a", "a"), ("a/b", "A/B"), ("ü", "Ü"), ("u\u0308", "\u00fc"), ("a", "a/"), ("a/", "a"), ("straße", "STRASSE")],
)
def test_names_that_are_equal_on_other_systems_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(ArchiveError, match="occurs twice"):
        check_names(names)


def test_folders_may_be_repeated() -> None:
    check_names(["a/", "a/b", "a/"])


@given(st.text() | st.text(alphabet="./\\:aC\0", max_size=12))
def test_valid_names_stay_below_the_root_on_every_system(name: str) -> None:
    try:
        check_names([name])
    except ArchiveError:
        return
    assert posixpath.normpath(posixpath.join("/root", name)).startswith("/root/")
    assert ntpath.normpath(ntpath.join("D:\\root", name)).startswith("D:\\root\\")
