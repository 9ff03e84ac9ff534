from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def test_a_misspelt_expectation_is_shown_with_place_and_way_out(
    evalmeta: Program, copy_samples: Callable[..., Path]
) -> None:
    project = copy_samples()
    (project / "aiEvaluationDefinitions/Bad.aiEvaluationDefinition").write_text(BAD)

    done = evalmeta("validate")

    assert done.code == 1
    assert "aiEvaluationDefinitions/Bad.aiEvaluationDefinition:4:18" in done.out
    assert "'topic_sequence_mtch' is no expectation" in done.out
    assert "Did you mean topic_sequence_match?" in done.out


def test_findings_can_be_had_as_json(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    (project / "Bad.aiEvaluationDefinition").write_text(BAD)

    done = evalmeta("validate", "--json", "Bad.aiEvaluationDefinition")

    envelope = json.loads(done.out)
    assert envelope["status"] == done.code == 1
    assert envelope["result"]["problems"][0]["code"] == "expectation-unknown"


def test_a_folder_is_searched_through(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    assert "are valid" in evalmeta("validate", "dx-project", "failing").out


def test_settings_change_a_severity(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    (project / "aiEvaluationDefinitions/Bad.aiEvaluationDefinition").write_text(BAD)
    settings = project / "evalmeta.toml"
    settings.write_text(settings.read_text() + '\n[validate.rules]\nexpectation-unknown = "warning"\n')

    done = evalmeta("validate")

    assert done.code == 0
    assert "1 warning" in done.out


@pytest.mark.parametrize("path", ["absent.aiEvaluationDefinition", "evalmeta.toml"])
def test_what_cannot_be_checked_is_wrong_usage(evalmeta: Program, copy_samples: Callable[..., Path], path: str) -> None:
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
