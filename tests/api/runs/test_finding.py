from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.org_targets import EMBEDDED_URL
from evalmeta.api.runs.finding import locate, target_of
from evalmeta.client.logins import user_logins
from evalmeta.errors import NotFound
from evalmeta.model.login import Login, Secrets
from evalmeta.model.run import Run, RunStatus
from evalmeta.package.project import find_project
from evalmeta.store.components import open_receipts
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from org.parts import make_project, started

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

ID = "4KB000000000001GAA"
URLS = {name: f"https://{name}.example" for name in ("desk", "shop")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name, url in URLS.items():
        user_logins().save(Login(f"me@{name}.example", url, alias=name), Secrets("canary"))
    return make_project(tmp_path / "project")


def keep(project: Project, *names: str) -> None:
    """Keeps a run with the same id for each org, the last one as the latest."""
    for started_at, name in enumerate(names):
        run = Run(ID, "Orders", "", RunStatus.NEW, started_at, 0)
        with open_remote_runs(project.store) as runs:
            runs.keep(RemoteRun(URLS[name], name, run, (ID,)))
        with open_receipts(project.store, root=project.root, org_url=URLS[name]) as receipts:
            receipts.keep("test", ID, now=time.time())


def test_a_run_is_in_the_org_that_was_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(project, "desk", "shop")
    assert locate(project, ID, named="desk").org_url == URLS["desk"]
    monkeypatch.setenv("SF_TARGET_ORG", "desk")
    assert locate(project, None).org_url == URLS["desk"]


def test_a_run_is_looked_for_in_the_default_org_first(project: Project) -> None:
    keep(project, "desk", "shop")
    (project.root / "evalmeta.toml").write_text('[org]\ndefault = "desk"\n')
    assert locate(find_project(project.root), ID).org_url == URLS["desk"]


def test_otherwise_a_run_is_in_the_org_that_has_it_and_the_latest_wins(project: Project) -> None:
    keep(project, "desk", "shop")
    place = locate(project, ID)
    assert (place.org_url, place.remote.org_name, target_of(place).login.alias) == (URLS["shop"], "shop", "shop")


def test_the_projects_own_org_comes_before_others_with_the_same_run_id(project: Project) -> None:
    assert started(project, cases=1) == ID
    keep(project, "desk")
    place = locate(project, ID)
    assert (place.org_url, target_of(place), place.remote) == (EMBEDDED_URL, None, None)


def test_an_unknown_run_is_searched_in_the_default_org(project: Project) -> None:
    place = locate(project, ID)
    assert (place.org_url, target_of(place)) == (EMBEDDED_URL, None)


def test_the_most_recent_run_is_the_last_one_in_any_org(project: Project) -> None:
    keep(project, "shop", "desk")
    place = locate(project, None)
    assert (place.id, place.org_url) == (ID, URLS["desk"])


@pytest.mark.parametrize("named", [None, "desk"])
def test_without_runs_there_is_no_most_recent_one(project: Project, named: str | None) -> None:
    with pytest.raises(NotFound, match="no run of this project"):
        locate(project, None, named=named)
