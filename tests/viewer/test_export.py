"""Pages as files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.servers import reset_org
from evalmeta.errors import UsageError
from evalmeta.viewer.export import export

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.project import Project


def links(folder: Path) -> set[str]:
    """Return the files that the pages of a folder refer to."""
    found = set()
    for page in folder.glob("*.html"):
        found |= {link.partition("#")[0] for link in re.findall(r'(?:href|src)="([^"#][^"]*)"', page.read_text())}
    return found


def test_all_links_lead_to_files_of_the_folder(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    run()
    run("--iterations", "2")

    written = export(project, tmp_path / "out")

    pages = {path.name for path in (tmp_path / "out").glob("*.html")}
    assert len(pages) == written.pages
    assert (written.left_out_runs, written.left_out_cases) == (0, 0)
    missing = {link for link in links(tmp_path / "out") if not (tmp_path / "out" / link).is_file()}
    assert missing == set()
    assert any(name.startswith("case-") for name in pages)


def test_pages_have_no_forms_and_their_policy(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    run()

    export(project, tmp_path / "out")

    for page in (tmp_path / "out").glob("*.html"):
        html = page.read_text()
        assert "<form method=" not in html.replace('<form method="dialog">', "")
        assert "Content-Security-Policy" in html


def test_older_pages_are_left_out_and_counted(
    project: Project, run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalmeta.viewer.export._LIMITS", {"run": ("run", 1)})
    run()
    run()

    written = export(project, tmp_path / "out")

    assert written.left_out_runs == 1
    assert links(tmp_path / "out") - {""} <= {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")
    }


def test_a_folder_with_other_files_is_not_touched(project: Project, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")

    with pytest.raises(UsageError, match="has files that evalmeta did not write"):
        export(project, tmp_path / "out")

    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_an_export_replaces_only_what_the_one_before_wrote(
    project: Project, run: Callable[..., int], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run()
    export(project, out)
    reset_org(project)
    (out / "mine.html").write_text("mine")

    export(project, out)

    assert {path.name for path in out.glob("*.html")} == {
        *("index.html", "runs.html", "compare.html", "trends.html", "org.html", "mine.html")
    }
