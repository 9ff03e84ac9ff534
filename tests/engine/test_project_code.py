from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.project_code import import_from
from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def project(root: Path, **modules: str) -> Path:
    for name, text in modules.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def load(root: Path, name: str = "agent") -> object:
    return import_from(root, name, called=f"the subject's target {name}:answer")


def test_two_projects_with_modules_of_one_name_do_not_mix(tmp_path: Path) -> None:
    one = project(tmp_path / "one", agent="from helper import NAME", helper="NAME = 'one'")
    two = project(tmp_path / "two", agent="from helper import NAME", helper="NAME = 'two'")
    assert [load(root).NAME for root in (one, two, one)] == ["one", "two", "one"]


def test_folders_of_one_name_without_init_do_not_mix(tmp_path: Path) -> None:
    one, two = (project(tmp_path / name, bots__agent=f"NAME = {name!r}") for name in ("one", "two"))
    assert [load(root, "bots.agent").NAME for root in (one, two, one)] == ["one", "two", "one"]
    with pytest.raises(SettingsError, match=r"bots\.py does not exist"):
        load(tmp_path, "bots")


def test_a_changed_module_is_loaded_anew(tmp_path: Path) -> None:
    assert load(project(tmp_path, agent="from helper import N", helper="N = 1")).N == 1
    assert load(project(tmp_path, agent="from helper import N", helper="N = 1000")).N == 1000


def test_an_edit_in_the_second_of_an_import_is_seen_by_every_later_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    second = int(time.time())
    for number in (1, 2):
        project(tmp_path, agent="from helper import N", helper=f"N = {number}")
        os.utime(tmp_path / "helper.py", (second, second))
        assert number == load(tmp_path).N


def test_modules_that_were_not_edited_just_now_stay_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    hour_ago = time.time() - 3600
    os.utime(project(tmp_path, agent="N = 1") / "agent.py", (hour_ago, hour_ago))
    load(tmp_path)
    assert [*tmp_path.glob("__pycache__/agent.*.pyc")]


def test_packages_may_import_their_own_parts(tmp_path: Path) -> None:
    root = project(
        tmp_path, pkg____init__="", pkg__agent="from .tools import T\nfrom pkg.tools import T as U", pkg__tools="T = 1"
    )
    root.joinpath("pkg", "__init__.py").touch()
    module = load(root, "pkg.agent")
    assert module.T is module.U


def test_a_module_of_the_project_wins_over_a_loaded_one_that_stays(tmp_path: Path) -> None:
    ours = sys.modules.get("engine")
    module = load(project(tmp_path, engine="MINE = True"), "engine")
    assert module.MINE
    assert sys.modules.get("engine") in {ours, module}


def test_the_search_path_is_as_it_was(tmp_path: Path) -> None:
    before = list(sys.path)
    load(project(tmp_path, agent="import sys\nHERE = sys.path[0]"))
    assert sys.path == before


def test_an_installed_module_can_be_the_target(tmp_path: Path) -> None:
    assert load(tmp_path, "json") is json


def test_a_missing_module_is_reported_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"bots/agent\.py does not exist") as caught:
        load(tmp_path, "bots.agent")
    assert "Create" in caught.value.actions[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\nimport no_such_library\n", r"agent\.py:2: ModuleNotFoundError: No module named 'no_such_library'"),
        ("def answer(:\n", r"agent\.py:1: SyntaxError: [^(]*$"),
        ("raise SystemExit(2)\n", r"agent\.py:1: SystemExit: 2"),
        ("\n\n1 / 0\n", r"agent\.py:3: ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        load(project(tmp_path, agent=text))
