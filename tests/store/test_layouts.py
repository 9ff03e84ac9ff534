"""A database of each earlier layout, as the evalmeta of its time wrote it, opens and keeps its rows.

Each file in `layouts` comes from the last commit with that layout: a deployment, two runs and a retrieve of the project
below, then `VACUUM INTO` and `gzip -9n`. Layouts 3, 6, 16 and 17 were never on main without the next one.
"""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from evalmeta.cli.main import cli
from evalmeta.store.database import open_database
from evalmeta.store.jobs import Jobs
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from click.testing import Result

DATABASES = sorted((Path(__file__).parent / "layouts").iterdir())
NEWEST = sum(path.name.endswith(".sql") for path in (files("evalmeta.store") / "migrations").iterdir())
RUNS = ["4KB000000000001GAA", "4KB000000000002GAA"]
SETTINGS = '[subjects.Desk]\nadapter = "python"\ntarget = "agent:answer"\n'
AGENT = 'def answer(utterance):\n    return {"outcome": f"You asked: {utterance}", "topic": "Orders"}\n'
FILE = "aiEvaluationDefinitions/Orders.aiEvaluationDefinition-meta.xml"
CASE = """\
    <testCase>
        <expectation>
            <expectedValue>{}</expectedValue>
            <name>topic_sequence_match</name>
        </expectation>
        <inputs>
            <utterance>{}</utterance>
        </inputs>
        <number>{}</number>
    </testCase>
"""
DEFINITION = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <description>Orders</description>
    <name>Orders</name>
    <subjectName>Desk</subjectName>
    <subjectType>AGENT</subjectType>
{CASE.format("Orders", "Where is my order?", 1)}{CASE.format("Returns", "I return it.", 2)}</AiEvaluationDefinition>
"""


@pytest.fixture(params=DATABASES, ids=lambda each: each.name[:2])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a project whose embedded org is a database of an earlier layout."""
    (tmp_path / ".evalmeta").mkdir(mode=0o700)
    (tmp_path / ".evalmeta" / "org.sqlite3").write_bytes(gzip.decompress(request.param.read_bytes()))
    for name, text in {"evalmeta.toml": SETTINGS, "agent.py": AGENT, FILE: DEFINITION}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def test_the_newest_layout_has_its_database() -> None:
    assert DATABASES[-1].name == f"{NEWEST:02}.sqlite3.gz"


def test_a_database_of_every_layout_opens_and_keeps_its_rows(project: Path) -> None:
    with open_database(project / ".evalmeta") as database:
        assert database.query("PRAGMA user_version") == [(NEWEST,)]
        assert database.query("PRAGMA integrity_check") == [("ok",)]
        assert database.query("PRAGMA foreign_key_check") == []
        assert database.query("SELECT full_name, content FROM component") == [("Orders", DEFINITION.encode())]
        [job_id] = [row[0] for row in database.query("SELECT id FROM job WHERE kind = 'deploy'")]
        assert b"<status>Succeeded</status>" in (Jobs(database).reply(job_id) or b"")
        for run in RUNS:
            cases = list(Runs(database).cases(run))
            assert [(case.number, case.verdict.name) for case in cases] == [(1, "PASS"), (2, "FAILURE")]
            assert [case.generated and case.generated.outcome for case in cases] == [
                "You asked: Where is my order?",
                "You asked: I return it.",
            ]


def test_commands_go_on_with_a_database_of_every_layout(project: Path) -> None:
    results = json.loads(call("test", "results", "--job-id", RUNS[0], "--json").stdout)
    assert [each["status"] for each in results["result"][0]["testCases"]] == ["COMPLETED", "COMPLETED"]
    (project / FILE).write_text(DEFINITION.replace("Returns", "Refunds"))
    retrieved = call("retrieve", "--metadata", "AiEvaluationDefinition:Orders", "--ignore-conflicts")
    assert ((project / FILE).read_text(), retrieved.exit_code) == (DEFINITION, 0), retrieved.output
    again = call("test", "run", "--api-name", "Orders", "--wait")
    assert "2 cases: 1 passed, 1 failed" in again.output, again.output
    assert call("test", "history").stdout.count("COMPLETED") == len(RUNS) + 1
