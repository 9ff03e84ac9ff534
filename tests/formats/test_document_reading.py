from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.formats.document import Reading, reading_from, reading_of
from evalmeta.formats.files import digest_of
from evalmeta.model.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def test_how_files_are_read_comes_back() -> None:
    reading = Reading(True, "typescript", "adk", ("Be kind",), ("correctness",), "/eval_config.json")
    assert reading_from(reading.json()) == reading
    assert reading_from({}) == Reading()


def test_a_project_says_how_files_are_read(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"adk": {"dialect": "python"}, "databricks": {"global_guidelines": ["Be kind"], "metrics": ["safety"]}}
    )
    found = reading_of(settings, root=tmp_path, is_asked=False)
    assert found == Reading(False, "python", None, ("Be kind",), ("safety",))


def test_the_criteria_that_a_call_names_replace_those_of_the_project(tmp_path: Path) -> None:
    settings = Settings.model_validate({"adk": {"config": "evaluation/eval_config.json"}})
    named = tmp_path / "other.json"
    assert reading_of(settings, root=tmp_path, is_asked=False).config == str(tmp_path / "evaluation/eval_config.json")
    assert reading_of(settings, root=tmp_path, is_asked=False, config=named).config == str(named)


def test_criteria_count_as_a_part_of_the_file_that_they_judge(tmp_path: Path) -> None:
    test, config, beside = (tmp_path / name for name in ("a.test.json", "own.json", "test_config.json"))
    test.write_text("[]")
    alone = digest_of(test, Reading())
    config.write_text("{}")
    with_config = digest_of(test, Reading(config=str(config)))
    beside.write_text('{"criteria": {}}')
    assert len({alone, with_config, digest_of(test, Reading())}) == 3
    assert digest_of(test, Reading(config=str(config))) == with_config
