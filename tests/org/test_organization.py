from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.login import ADMIN
from org.parts import opened

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization


def test_a_token_has_the_shape_that_the_sf_cli_takes(org: Organization) -> None:
    assert re.fullmatch(r"00D\w{12,15}![.\w]*", org.token)


def test_every_org_has_a_token_of_its_own(org: Organization, tmp_path: Path) -> None:
    with opened(tmp_path) as other:
        assert other.token != org.token
        assert other.user_of(org.token) is None


@pytest.mark.parametrize("token", ["", "00D000000000001!", "é", "\U0001f511"])
def test_only_the_token_itself_is_known(org: Organization, token: str) -> None:
    assert org.user_of(org.token) == ADMIN
    assert org.user_of(token) is None


def test_a_repr_shows_no_token(org: Organization) -> None:
    assert org.token not in repr(org)


@pytest.mark.parametrize(
    ("version", "spoken"),
    [("63.0", True), ("66.0", True), ("68.0", True), ("69.0", False), ("62.0", False), ("x", False), ("", False)],
)
def test_an_org_speaks_the_versions_that_know_its_types(org: Organization, version: str, spoken: bool) -> None:  # noqa: FBT001
    assert org.supports(version) is spoken


@pytest.mark.sqlite
def test_texts_for_callers_name_files_from_the_project_on(org: Organization) -> None:
    text = f"{org.root}/agent/desk.py:3: in {org.root}, {org.database.name}"
    assert org.without_paths(text) == "agent/desk.py:3: in the project's folder, state/org.sqlite3"


def test_texts_for_callers_name_other_files_without_their_folders(org: Organization) -> None:
    library = Path(pytest.__file__).parent
    assert str(library.parent) in sys.path
    assert org.without_paths(f"in {library}/main.py") == "in pytest/main.py"
