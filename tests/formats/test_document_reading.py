from __future__ import annotations

from evalmeta.formats.document import Reading, reading_from, reading_of
from evalmeta.model.settings import Settings


def test_how_files_are_read_comes_back() -> None:
    reading = Reading(True, "typescript", "adk", ("Be kind",), ("correctness",))
    assert reading_from(reading.json()) == reading
    assert reading_from({}) == Reading()


def test_a_project_says_how_files_are_read() -> None:
    settings = Settings.model_validate(
        {"adk": {"dialect": "python"}, "databricks": {"global_guidelines": ["Be kind"], "metrics": ["safety"]}}
    )
    assert reading_of(settings, is_asked=False) == Reading(False, "python", None, ("Be kind",), ("safety",))
