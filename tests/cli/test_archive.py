"""`evalmeta test archive`: finished runs become files, and are read back as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet

from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from viewer.exports import read_export

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

pytestmark = pytest.mark.slow  # each runs several commands; tests/store/test_archives.py is quick

SPEC = "subject: desk:answer\ncases:\n- input: When?\n  topic: Orders\n- input: Where?\n  topic: Other\n"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text("def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'Soon.'}\n")
    for name in ("orders", "returns"):
        (tmp_path / f"{name}.yaml").write_text(SPEC)


def change_store(sql: str, *values: str) -> None:
    with open_database(find_project(Path.cwd()).store) as database, database.transaction():
        assert database.execute(sql, values)


def run_ids(evalmeta: Program, *archive: str) -> list[str]:
    return [run["runId"] for run in json.loads(evalmeta("test", "history", *archive, "--json").out)["result"]]


def set_manifest(**changes: object) -> None:
    """Change the manifest of the archive "kept", whose checksum stays."""
    path = Path("kept/manifest.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_results_of_an_archived_suite_are_those_of_the_stored_one_byte_for_byte(evalmeta: Program) -> None:
    evalmeta("run", ".", "--iterations", "2")
    done = evalmeta("test", "archive", "latest", "kept/first")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Archived 2 runs with 8 results into kept/first (")
    assert sorted(path.name for path in Path("kept/first").iterdir()) == ["manifest.json", "results.parquet"]
    for result_format in ("json", "jsonl", "junit", "csv"):
        stored = evalmeta("test", "results", "latest", "--result-format", result_format)
        read = evalmeta("test", "results", "kept/first", "--result-format", result_format)
        assert read == stored._replace(err="")
        assert read.code == 100
        assert "When?" in read.out or result_format == "junit"
    # A run that may not be here cannot be run again by its id.
    assert "To run only these again" not in evalmeta("test", "results", "kept/first").out
    assert not [*Path(".evalmeta").glob("evalmeta-archive-*/results.parquet")]


def test_the_columns_of_results_can_be_queried_without_evalmeta(evalmeta: Program) -> None:
    evalmeta("run", "orders.yaml")
    evalmeta("test", "archive", "latest", "kept")
    table = parquet.read_table("kept/results.parquet").to_pylist()
    assert [(row["number"], row["verdict"], row["utterance"], row["answer"], row["topic"]) for row in table] == [
        (1, "PASS", "When?", "Soon.", "Orders"),
        (2, "FAILURE", "Where?", "Soon.", "Orders"),
    ]
    assert table[1]["results"][0] == {"name": "topic_sequence_match", "verdict": "FAILURE", "score": 0.0}
    with open_database(find_project(Path.cwd()).store) as database:
        stored = database.query("SELECT run_id, iteration, number, verdict, body FROM case_result ORDER BY number")
    assert [
        tuple(row[name] for name in ("run_id", "iteration", "number", "verdict", "body")) for row in table
    ] == stored


def test_the_same_command_again_finds_the_same_archive_and_another_one_is_never_replaced(evalmeta: Program) -> None:
    evalmeta("run", "orders.yaml")
    evalmeta("test", "archive", "latest", "kept")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("kept").iterdir()}
    again = json.loads(evalmeta("test", "archive", "latest", "kept", "--json").out)["result"]
    assert (again["new"], again["results"]) == (False, 2)
    evalmeta("run", "orders.yaml")
    for run in ("latest", "previous"):
        if run == "previous":
            change_store("UPDATE case_result SET verdict = 'ERROR' WHERE number = 1")
        refused = evalmeta("test", "archive", run, "kept")
        assert refused.code == 2
        assert "kept has another archive, of 4KB000000000001GAA; nothing was changed" in refused.err
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("kept").iterdir()}


def test_an_archive_whose_results_are_damaged_is_refused_and_written_again_by_the_same_command(
    evalmeta: Program,
) -> None:
    evalmeta("run", "orders.yaml")
    evalmeta("test", "archive", "latest", "kept")
    whole = Path("kept/results.parquet").read_bytes()
    for damaged in (whole[:-1], whole.replace(b"PAR1", b"PAR2"), b""):
        Path("kept/results.parquet").write_bytes(damaged)
        refused = evalmeta("test", "results", "kept")
        assert refused.code == 1
        assert "kept is damaged: results.parquet does not have its checksum" in refused.err
        assert evalmeta("test", "archive", "latest", "kept").out.startswith("Archived 1 run")
        assert Path("kept/results.parquet").read_bytes() == whole
    Path("kept/results.parquet").unlink()
    assert "kept has no file results.parquet" in evalmeta("test", "results", "kept").err
    assert evalmeta("test", "archive", "latest", "kept").code == 0
    assert not [*Path(".evalmeta").glob("evalmeta-archive-*")]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("{", 1, "kept is damaged: manifest.json is not valid JSON"),
        ('{"name": "an app"}', 2, "kept is not an archive of runs: its manifest.json is of another program"),
        ("[]", 2, "kept is not an archive of runs"),
        ({"layout": 2}, 2, "kept was written by a newer evalmeta, 0."),
        ({"storeLayout": 99}, 2, "kept was written by a newer evalmeta, 0."),
        ({"runs": ["4KB000000000009GAA"]}, 1, "kept is damaged: manifest.json does not have its checksum"),
    ],
)
def test_what_is_damaged_foreign_or_newer_is_refused_by_its_name(
    evalmeta: Program, content: str | dict[str, object], code: int, message: str
) -> None:
    evalmeta("run", "orders.yaml")
    evalmeta("test", "archive", "latest", "kept")
    if isinstance(content, dict):
        set_manifest(**content)
    else:
        Path("kept/manifest.json").write_text(content)
    for words in (("results", "kept"), ("compare", "kept", "latest"), ("archive", "latest", "kept")):
        refused = evalmeta("test", *words)
        assert (refused.code, message in refused.err) == (code, True), refused


def test_a_folder_that_is_not_an_archive_is_not_written_to_and_not_read(evalmeta: Program) -> None:
    evalmeta("run", "orders.yaml")
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("keep me")
    refused = evalmeta("test", "archive", "latest", "mine")
    assert "mine has files that are not of an archive: notes.txt" in refused.err
    assert refused.code == evalmeta("test", "archive", "latest", "orders.yaml").code == 2
    for name in ("mine", "./absent", "a/b"):
        assert "has no archive of runs" in evalmeta("test", "results", name).err
    assert "has no archive of runs" in evalmeta("view", "mine", "--export", "pages").err
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]


def test_runs_that_are_not_over_or_not_known_are_refused_before_anything_is_written(evalmeta: Program) -> None:
    evalmeta("run", ".")
    change_store("UPDATE run SET status = 'IN_PROGRESS', ended_at = NULL WHERE id LIKE '%2GAA'")
    refused = evalmeta("test", "archive", "latest", "kept")
    assert (refused.code, "run 4KB000000000002GAA is not over: its status is IN_PROGRESS" in refused.err) == (2, True)
    assert "no run '4KB000000000009GAA' is known here" in evalmeta("test", "archive", "4KB000000000009GAA", "kept").err
    assert "Give at least one run" in evalmeta("test", "archive", "kept").err
    assert evalmeta("test", "archive", "x", "kept").code == 2
    assert not Path("kept").exists()


KILLED = """
import os, signal, sys
from evalmeta.store import archives
from evalmeta.store.archive_folders import ArchiveFolder

