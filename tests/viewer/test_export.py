"""The pages as two files."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import signal
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.servers import reset_org
from evalmeta.errors import ProjectError, UsageError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, Run, RunContent, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.lease import new_worker, working
from evalmeta.store.database import open_database
from evalmeta.store.judgements import ResultPlace, keep_mark
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from evalmeta.store.runs import Runs
from evalmeta.viewer.export import export, export_folder
from viewer.conftest import RUN
from viewer.exports import read_export

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalmeta.package.project import Project


def test_all_links_lead_to_pages_of_the_export(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    run()
    run("--iterations", "2")

    written = export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    assert written == (1 + len(shown.pages) + len(shown.cases), 0, 0)
    assert len(shown.cases) == 6
    assert {run["again"] for run in shown.runs} == {"evalmeta run orders.yaml --case"}
    links = {unescape(link) for html in shown.html for link in re.findall(r'href="(#/[^"]*)"', html)}
    assert {link for link in links if not link.startswith(("#/case?", "#/runs?text="))} == {"#/changes", *shown.pages}
    addresses = {shown.address(case) for case in shown.cases}
    assert {link for link in links if link.startswith("#/case?")} < addresses
    assert {"runs", "tests", "compare", "trends", "coverage", "org"} <= {link[2:].partition("?")[0] for link in links}


def test_the_folder_has_the_page_and_its_data_alone(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    run()

    export(project, tmp_path / "out")

    assert names(tmp_path / "out") == {"index.html", "data.js", ".evalmeta-view"}
    for html in read_export(tmp_path / "out").html:
        assert "<form method=" not in html.replace('<form method="dialog">', "")
        assert re.findall(r'(?:href|src|action)="(?!#|data:|data\.js)([^"]*)"', html) == []


def test_what_broke_is_read_without_scripts(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"Orders"', '"Returns"'))
    run()

    export(project, tmp_path / "out")

    index = (tmp_path / "out" / "index.html").read_text().partition("<script")[0]
    assert "Topic: expected the topic Orders, got Returns" in index
    assert "<noscript> The other pages need JavaScript.</noscript>" in index


def test_the_policy_of_the_page_allows_its_own_scripts_and_style_alone(
    project: Project, run: Callable[..., int], tmp_path: Path
) -> None:
    run()

    export(project, tmp_path / "out")

    index = (tmp_path / "out" / "index.html").read_text()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', index)
    rules = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    [style], [script] = (re.findall(rf"<{tag}>(.*?)</{tag}>", index, re.DOTALL) for tag in ("style", "script"))
    nonce = hashlib.sha256((tmp_path / "out" / "data.js").read_bytes()).hexdigest()
    assert f'<script src="data.js?{nonce[:12]}" nonce="{nonce}"></script>' in index
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'{hash_of(script)}' 'nonce-{nonce}'",
        "style-src": f"'{hash_of(style)}'",
        "img-src": "data:",
        "form-action": "'none'",
        "base-uri": "'none'",
    }


def hash_of(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def test_hostile_texts_are_text_in_every_file(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>\u2028"
    (project.root / "order_agent.py").write_text(f"def answer(_):\n    return {hostile!r}\n")
    run()

    export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    assert all("<img" not in html for html in shown.html)
    assert re.fullmatch(r'const DATA = "[\w+/=]+";\n', (tmp_path / "out" / "data.js").read_text())
    answers = {turn["answer"] for case in shown.cases for turn in case["turns"]}
    assert answers == {"</script><img src=x onerror=alert(1)>\\u2028"}


def test_texts_that_are_cut_say_so(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    (project.root / "order_agent.py").write_text('def answer(_):\n    return "word " * 2_000 + "<end>"\n')
    run()

    export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    answer = shown.cases[0]["turns"][0]["answer"]
    assert (len(answer) < 5_000, answer.endswith("… (6,005 more characters)")) == (True, True)
    assert "Texts of more than 4,000 characters are cut. <code>evalmeta view</code> shows everything." in shown.index


def test_what_people_say_of_results_is_exported(project: Project, run: Callable[..., int], tmp_path: Path) -> None:
    run()
    place = ResultPlace("", RUN, 1, 2, "topic_sequence_match")
    with open_database(project.store) as database:
        keep_mark(database, place, ADMIN, "wrong", note="<b>too strict", now=1.0)

    export(project, tmp_path / "out")

    marks = {
        mark for case in read_export(tmp_path / "out").cases for mark in case["turns"][0]["results"][0].get("marks", ())
    }
    assert marks == {"wrong says Local Admin: <b>too strict"}


def test_a_page_that_cannot_be_made_says_why(
    project: Project, run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalmeta.limits.MAX_VIEW_COMPARED", 1)
    run()
    run()

    export(project, tmp_path / "out")

    page = read_export(tmp_path / "out").pages["#/compare?after=4KB000000000002GAA"]
    assert (page["title"], "has 2 results, too many for a page" in page["html"]) == ("Not shown", True)


def test_a_run_of_another_org_is_exported_with_its_cases(project: Project, tmp_path: Path) -> None:
    case = CaseResult(1, 1, "Where is it?", Verdict.PASS, 1.0, 2.0, (), GeneratedData("On its way."))
    there = "4KB5e0000000001AAA"
    known = Run(there, "Orders", "Agent", RunStatus.COMPLETED, 1.0, 1, ended=2.0, cases=(case,))
    with open_remote_runs(project.store) as runs:
        runs.keep(RemoteRun("https://org.example", "dev", known, (there,)))

    export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    assert [case["turns"][0]["answer"] for case in shown.cases] == ["On its way."]
    assert shown.runs[0]["address"] == f"#/run?run={there}&org=https%3A%2F%2Forg.example"
    assert shown.runs[0]["address"] in shown.pages


def test_a_run_that_waits_is_exported_without_results(project: Project, tmp_path: Path) -> None:
    evaluation = Evaluation("Orders", "Agent", ())
    with open_database(project.store) as database:
        run_id = Runs(database).start(
            EVALUATION_DEFINITION, evaluation, RunContent(b""), RunOptions(), total=2, now=1.0
        )

    written = export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    assert (shown.cases, written.left_out_cases) == ([], 0)
    assert "waiting" in shown.pages[f"#/run?run={run_id}"]["html"]


def test_older_runs_are_left_out_and_the_page_says_so(
    project: Project, run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalmeta.limits.MAX_EXPORTED_RUNS", 1)
    run()
    run()

    written = export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    assert (written.left_out_runs, written.left_out_cases) == (1, 0)
    assert [run["id"] for run in shown.runs] == ["4KB000000000002GAA"]
    assert "1 run and 2 case results. 1 older run are left out" not in shown.index
    assert "1 run and 2 case results. Left out to keep it small: 1 older run." in shown.index
    assert not any(f"run={RUN}" in html for html in shown.html)


@pytest.mark.parametrize(("limit", "value"), [("MAX_EXPORTED_CASES", 3), ("MAX_EXPORTED_CHARS", 2_050)])
def test_of_too_many_results_each_run_has_some_and_failed_ones_come_first(
    project: Project, run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr("evalmeta.limits.VIEW_ROWS", 1)
    monkeypatch.setattr(f"evalmeta.limits.{limit}", value)
    run()
    run()

    written = export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    assert (len(shown.cases), written.left_out_cases) == (3, 1)
    assert sorted((case["run"], case["verdict"]) for case in shown.cases) == [
        *((0, "FAILURE"), (0, "PASS"), (1, "FAILURE"))
    ]
    assert "Left out to keep it small: 1 case result." in shown.index


def test_the_newest_run_of_each_test_is_compared(
    project: Project, run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        run()
    export(project, tmp_path / "all")
    monkeypatch.setattr("evalmeta.limits.MAX_EXPORTED_COMPARISONS", 1)
    export(project, tmp_path / "less")

    drawn = [
        [address for address in read_export(tmp_path / name).pages if "/compare" in address] for name in ("all", "less")
    ]
    assert drawn == [["#/compare", "#/compare?after=4KB000000000003GAA"], ["#/compare"]]


def test_a_list_of_runs_has_all_of_them(
    project: Project, run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalmeta.limits.VIEW_ROWS", 1)
    run()
    run()

    export(project, tmp_path / "out")

    html = read_export(tmp_path / "out").pages["#/runs"]["html"]
    assert str(html).count("data-row") == 2
    assert "Next page" not in str(html)


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

    assert names(out) == {"index.html", "data.js", ".evalmeta-view", "mine.html"}
    assert read_export(out).cases == []


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


def test_the_folder_of_an_earlier_version_goes_with_its_files(out: Path) -> None:
    (out / "mine.txt").write_text("mine")
    write(out, {"index.html": "new", "data.js": "new"})
    assert names(out) == {"index.html", "data.js", "mine.txt", ".evalmeta-view"}


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
            (beside / name).parent.mkdir(exist_ok=True)
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


@pytest.mark.slow
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
