"""Projects on disk to start from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.package.project import Project, find_project

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = "aiEvaluationDefinition"
FOLDER = "aiEvaluationDefinitions"


@pytest.fixture(autouse=True)
def no_state_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALMETA_HOME", raising=False)


@pytest.fixture
def dx(tmp_path: Path) -> Path:
    """A DX project's root with an empty default package directory."""
    (tmp_path / "force-app").mkdir()
    (tmp_path / "sfdx-project.json").write_text(json.dumps({"packageDirectories": [{"path": "force-app"}]}))
    return tmp_path


@pytest.fixture
def dx_project(dx: Path) -> Project:
    folder = dx / "force-app" / "main" / "default" / FOLDER
    folder.mkdir(parents=True)
    for name in ("Billing", "Orders", "Returns"):
        (folder / f"{name}.{SUFFIX}-meta.xml").touch()
    return find_project(dx)


@pytest.fixture
def plain_project(tmp_path: Path) -> Project:
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name in ("Billing", "Orders"):
        (folder / f"{name}.{SUFFIX}").touch()
    return find_project(tmp_path)
