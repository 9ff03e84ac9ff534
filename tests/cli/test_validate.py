from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api import files
from evalmeta.report.problems import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

BAD = """<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
  <name>Bad</name><subjectName>Desk</subjectName><subjectType>AGENT</subjectType>
  <testCase><inputs><utterance>Hi</utterance></inputs>
    <expectation><name>topic_sequence_mtch</name></expectation></testCase>
</AiEvaluationDefinition>
"""


@pytest.mark.parametrize("project", ["", "dx-project", "failing"])
def test_the_samples_are_valid(evalmeta: Program, copy_samples: Callable[[str], Path], project: str) -> None:
    copy_samples(project)

    assert evalmeta("validate").code == 0


def test_a_misspelt_expectation_is_shown_with_location_and_hint(
    evalmeta: Program, copy_samples: Callable[..., Path]
) -> None:
    project = copy_samples()
    (project / "aiEvaluationDefinitions/Bad.aiEvaluationDefinition").write_text(BAD)

    done = evalmeta("validate")

    assert done.code == 1
    assert "aiEvaluationDefinitions/Bad.aiEvaluationDefinition\n  4:18 error " in done.out
    assert "'topic_sequence_mtch' is not a known expectation" in done.out
    assert "Did you mean topic_sequence_match?" in done.out


def test_problems_are_printed_as_json(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    (project / "Bad.aiEvaluationDefinition").write_text(BAD)

    done = evalmeta("validate", "--json", "Bad.aiEvaluationDefinition")

    envelope = json.loads(done.out)
    assert envelope["status"] == done.code == 1
    assert envelope["result"]["problems"][0]["code"] == "expectation-unknown"


@pytest.mark.parametrize("name", ["json", "sarif", "github", "junit"])
def test_problems_in_another_format_are_alone_on_stdout(
    evalmeta: Program, copy_samples: Callable[..., Path], name: str
) -> None:
    project = copy_samples()
    bad = Path("Bad.aiEvaluationDefinition")
    (project / bad).write_text(BAD)

    done = evalmeta("validate", "--result-format", name, str(bad))

    assert done == (1, render(name, files.validate([bad]).problems, files=1), "")


@pytest.mark.parametrize("name", ["json", "sarif", "github", "junit"])
def test_a_format_writes_its_document_when_nothing_is_wrong(
    evalmeta: Program, copy_samples: Callable[..., Path], name: str
) -> None:
    copy_samples("failing")

    assert evalmeta("validate", "--result-format", name) == (0, render(name, (), files=2), "")


def test_a_service_that_runs_the_check_changes_no_default(
    evalmeta: Program, copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_samples("failing")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    assert evalmeta("validate").out == "2 files are valid\n"


def test_the_envelope_comes_before_a_format(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples("failing")

    assert json.loads(evalmeta("validate", "--json", "--result-format", "junit").out)["status"] == 0


def test_a_folder_is_searched_through(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    assert "are valid" in evalmeta("validate", "dx-project", "failing").out


def test_problems_of_settings_are_shown_like_those_of_definitions(
    evalmeta: Program, copy_samples: Callable[..., Path]
) -> None:
    project = copy_samples()
    (project / "evalmeta.toml").write_text('[run]\nretry = 1\niterations = "3"\n')

    done = evalmeta("validate")

    assert done.code == 2
    assert done.err.startswith(
        "Error (SettingsError): evalmeta.toml is not valid\n"
        "evalmeta.toml\n"
        "  2:1 error run.retry is not a valid key [settings-invalid]\n"
        "    Did you mean retries? Known: "
    )
    assert "  3:1 error run.iterations must be a whole number, not '3' [settings-invalid]\n" in done.err
    assert "\n    Write iterations = 3, without quotes.\n" in done.err


def test_settings_change_a_severity(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    (project / "aiEvaluationDefinitions/Bad.aiEvaluationDefinition").write_text(BAD)
    settings = project / "evalmeta.toml"
    settings.write_text(settings.read_text() + '\n[validate.rules]\nexpectation-unknown = "warning"\n')

    done = evalmeta("validate")

    assert done.code == 0
    assert "1 warning" in done.out


@pytest.mark.parametrize("path", ["absent.aiEvaluationDefinition", "evalmeta.toml"])
def test_paths_that_cannot_be_checked_are_a_usage_error(
    evalmeta: Program, copy_samples: Callable[..., Path], path: str
) -> None:
    copy_samples()

    done = evalmeta("validate", path)

    assert done.code == 2
    assert path in done.err


def test_outside_a_project_there_is_a_clear_error(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    done = evalmeta("validate")

    assert done.code == 2
    assert "no project" in done.err
    assert "Try this:" in done.err


@pytest.mark.parametrize("name", ["destructiveChanges.xml", "destructiveChangesPre.xml", "destructiveChangesPost.xml"])
def test_destructive_changes_cannot_use_wildcards(
    evalmeta: Program, copy_samples: Callable[..., Path], name: str
) -> None:
    project = copy_samples("dx-project")
    text = (project / "manifest/package.xml").read_text()
    (project / "manifest" / name).write_text(text.replace("<members>Outage_Desk<", "<members>*<"))

    for words in ((), ("manifest",), (f"manifest/{name}",), ("-x", f"manifest/{name}")):
        done = evalmeta("validate", *words)
        assert (done.code, f"manifest/{name}\n  5:9 error " in done.out) == (1, True)
        assert "destructive changes cannot use wildcards, such as '*'" in done.out


def test_a_selection_is_checked(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples("dx-project")

    assert evalmeta("validate", "-x", "manifest/package.xml").out == "4 files are valid\n"
    assert "1 file" in evalmeta("validate", "-m", "AiEvaluationDefinition:Outage_Desk").out
    assert evalmeta("validate", "-m", "AiEvaluationDefinition:Absent").code == 2


def test_a_path_excludes_a_selection(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    done = evalmeta("validate", "package.xml", "-x", "package.xml")

    assert (done.code, "PATH cannot be combined with" in done.err) == (2, True)


@pytest.mark.slow
def test_a_backslash_in_forceignore_is_a_warning(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    (project / ".forceignore").write_text("force-app\\drafts\n")

    done = evalmeta("validate")

    assert done.code == 0
    assert ".forceignore\n  1:10 warning " in done.out


def test_a_manifest_may_have_any_name(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    manifest = (project / "manifest/package.xml").read_text()
    (project / "desk.xml").write_text(manifest.replace("AiEvaluationDefinition", "Bot"))
    (project / "other.xml").write_text("<Bot/>")

    done = evalmeta("validate", "desk.xml")

    assert (done.code, "the type 'Bot' is not supported" in done.out) == (0, True)
    assert "neither a definition nor a manifest" in evalmeta("validate", "other.xml").err


def test_files_in_folders_that_are_not_tests_are_counted_and_listed(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("testCases:\n- input: Hi\n  contains: Hello\n")
    (tmp_path / "ci.yml").write_text("on: push\njobs: {}\n")
    assert evalmeta("validate", ".").err == "1 file was not a test: ci.yml; -v says why\n"
    assert evalmeta("validate", ".", "-v").err == "1 file was not a test:\n  ci.yml: it is a CI workflow\n"
    (tmp_path / "evalmeta.toml").touch()
    done = evalmeta("validate", "--json")
    assert (done.err, json.loads(done.out)["result"]["files"]) == ("1 file was not a test: ci.yml; -v says why\n", 1)
