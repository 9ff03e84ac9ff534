"""Pages as files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.servers import reset_org
from evalmeta.errors import ProjectError, UsageError
from evalmeta.org.lease import new_worker, working
from evalmeta.viewer.export import export, export_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


OLD = {"index.html": "old", "gone.html": "old", "static/view.css": "old"}
NEW = {"index.html": "new", "more.html": "new", "static/view.css": "new"}


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Export files into a folder."""
    with export_folder(folder) as writing:
        for name, text in files.items():
            writing.write(name, text.encode())


def content(folder: Path) -> dict[str, str]:
    """Return the files of a folder, without the one that names them."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != ".evalmeta-view")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Gives a folder with an earlier export."""
    write(tmp_path / "out", OLD)
    return tmp_path / "out"


def test_a_new_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    write(tmp_path / "a" / "out", NEW)
    assert content(tmp_path / "a" / "out") == NEW
    assert names(tmp_path / "a") == {"out"}


def test_an_earlier_export_is_replaced_as_a_whole_with_its_mode(out: Path) -> None:
    out.chmod(0o750)
    before = out.stat()
    write(out, NEW)
    assert content(out) == NEW
    assert names(out.parent) == {"out"}
    # It is another folder, so that nobody has seen a half one.
    assert (out.stat().st_ino != before.st_ino, out.stat().st_mode) == (True, before.st_mode)


@pytest.mark.parametrize("name", ["mine.txt", "static/mine.txt"])
def test_files_of_others_stay_and_the_folder_too(out: Path, name: str) -> None:
    (out / name).write_text("mine")
    before = out.stat().st_ino
    write(out, NEW)
    assert content(out) == {**NEW, name: "mine"}
    assert (out.stat().st_ino, names(out.parent)) == (before, {"out"})
    write(out, OLD)
    assert content(out) == {**OLD, name: "mine"}


def test_the_current_folder_stays_the_current_one(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out)
    write(Path(), NEW)
    assert content(Path()) == content(out) == NEW


def test_a_link_to_the_folder_stays_one(out: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(out)
    write(tmp_path / "link", NEW)
    assert (content(out), (tmp_path / "link").is_symlink()) == (NEW, True)


def test_a_mounted_folder_gets_the_files_one_by_one(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == out)
    before = out.stat().st_ino
    write(out, NEW)
    assert (content(out), out.stat().st_ino, names(out.parent)) == (NEW, before, {"out"})


def test_a_folder_that_cannot_be_moved_gets_the_files_one_by_one(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(_: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "rename", rename)
    write(out, NEW)
    assert (content(out), names(out.parent)) == (NEW, {"out"})


@pytest.mark.parametrize("name", ["more.html", "static/more.css", ".evalmeta-view"])
def test_a_full_disk_leaves_the_earlier_export_and_names_the_file(
    out: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(out.parent)

    def fill() -> None:
        with export_folder(Path("out")) as writing:
            [beside] = out.parent.glob(".out.evalmeta-*")
            (beside / name).symlink_to("/dev/full")
            for given in ("index.html", name):
                if given != ".evalmeta-view":
                    writing.write(given, b"new")

    with pytest.raises(ProjectError) as full:
        fill()

    assert str(full.value) == f"out/{name}: cannot be written: No space left on device; out is as it was before"
    assert full.value.actions
    assert (content(out), names(out.parent)) == (OLD, {"out"})


def test_without_an_earlier_export_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    def fill() -> None:
        with export_folder(tmp_path / "out") as writing:
            [beside] = tmp_path.glob(".out.evalmeta-*")
            (beside / "index.html").symlink_to("/dev/full")
            writing.write("index.html", b"new")

    with pytest.raises(ProjectError, match=r"index\.html: cannot be written: No space left on device$"):
        fill()
    assert names(tmp_path) == set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_the_earlier_export(out: Path, error: type[BaseException]) -> None:
    def stop() -> None:
        with export_folder(out) as writing:
            writing.write("index.html", b"new")
            raise error

    with pytest.raises(error):
        stop()
    assert (content(out), names(out.parent)) == (OLD, {"out"})


_KILLED = """
import os, pathlib, signal, sys
from evalmeta.viewer import export as module

real, at = pathlib.Path.rename, int(sys.argv[2])
def rename(path, target):
    global at
    at -= 1
    if at == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, target)

pathlib.Path.rename = rename
with module.export_folder(pathlib.Path(sys.argv[1])) as writing:
    for name in ("index.html", "more.html", "static/view.css"):
        writing.write(name, b"new")
    if at == 0:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("at", "left"), [(0, OLD), (1, OLD), (2, {})], ids=["while it is written", "before it is moved", "between"]
)
def test_after_a_kill_there_is_a_whole_export_and_the_next_one_leaves_nothing_behind(
    out: Path, at: int, left: dict[str, str]
) -> None:
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(out), str(at)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert content(out) == left
    assert len(names(out.parent) - {"out"}) == (2 if at == 2 else 1)

    # The next export fails, and finds a whole one anyway.
    def fail() -> None:
        with export_folder(out):
            raise InterruptedError

    with pytest.raises(ProjectError):
        fail()
    assert content(out) in ([NEW, OLD] if at == 2 else [OLD])
    assert names(out.parent) == {"out"}
    write(out, OLD)
    assert (content(out), names(out.parent)) == (OLD, {"out"})


@pytest.mark.parametrize("moved", range(5))
def test_after_an_interruption_between_two_files_the_next_export_still_knows_all(
    out: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    (out / "mine.txt").write_text("mine")
    real, calls = Path.replace, list[Path]()

    def replace(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) > moved:
            raise KeyboardInterrupt
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            write(out, NEW)

    write(out, {"last.html": "last"})
    assert content(out) == {"last.html": "last", "mine.txt": "mine"}
    assert names(out.parent) == {"out"}


def test_an_export_that_is_still_written_is_not_swept(out: Path) -> None:
    worker, other = new_worker(), out.parent / ".out.evalmeta-other"
    other.mkdir()
    (other / ".evalmeta-writer").write_text(worker)
    with working(worker):
        write(out, NEW)
    assert other.exists()
    write(out, NEW)
    assert not other.exists()


def test_two_exports_at_once_leave_one_of_them_whole(out: Path) -> None:
    with export_folder(out) as first, export_folder(out) as second:
        for name in NEW:
            first.write(name, b"first")
            second.write(name, b"second")
    assert content(out) == dict.fromkeys(NEW, "first")
    assert names(out.parent) == {"out"}


def test_a_folder_with_files_of_others_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="has files that evalmeta did not write"):
        write(tmp_path, NEW)
    assert content(tmp_path) == {"mine.txt": "mine"}


@pytest.mark.parametrize("name", ["../mine.txt", "/etc/passwd", "a/b", "static/../../mine.txt", ""])
def test_a_list_that_names_other_files_deletes_none(out: Path, name: str) -> None:
    (out.parent / "mine.txt").write_text("mine")
    with (out / ".evalmeta-view").open("a") as marker:
        marker.write(f"\n{name}")
    write(out, NEW)
    assert (out.parent / "mine.txt").read_text() == "mine"
    assert content(out) == NEW
