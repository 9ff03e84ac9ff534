from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.builders import answer_orders, case
from engine.raters.llm.model_server import ModelServer, judging, model_serving
from evalmeta import evaluate
from evalmeta.model.definition import Expectation
from evalmeta.model.run import Verdict
from evalmeta.store import judgements as judges
from org.parts import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta import FinishedRun

CASES = [case("Where is it?", expectations=(Expectation("coherence"),))]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judges, "_OF_PROCESS", judges.MemoryRatings())


def judged_twice(server: ModelServer, *roots: Path | None, **settings: object) -> list[FinishedRun]:
    rater = {"adapter": "llm", "model": "judge-1", "url": server.url, **settings}
    return [evaluate(CASES, answer_orders, rater=rater, root=root) for root in roots]


def test_without_a_project_the_process_keeps_ratings_in_memory(tmp_path: Path) -> None:
    with model_serving(judging(4)) as server:
        runs = judged_twice(server, None, None)
    assert [run.run.cases[0].verdict for run in runs] == [Verdict.PASS] * 2
    assert len(server.bodies) == 1
    assert [*tmp_path.iterdir()] == []


def test_ratings_of_a_project_are_kept_in_its_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "project")
    with model_serving(judging(4)) as server:
        judged_twice(server, project.root)
        monkeypatch.setattr(judges, "_OF_PROCESS", judges.MemoryRatings())
        judged_twice(server, project.root)
    assert len(server.bodies) == 1


def test_a_project_whose_state_cannot_be_written_still_has_ratings(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    project.state_dir.parent.mkdir(parents=True, exist_ok=True)
    project.state_dir.write_text("not a folder")
    with model_serving(judging(4)) as server:
        runs = judged_twice(server, project.root, project.root)
    assert runs[1].run.cases[0].verdict is Verdict.PASS
    assert len(server.bodies) == 1


def test_a_rater_without_a_cache_asks_again() -> None:
    with model_serving(judging(4)) as server:
        judged_twice(server, None, None, cache=False)
    assert len(server.bodies) == 2


def test_raters_that_are_not_models_open_no_database(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    evaluate(CASES, answer_orders, root=project.root)
    assert not (project.state_dir / "org.sqlite3").exists()