put, parts = ArchiveFolder.put, archives._parquet_pieces

def dying(rows):
    yield from list(parts(rows))[:1]
    os.kill(os.getpid(), signal.SIGKILL)

def put_until(self, name, pieces):
    if name == "manifest.json":
        os.kill(os.getpid(), signal.SIGKILL)
    put(self, name, pieces)

if sys.argv.pop(1) == "results":
    archives._parquet_pieces = dying
else:
    ArchiveFolder.put = put_until
from evalmeta.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("file", ["results", "manifest"])
def test_an_archive_that_is_killed_never_looks_complete_and_the_same_command_replaces_it(
    evalmeta: Program, file: str
) -> None:
    evalmeta("run", "orders.yaml")
    words = [sys.executable, "-c", KILLED, file, "test", "archive", "latest", "kept", "--delete"]
    assert subprocess.run(words, check=False, capture_output=True).returncode == -9
    for path in Path("kept").iterdir():
        # A file that is younger than a second may belong to a process that has not locked it yet.
        os.utime(path, (1, 1))
        assert path.name == "results.parquet" or path.name.startswith(".results.parquet.")
    refused = evalmeta("test", "results", "kept")
    assert (refused.code, "kept has " in refused.err) == (2, True)
    assert run_ids(evalmeta) == ["4KB000000000001GAA"]
    assert evalmeta("test", "archive", "latest", "kept").out.startswith("Archived 1 run with 2 results")
    assert sorted(path.name for path in Path("kept").iterdir()) == ["manifest.json", "results.parquet"]
    assert evalmeta("test", "results", "kept").code == 100


