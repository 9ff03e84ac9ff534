from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import SettingsError
from evalmeta.org.subjects import live_subjects
from org.parts import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path


def test_subjects_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    subjects, file = live_subjects(tmp_path), tmp_path / "evalmeta.toml"
    assert list(subjects) == []
    file.write_text(SETTINGS)
    assert (list(subjects), len(subjects), subjects["Desk"].adapter) == (["Desk"], 1, "python")
    file.unlink()
    assert "Desk" not in subjects


def test_an_invalid_settings_file_is_reported_until_it_is_fixed(tmp_path: Path) -> None:
    subjects, file = live_subjects(tmp_path), tmp_path / "evalmeta.toml"
    file.write_text("[subjects")
    for _ in range(2):
        with pytest.raises(SettingsError, match="is not valid TOML"):
            len(subjects)
    file.write_text(SETTINGS)
    assert list(subjects) == ["Desk"]
