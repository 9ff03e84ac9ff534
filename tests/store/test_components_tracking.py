from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.store.components import Synced, open_tracking
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

KIND = "AiEvaluationDefinition"
URL = "http://org.invalid"
ONE, TWO = Synced(b"\x01" * 32, "2026-11-20T12:00:00.000Z"), Synced(b"\x02" * 32, "")


def test_remembered_components_are_there_later(tmp_path: Path) -> None:
    with open_tracking(store_in(tmp_path / "state"), root=tmp_path, org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE, "Returns": TWO})

    with open_tracking(store_in(tmp_path / "state"), root=tmp_path, org_url=URL) as tracking:
        assert tracking.load(KIND) == {"orders": ONE, "returns": TWO}


def test_names_ignore_case_and_the_last_state_wins(tmp_path: Path) -> None:
    with open_tracking(store_in(tmp_path / "state"), root=tmp_path, org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE})
        tracking.remember(KIND, {"ORDERS": TWO})

        assert tracking.load(KIND) == {"orders": TWO}


def test_forgotten_components_are_gone(tmp_path: Path) -> None:
    with open_tracking(store_in(tmp_path / "state"), root=tmp_path, org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE, "Returns": TWO})
        tracking.forget(KIND, ["orders"])

        assert tracking.load(KIND) == {"returns": TWO}


def test_orgs_and_projects_are_separate(tmp_path: Path) -> None:
    with open_tracking(store_in(tmp_path / "state"), root=tmp_path / "a", org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE})

    for root, url in (("b", URL), ("a", "http://other.invalid")):
        with open_tracking(store_in(tmp_path / "state"), root=tmp_path / root, org_url=url) as tracking:
            assert tracking.load(KIND) == {}


@pytest.mark.sqlite
def test_a_project_moved_with_its_state_remembers(tmp_path: Path) -> None:
    with open_tracking(store_in(tmp_path / "a/.evalmeta"), root=tmp_path / "a", org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE})

    (tmp_path / "a").rename(tmp_path / "b")

    with open_tracking(store_in(tmp_path / "b/.evalmeta"), root=tmp_path / "b", org_url=URL) as tracking:
        assert tracking.load(KIND) == {"orders": ONE}