def test_runs_are_deleted_only_on_demand_and_only_if_nothing_needs_them(evalmeta: Program) -> None:
    for _ in range(3):
        evalmeta("run", "orders.yaml")
    evalmeta("test", "rescore", "4KB000000000002GAA")
    first, second, third, again = run_ids(evalmeta)
    assert evalmeta("test", "archive", first, second, third, again, "kept").code == 0
    assert run_ids(evalmeta) == [first, second, third, again]
    evalmeta("test", "mark", "wrong", "--job-id", third, "--case", "2")
    refused = evalmeta("test", "archive", first, second, third, again, "kept", "--delete")
    assert "kept has another archive" in refused.err
    done = evalmeta("test", "archive", first, second, third, again, "kept2", "--delete")
    assert "Deleted 3 runs here." in done.out
    assert f"{third} stays here: it is judged by people." in done.err
    assert run_ids(evalmeta) == [third]
    assert run_ids(evalmeta, "kept2") == [first, second, third, again]


def test_runs_that_changed_while_they_were_archived_are_not_deleted(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalmeta.api.runs import archives

    evalmeta("run", "orders.yaml")
    verify = archives._verify  # noqa: SLF001 - the time between archiving and deleting

    def change(*arguments: object) -> None:
        verify(*arguments)  # type: ignore[arg-type] # as it was called
        change_store("UPDATE run SET ended_at = ended_at + 1")

    monkeypatch.setattr(archives, "_verify", change)
    refused = evalmeta("test", "archive", "latest", "kept", "--delete")
    assert "the runs have changed since they were archived into kept; none was deleted" in refused.err
    assert len(run_ids(evalmeta)) == 1


@pytest.mark.sqlite
def test_judgements_suites_and_the_files_of_tests_travel_with_their_runs(evalmeta: Program, tmp_path: Path) -> None:
    evalmeta("run", ".")
    evalmeta("test", "mark", "wrong", "--job-id", "latest:orders.yaml", "--case", "2")
    change_store(
        "INSERT INTO suite_test SELECT suite, 3, type, 'due.yaml', '', file, options, 'due' FROM suite_test LIMIT 1"
    )
    evalmeta("test", "archive", "latest", "kept")
    stored = evalmeta("test", "results", "latest", "--result-format", "csv")
    (tmp_path / ".evalmeta").rename(tmp_path / "elsewhere")
    read = evalmeta("test", "results", "kept", "--result-format", "csv")
    assert (read.code, read.out) == (stored.code, stored.out)
    assert "orders.yaml" in read.out
    assert "People marked 1 verdict as wrong." in read.err
    assert "the suite is not complete: 1 test never started: due.yaml" in read.err
    evalmeta("test", "archive", "latest:orders.yaml", "one")


def test_without_pyarrow_the_error_names_the_extra(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    evalmeta("run", "orders.yaml")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for words in (("archive", "latest", "kept"), ("results", "./kept")):
        refused = evalmeta("test", *words)
        assert refused.code == 2
        assert "pip install 'evalmeta[archive]'" in refused.err


@pytest.mark.sqlite
def test_an_archived_run_is_compared_on_either_side_also_with_one_that_has_its_id(
    evalmeta: Program, tmp_path: Path
) -> None:
    evalmeta("run", "orders.yaml")
    evalmeta("test", "archive", "latest", "kept")
    refused = evalmeta("test", "compare", "kept", "latest")
    assert (refused.code, "would be compared with itself" in refused.err) == (2, True)
    # A new store counts its runs from 1 again.
    (tmp_path / ".evalmeta").rename(tmp_path / "elsewhere")
    (tmp_path / "desk.py").write_text("def answer(utterance):\n    return {'topic': 'Other', 'outcome': 'Late.'}\n")
    evalmeta("run", "orders.yaml")
    change_store("UPDATE run SET created_at = created_at + 60, started_at = started_at + 60, ended_at = ended_at + 60")
    evalmeta("test", "archive", "latest", "now")
    for before, after in (("kept", "latest"), ("kept", "now")):
        done = json.loads(evalmeta("test", "compare", before, after, "--json").out)["result"][0]
        assert (done["before"], done["after"]) == ("4KB000000000001GAA", "4KB000000000001GAA")
        assert {case["testNumber"]: case["standing"] for case in done["cases"]} == {1: "suspect", 2: "maybe fixed"}
    assert evalmeta("test", "compare", "latest", "kept").code == 0
    assert evalmeta("test", "compare", "now", "--baseline", "kept").code == 2


@pytest.mark.sqlite
def test_new_answers_to_suspect_cases_travel_with_the_run_and_count_in_its_comparison(
    evalmeta: Program, tmp_path: Path
) -> None:
    evalmeta("run", "orders.yaml")
    (tmp_path / "desk.py").write_text("def answer(utterance):\n    return {'topic': 'Gone', 'outcome': 'Soon.'}\n")
    evalmeta("test", "run", "orders.yaml", "--wait", "--baseline", "previous")
    listed = run_ids(evalmeta)
    assert len(listed) > 2
    stored = evalmeta("test", "compare", listed[0], listed[1], "--json")
    assert "broken" in stored.out
    assert (
        evalmeta("test", "archive", listed[0], "first").code == evalmeta("test", "archive", listed[1], "kept").code == 0
    )
    (tmp_path / ".evalmeta").rename(tmp_path / "elsewhere")
    assert evalmeta("test", "compare", "first", "kept", "--json").out == stored.out


@pytest.mark.sqlite
def test_the_viewer_shows_an_archive_and_changes_nothing_in_it(evalmeta: Program, tmp_path: Path) -> None:
    evalmeta("run", ".")
    evalmeta("view", "--export", "stored")
    evalmeta("test", "archive", "latest", "kept")
    (tmp_path / ".evalmeta").rename(tmp_path / "elsewhere")
    done = evalmeta("view", "kept", "--export", "pages")
    assert (done.code, done.err) == (0, "")
    stored, kept = read_export(Path("stored")), read_export(Path("pages"))
    assert (kept.runs, kept.cases) == (stored.runs, stored.cases)
    assert {address for address in kept.pages if address.startswith(("#/run?", "#/suite?"))} == {
        address for address in stored.pages if address.startswith(("#/run?", "#/suite?"))
    }
    assert len(kept.cases) > 2


LEFT = """
import os, signal
from pathlib import Path
from evalmeta.api.runs.archives import open_archive
from evalmeta.package.project import find_project

open_archive(find_project(Path.cwd()), "kept")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.sqlite
def test_what_a_killed_reader_leaves_is_deleted_by_the_next(evalmeta: Program, tmp_path: Path) -> None:
    evalmeta("run", "orders.yaml")
    evalmeta("test", "archive", "latest", "kept")
    assert subprocess.run([sys.executable, "-c", LEFT], check=False).returncode == -9
    [left] = [path for path in (tmp_path / ".evalmeta").glob("evalmeta-archive-*") if path.is_dir()]
    assert evalmeta("test", "results", "kept").code == 100
    assert not left.exists()
