"""Archives hold rows as the store has them, of any layout, in groups of bounded size."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest
from pyarrow import parquet

from evalmeta import limits
from evalmeta.errors import ArchiveError, NotFound
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, Run, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.store.archive_folders import ArchiveFolder, archive_folder
from evalmeta.store.archives import RunKey, load_archive, read_manifest, rows_of, write_archive
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns
from evalmeta.store.runs import Runs
from evalmeta.store.sqlite import open_sqlite, read_migrations
from evalmeta.store.stored_cases import encode_case

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.store.database import Database

RESULTS = "SELECT run_id, iteration, number, verdict, body FROM case_result ORDER BY run_id, iteration, number"
CHECK = TestResult("topic_sequence_match", Verdict.PASS, "Orders", "Orders", score=1.0)
MEASURED = TestResult("latency", Verdict.UNDECIDED, score=12.0, is_measured=True)
ANSWERED = CaseResult(1, 1, "Wo?", Verdict.PASS, 10.0, 11.0, (CHECK, MEASURED), GeneratedData("☃", "Orders", None, 2.5))
SILENT = CaseResult(2, 1, "", Verdict.ERROR, 10.0, 11.0, (), None, "the agent did not answer")


def save_run(database: Database, cases: Sequence[CaseResult], content: bytes = b"<test/>") -> RunKey:
    runs = Runs(database)
    evaluation = Evaluation("Orders", "Desk", ())
    run_id = runs.start(
        EVALUATION_DEFINITION, evaluation, RunContent(content), RunOptions(), total=len(cases), now=10.0
    )
    runs.claim(run_id, "worker", taken_from=runs.lease(run_id), until=99.0, now=10.0)
    runs.finish(run_id, "worker", RunStatus.COMPLETED, error=None, now=12.0)
    rows = [(run_id, case.iteration, case.number, case.verdict.value, encode_case(case)) for case in cases]
    database.execute_many("INSERT INTO case_result VALUES (?, ?, ?, ?, ?)", rows)
    return RunKey("", run_id)


def copied(folder: ArchiveFolder, state: Path) -> Database:
    """Load an archive, and open its store."""
    state.mkdir()
    load_archive(folder, read_manifest(folder), state)
    return open_database(state)


def test_all_rows_of_a_run_come_back_as_they_were(database: Database, tmp_path: Path) -> None:
    save_run(database, [ANSWERED])
    key = save_run(database, [ANSWERED, SILENT], content=bytes(range(256)))
    folder = archive_folder(str(tmp_path / "kept"))
    write_archive(database, folder, [key])
    with copied(folder, tmp_path / "read") as read:
        assert rows_of(read, [key]) == rows_of(database, [key])
        assert Runs(read).get(key.id) == Runs(database).get(key.id)
        assert Runs(read).content(key.id) == Runs(database).content(key.id)
        assert read.query(RESULTS) == [row for row in database.query(RESULTS) if row[0] == key.id]
        assert Runs(read).cases(key.id) == (ANSWERED, SILENT)


def test_columns_for_queries_have_what_the_results_say(database: Database, tmp_path: Path) -> None:
    folder = archive_folder(str(tmp_path / "kept"))
    write_archive(database, folder, [save_run(database, [ANSWERED, SILENT])])
    answered, silent = parquet.read_table(tmp_path / "kept/results.parquet").to_pylist()
    assert [answered[name] for name in ("utterance", "answer", "topic", "latency_ms", "error")] == [
        *("Wo?", "☃", "Orders", 2.5, None)
    ]
    assert answered["started"].timestamp() == 10.0
    assert [(result["name"], result["verdict"], result["score"]) for result in answered["results"]] == [
        ("topic_sequence_match", "PASS", 1.0),
        ("latency", None, 12.0),
    ]
    assert (silent["answer"], silent["topic"], silent["results"]) == (None, None, [])
    assert silent["error"] == "the agent did not answer"


def test_row_groups_have_bounded_rows_and_bytes(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_GROUP_ROWS", 10)
    monkeypatch.setattr(limits, "ARCHIVE_GROUP_BYTES", 5_000)
    cases = [ANSWERED._replace(number=number, error="x" * (3_000 if number > 20 else 1)) for number in range(1, 26)]
    folder = archive_folder(str(tmp_path / "kept"))
    write_archive(database, folder, [save_run(database, cases)])
    file = parquet.ParquetFile(tmp_path / "kept/results.parquet")
    assert [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)] == [10, 10, 2, 2, 1]
    file.close()
    with copied(folder, tmp_path / "read") as read:
        assert len(read.query(RESULTS)) == len(cases)
    monkeypatch.setattr(limits, "MAX_ARCHIVE_GROUP_BYTES", 100)
    with pytest.raises(ArchiveError, match=r"a row group of results\.parquet has [\d,]+ bytes"):
        copied(folder, tmp_path / "again")


def test_a_run_without_results_and_one_of_another_org_are_archived_too(database: Database, tmp_path: Path) -> None:
    run = Run("4KB5e0000000001AAA", "Orders", "Desk", RunStatus.COMPLETED, 10.0, 1, ended=12.0, cases=(SILENT,))
    remote = RemoteRun("https://dev.example", "dev", run, (run.id,), content=b"<test/>")
    RemoteRuns(database).keep(remote)
    keys = [save_run(database, []), RunKey(remote.org_url, run.id)]
    folder = archive_folder(str(tmp_path / "kept"))
    assert write_archive(database, folder, keys).results.rows == 0
    with copied(folder, tmp_path / "read") as read:
        assert RemoteRuns(read).find(run.id) == RemoteRuns(database).find(run.id) != []
        assert Runs(read).get(keys[0].id) == Runs(database).get(keys[0].id)


def test_an_archive_of_an_older_layout_is_read_and_brought_up_to_date(tmp_path: Path) -> None:
    folder = archive_folder(str(tmp_path / "kept"))
    with open_database(tmp_path / "new") as database:
        key = save_run(database, [ANSWERED])
        manifest = write_archive(database, folder, [key])
    # Layout 3 had the content of a test in its run.
    [run] = manifest.rows["run"]
    run = {name: value for name, value in run.items() if name not in {"content_sha256", "spent", "title", "keeps_tags"}}
    run["content"] = "<test/>"
    old = replace(manifest, rows={"run": [run]}, store_layout=3)
    folder.put("manifest.json", [old.write()])
    with copied(folder, tmp_path / "read") as read:
        assert Runs(read).cases(key.id) == (ANSWERED,)
        assert Runs(read).content(key.id).data == b"<test/>"
        assert read.query("PRAGMA user_version") == [(len(read_migrations()),)]
    with open_sqlite(tmp_path / "third", layout=3) as third:
        assert third.query("PRAGMA user_version") == [(3,)]


@pytest.mark.parametrize(
    "change",
    [
        lambda tables: tables["run"][0].pop("total"),
        lambda tables: tables["run"][0].update(total="many"),
        lambda tables: tables["run"][0].update(total=[1]),
        lambda tables: tables["run"][0].update(definition=None),
        lambda tables: tables["run"].clear(),
        lambda tables: tables.update({"run; DROP TABLE run": [{"id": 1}]}),
        lambda tables: tables["content"][0].update(sha256={"hex": "no"}),
    ],
)
def test_rows_that_do_not_fit_the_layout_are_damage_also_with_a_right_checksum(
    database: Database, tmp_path: Path, change: object
) -> None:
    assert callable(change)
    folder = archive_folder(str(tmp_path / "kept"))
    write_archive(database, folder, [save_run(database, [ANSWERED])])
    path = tmp_path / "kept/manifest.json"
    document = json.loads(path.read_text())
    change(document["tables"])
    del document["sha256"]
    checksum = hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
    path.write_text(json.dumps({**document, "sha256": checksum}))
    with pytest.raises(ArchiveError, match="kept is damaged"):
        copied(folder, tmp_path / "read")


def test_results_that_are_not_those_of_the_manifest_are_damage(database: Database, tmp_path: Path) -> None:
    folder, other = (archive_folder(str(tmp_path / name)) for name in ("kept", "other"))
    key = save_run(database, [ANSWERED])
    manifest = write_archive(database, folder, [key])
    database.execute("UPDATE case_result SET verdict = 'ERROR'")
    foreign = write_archive(database, other, [key])
    folder.put("results.parquet", other.pieces("results.parquet"))
    results = replace(manifest.results, sha256=foreign.results.sha256)
    folder.put("manifest.json", [replace(manifest, results=results).write()])
    with pytest.raises(ArchiveError, match=r"kept is damaged: results\.parquet does not have the results"):
        copied(folder, tmp_path / "read")
    folder.put("results.parquet", [b"PAR1"])
    results = replace(results, sha256=hashlib.sha256(b"PAR1").hexdigest())
    folder.put("manifest.json", [replace(manifest, results=results).write()])
    with pytest.raises(ArchiveError, match="kept is damaged"):
        copied(folder, tmp_path / "again")


def test_an_archive_may_be_anywhere_that_fsspec_reaches(database: Database, tmp_path: Path) -> None:
    folder = archive_folder("memory://archives/kept")
    with pytest.raises(NotFound, match="memory://archives/kept has no archive of runs"):
        read_manifest(folder)
    key = save_run(database, [ANSWERED, SILENT])
    write_archive(database, folder, [key])
    assert folder.names() == {"manifest.json", "results.parquet"}
    with copied(folder, tmp_path / "read") as read:
        assert read.query(RESULTS) == database.query(RESULTS)
