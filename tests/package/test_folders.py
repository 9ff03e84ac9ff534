from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.package.folders import files_below

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def names(root: Path, folder: Path | None = None) -> list[str]:
    return sorted(each.relative_to(root).as_posix() for each in files_below(folder or root))


def put(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_hidden_and_installed_files_are_skipped(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", "sub/b.yaml", ".c.yaml", ".github/d.yaml", ".venv/e.yaml", "node_modules/f.yaml")
    put(tmp_path, "env/pyvenv.cfg", "env/lib/g.yaml", "__pycache__/h.yaml")
    assert names(tmp_path) == ["a.yaml", "sub/b.yaml"]


def test_a_folder_that_is_named_is_searched_even_if_it_is_hidden(tmp_path: Path) -> None:
    put(tmp_path, ".specs/a.yaml", ".venv/pyvenv.cfg", ".venv/b.yaml")
    assert names(tmp_path, tmp_path / ".specs") == [".specs/a.yaml"]
    assert names(tmp_path, tmp_path / ".venv") == [".venv/b.yaml", ".venv/pyvenv.cfg"]


def test_ignored_files_are_skipped_also_from_a_folder_inside_the_project(dx: Path) -> None:
    put(dx, "specs/a.yaml", "specs/drafts/b.yaml", "specs/c.draft.yaml")
    (dx / ".forceignore").write_text("drafts/\n*.draft.yaml\n")
    assert names(dx / "specs") == ["a.yaml"]
    assert names(dx / "specs" / "drafts") == ["b.yaml"]


def test_paths_begin_as_the_folder_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "sub/a.yaml")
    (tmp_path / "link").symlink_to("sub")
    monkeypatch.chdir(tmp_path)
    folder = type(tmp_path)("link")
    assert [each.as_posix() for each in files_below(folder)] == ["link/a.yaml"]
    assert [each.as_posix() for each in files_below(type(tmp_path)())] == ["sub/a.yaml"]
