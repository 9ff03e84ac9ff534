"""`evalmeta view`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from viewer.exports import read_export

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_without_runs_is_exported_too(evalmeta: Callable[..., Outcome], folder: Path) -> None:
    outcome = evalmeta("view", "--export", "out")

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "Wrote 7 pages into out: open out/index.html\n"
    assert "No test has run yet" in (folder / "out" / "index.html").read_text()
    assert "No tests yet." in read_export(folder / "out").pages["#/tests"]["html"]


@pytest.mark.usefixtures("folder")
def test_an_export_says_as_json_what_it_wrote(evalmeta: Callable[..., Outcome]) -> None:
    outcome = evalmeta("view", "--export", "out", "--json")

    assert json.loads(outcome.out)["result"] == {"folder": "out", "pages": 7, "leftOut": {"runs": 0, "cases": 0}}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", [("--port", "1"), ("--no-open",)])
def test_an_export_serves_nothing(evalmeta: Callable[..., Outcome], option: tuple[str, ...]) -> None:
    outcome = evalmeta("view", "--export", "out", *option)

    assert outcome.code == 2
    assert "--export serves nothing" in outcome.err


def test_files_of_others_are_kept(evalmeta: Callable[..., Outcome], folder: Path) -> None:
    (folder / "mine.txt").write_text("mine")

    outcome = evalmeta("view", "--export", ".")

    assert outcome.code == 2
    assert "has files that evalmeta did not write" in outcome.err


@pytest.mark.usefixtures("folder")
def test_an_interrupted_export_says_that_nothing_has_changed(
    evalmeta: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalmeta.viewer.export.export_cases", interrupt)

    outcome = evalmeta("view", "--export", "out")

    assert outcome.code == 130
    assert "the export was interrupted; nothing in out has changed" in outcome.err
