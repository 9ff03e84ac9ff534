"""Two people's copies of one project, which share an org."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["Team"]

FOLDER = Path("aiEvaluationDefinitions")
DEFINITION = """<?xml version="1.0" encoding="UTF-8"?>
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>{name}</name>
    <subjectName>Desk</subjectName>
    <subjectType>AGENT</subjectType>
    <testCase>
        <expectation>
            <expectedValue>Orders</expectedValue>
            <name>topic_assertion</name>
        </expectation>
        <inputs>
            <utterance>{utterance}</utterance>
        </inputs>
        <number>1</number>
    </testCase>
</AiEvaluationDefinition>
"""


class Team:
    """Goes to the one or the other copy, and changes files there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "org"
        self._folder = folder
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("EVALMETA_HOME", str(self.home))
        for name in ("mine", "theirs"):
            (folder / name / FOLDER).mkdir(parents=True)

    def go(self, copy: str) -> None:
        """Makes `mine` or `theirs` the current folder."""
        self._monkeypatch.chdir(self._folder / copy)

    def write(self, name: str, utterance: str = "Hi") -> Path:
        """Writes a definition in the current copy."""
        path = self.path(name)
        path.write_text(DEFINITION.format(name=name, utterance=utterance))
        return path

    def path(self, name: str) -> Path:
        """Gives the place of a definition in the current copy."""
        return FOLDER / f"{name}.aiEvaluationDefinition"

    def jobs(self, kind: str) -> int:
        """Counts the org's deployments or retrieves."""
        with closing(sqlite3.connect(self.home / "org.sqlite3")) as database:
            [(count,)] = database.execute("SELECT count(*) FROM job WHERE kind = ?", (kind,)).fetchall()
        return int(count)

    def delete_in_org(self, name: str) -> None:
        """Takes a definition out of the org."""
        with closing(sqlite3.connect(self.home / "org.sqlite3")) as database, database:
            database.execute("DELETE FROM component WHERE full_name = ?", (name,))
