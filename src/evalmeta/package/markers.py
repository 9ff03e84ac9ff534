"""The files that mark a folder as a project."""

from __future__ import annotations

from typing import Final

__all__ = ["PROJECT_FILE", "SETTINGS_FILE", "STATE_FOLDER"]

PROJECT_FILE: Final = "sfdx-project.json"
SETTINGS_FILE: Final = "evalmeta.toml"
STATE_FOLDER: Final = ".evalmeta"
