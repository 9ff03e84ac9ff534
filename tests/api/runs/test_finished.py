from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.errors import SettingsError
from evalmeta.report import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.api.runs.finished import FinishedRuns

DEFINITIONS = [
    evalmeta.Definition(
        name,
        "Desk",
        test_cases=(
            evalmeta.TestCase(evalmeta.Inputs("Where?"), (evalmeta.Expectation("topic_sequence_match", "Orders"),)),
        ),
    )
    for name in ("First", "Second")
]


@pytest.fixture
def finished() -> FinishedRuns:
    return evalmeta.evaluate(DEFINITIONS, lambda utterance: {"outcome": utterance, "topic": "Orders"})


@pytest.mark.parametrize("name", FORMATS)
def test_a_saved_report_has_the_format_of_its_extension(finished: FinishedRuns, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"report.{FORMATS[name].suffix}"
    finished.save(path)
    assert path.read_bytes().decode() == finished.report(name)


def test_a_run_is_saved_in_a_named_format(finished: FinishedRuns, tmp_path: Path) -> None:
    finished[0].save(str(tmp_path / "log"), "tap")
    assert (tmp_path / "log").read_text() == finished[0].report("tap")


def test_an_unknown_extension_is_refused_before_a_file_is_written(finished: FinishedRuns, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"the format of 'report\.pdf' is unknown"):
        finished.save(tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())
