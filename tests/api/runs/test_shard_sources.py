"""Which state folders a search for shards finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.api.runs.shard_sources import find_shards
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunContent
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from org.parts import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def keep(
    folder: Path, shard: tuple[int, int] | None = (1, 2), *, suite: str = "suite", now: float = 5.0, revision: str = ""
) -> None:
    """Keep a run of a shard in a state folder."""
    options = RunOptions(shard=shard, origin=Origin(suite, revision=revision))
    evaluation = Evaluation("Orders", "Desk", (Case(1, ()),))
    with open_database(folder) as database:
        Runs(database).start(EVALUATION_DEFINITION, evaluation, RunContent(b""), options, total=1, now=now)


def sources(project: Project, *folders: Path) -> list[str]:
    return [shard.source for shard in find_shards(project, [str(folder) for folder in folders]).runs]


def test_state_folders_are_found_at_any_level_and_each_once(project: Project, tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("ci/1", "ci/deep/er/2", "ci/project/.evalmeta")]
    for place in places:
        keep(place)
    keep(tmp_path / "ci/.hidden")
    assert sources(project, tmp_path / "ci", places[0]) == [str(place) for place in places]
    assert sources(project, tmp_path / "ci/project") == [str(places[2])]


def test_a_link_is_not_followed(project: Project, tmp_path: Path) -> None:
    keep(tmp_path / "elsewhere/1")
    keep(tmp_path / "ci/2")
    (tmp_path / "ci/link").symlink_to(tmp_path / "elsewhere")
    assert sources(project, tmp_path / "ci") == [str(tmp_path / "ci/2")]


def test_the_newest_suite_of_each_shard_counts(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    keep(folder, (1, 3), suite="other number", now=1.0)
    keep(folder, (1, 2), suite="old", now=2.0)
    keep(folder, (2, 2), suite="second", now=3.0)
    keep(folder, (1, 2), suite="new", now=4.0)
    keep(folder, None, suite="whole", now=5.0)
    found = find_shards(project, [str(folder)]).runs
    assert {(shard.number, shard.shards, shard.identity[0]) for shard in found} == {(1, 2, "new"), (2, 2, "second")}


def test_what_a_cached_store_has_of_another_commit_does_not_count(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    keep(folder, (2, 2), suite="cached", now=1.0, revision="a" * 40)
    keep(folder, (1, 2), suite="new", now=2.0, revision="b" * 40)
    found = find_shards(project, [str(folder)]).runs
    assert [shard.identity[0] for shard in found] == ["new"]


def test_a_folder_that_is_too_large_or_too_deep_is_not_searched_to_its_end(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path / "ci/a/b/c/1")
    monkeypatch.setattr(limits, "MAX_SHARD_DEPTH", 3)
    with pytest.raises(NotFound, match="has no run with --shard"):
        sources(project, tmp_path / "ci")
    monkeypatch.setattr(limits, "MAX_SHARD_ENTRIES", 2)
    with pytest.raises(UsageError, match="has more than 2 files and folders"):
        sources(project, tmp_path / "ci")
