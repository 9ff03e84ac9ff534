"""Texts that `replacements` in sfdx-project.json replace: an org has the values, the project the placeholders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.team import DEFINITION
from evalmeta.package.archive import read_zip

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

FILE = Path("force-app/Greeting.aiEvaluationDefinition-meta.xml")
ENTRY = "aiEvaluationDefinitions/Greeting.aiEvaluationDefinition"
ROW = {"glob": "force-app/**", "stringToReplace": "__AGENT__", "replaceWithEnv": "AGENT"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose test has a placeholder for its agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT", "Sales_Bot")
    content = {"packageDirectories": [{"path": "force-app"}], "sourceApiVersion": "66.0", "replacements": [ROW]}
    Path("sfdx-project.json").write_text(json.dumps(content))
    FILE.parent.mkdir()
    FILE.write_text(DEFINITION.format(name="Greeting", utterance="Hi").replace("Desk", "__AGENT__"))
    return tmp_path


def in_org(evalmeta: Program) -> bytes:
    assert evalmeta("retrieve", "--target-metadata-dir", "org", "--single-package").code == 0
    return read_zip(Path("org/unpackaged.zip").read_bytes())[ENTRY]


@pytest.mark.usefixtures("project")
def test_an_org_receives_the_values(evalmeta: Program) -> None:
    done = evalmeta("deploy")

    assert done.code == 0, done.err
    assert in_org(evalmeta) == FILE.read_bytes().replace(b"__AGENT__", b"Sales_Bot")


@pytest.mark.usefixtures("project")
def test_a_package_has_the_values(evalmeta: Program) -> None:
    assert evalmeta("package", "build", "--zip-file-name", "p.zip").code == 0
    assert b"<subjectName>Sales_Bot<" in read_zip(Path("p.zip").read_bytes())[ENTRY]


@pytest.mark.usefixtures("project")
def test_without_a_value_nothing_is_sent(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT")

    done = evalmeta("deploy")

    assert done.code == 1
    assert "the variable AGENT of sfdx-project.json: replacements[0], for '__AGENT__', is not set" in done.err
    assert "nothing was sent" in done.err
    assert "Set the environment variable AGENT." in done.err
    assert evalmeta("deploy", "report", "--use-most-recent").code != 0


@pytest.mark.usefixtures("project")
def test_a_deployed_value_is_not_a_change(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    evalmeta("deploy")
    before = FILE.read_bytes()

    assert "no differences" in (evalmeta("status").out + evalmeta("diff").out).lower()
    assert "Unchanged  Greeting" in evalmeta("retrieve").out
    assert FILE.read_bytes() == before
    monkeypatch.setenv("AGENT", "Service_Bot")
    assert "Greeting" in evalmeta("status").out


@pytest.mark.usefixtures("project")
def test_differences_show_no_value(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    evalmeta("deploy")
    monkeypatch.setenv("AGENT", "Service_Bot")

    done = evalmeta("diff")

    assert "- Sales_Bot" in done.out
    assert "+ [AGENT]" in done.out


@pytest.mark.usefixtures("project")
def test_a_retrieve_says_which_placeholders_it_overwrote(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    evalmeta("deploy")
    monkeypatch.setenv("AGENT", "Service_Bot")

    refused = evalmeta("retrieve")
    done = evalmeta("retrieve", "--ignore-conflicts")

    assert (refused.code, "was changed here" in refused.err) == (1, True)
    assert f"{FILE} had '__AGENT__', which the org's text overwrote" in done.err
    assert b"<subjectName>Sales_Bot<" in FILE.read_bytes()


@pytest.mark.usefixtures("project")
def test_files_are_validated_with_their_values(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT", "</subjectName><unknownElement>Sales_Bot</unknownElement><subjectName>")

    done = evalmeta("validate")

    assert (done.code, "element-unknown" in done.out + done.err) == (1, True)
    monkeypatch.delenv("AGENT")
    unset = evalmeta("validate")
    assert unset.code == 0
    assert "[replacement-missing]" in unset.out + unset.err


@pytest.mark.usefixtures("project")
def test_problems_show_no_value(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    FILE.write_text(FILE.read_text().replace("topic_assertion", "__AGENT__"))
    monkeypatch.setenv("AGENT", "private_value")

    done = evalmeta("validate")

    assert "private_value" not in done.out + done.err
    assert "[AGENT]" in done.out + done.err


@pytest.mark.usefixtures("project")
def test_a_conversion_keeps_placeholders_unless_the_variable_of_sf_is_set(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalmeta("convert", "source", "--output-dir", "kept")
    monkeypatch.setenv("SF_APPLY_REPLACEMENTS_ON_CONVERT", "true")
    evalmeta("convert", "source", "--output-dir", "replaced")

    assert b"__AGENT__" in Path("kept", ENTRY).read_bytes()
    assert b"Sales_Bot" in Path("replaced", ENTRY).read_bytes()


@pytest.mark.usefixtures("project")
def test_a_run_warns_if_a_missing_value_prevents_the_comparison_with_the_org(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("desk.py").write_text("def answer(utterance):\n    return {'outcome': 'Hi', 'topic': 'Orders'}\n")
    Path("evalmeta.toml").write_text('[subjects.Sales_Bot]\nadapter = "python"\ntarget = "desk:answer"\n')
    evalmeta("deploy")
    assert "compared" not in evalmeta("test", "run", "-n", "Greeting", "--wait").err
    monkeypatch.delenv("AGENT")

    done = evalmeta("test", "run", "-n", "Greeting", "--wait")

    assert done.code == 0, done.err
    assert f"{FILE}:4:18: cannot be compared with the org's: the variable AGENT" in done.err
