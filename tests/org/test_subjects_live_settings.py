from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import SettingsError
from evalmeta.org.subjects import live_settings
from org.parts import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path


def test_subjects_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    settings, file = live_settings(tmp_path), tmp_path / "evalmeta.toml"
    assert settings().subjects == {}
    file.write_text(SETTINGS)
    assert [(name, subject.adapter) for name, subject in settings().subjects.items()] == [("Desk", "python")]
    file.unlink()
    assert settings().subjects == {}


def test_an_invalid_settings_file_is_reported_until_it_is_fixed(tmp_path: Path) -> None:
    settings, file = live_settings(tmp_path), tmp_path / "evalmeta.toml"
    file.write_text("[subjects")
    for _ in range(2):
        with pytest.raises(SettingsError, match="is not valid TOML"):
            settings()
    file.write_text(SETTINGS)
    assert list(settings().subjects) == ["Desk"]


def test_settings_cannot_name_the_adapter_of_files_with_answers(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").write_text('[subjects.Desk]\nadapter = "recorded"\n')
    with pytest.raises(SettingsError, match="'recorded' is not a valid adapter") as raised:
        live_settings(tmp_path)()
    assert "recorded" not in str(raised.value).partition("Known:")[2]
