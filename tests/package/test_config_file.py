from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import ProjectError, SettingsError
from evalmeta.package.config_file import key_name, read_text

if TYPE_CHECKING:
    from pathlib import Path


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(tmp_path / "f", raises=ProjectError) == "{}"


def test_a_missing_file_raises_the_requested_error(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="the file does not exist"):
        read_text(tmp_path / "f", raises=ProjectError)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.truncate(limits.MAX_SETTINGS_BYTES + 1)
    with pytest.raises(SettingsError, match=r"larger than 1,000,000 bytes"):
        read_text(tmp_path / "f", raises=SettingsError)


def test_invalid_utf_8_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\nb\n\xff")
    with pytest.raises(SettingsError, match=r"f:3: is not UTF-8"):
        read_text(tmp_path / "f", raises=SettingsError)


def test_a_path_that_cannot_be_opened_raises_the_requested_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_text(tmp_path / ("x" * 300), raises=SettingsError)


def test_keys_are_quoted_as_in_their_files() -> None:
    assert key_name(("run", "concurrency")) == "run.concurrency"
    assert key_name(("subjects", "My Agent", "target")) == 'subjects."My Agent".target'
    assert key_name(("packageDirectories", 0, "path")) == "packageDirectories[0].path"
