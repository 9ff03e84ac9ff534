"""`evalmeta test prune`: old runs go, and what is needed stays."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

SPEC = "subject: desk:answer\ncases:\n- input: When?\n  topic: Orders\n- input: Where?\n  topic: Orders\n"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text("def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'Soon.'}\n")
    for name in ("orders", "returns"):
        (tmp_path / f"{name}.yaml").write_text(SPEC)


def run_ids(evalmeta: Program, test: str = "") -> list[str]:
    """The ids of the runs of a test, or of all, the oldest first."""
    listed = json.loads(evalmeta("test", "history", *([test] if test else []), "--json").out)["result"]
    return [run["runId"] for run in listed]


def age_runs(tmp_path: Path, days: float) -> None:
    """Let all runs be older."""
    with sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3") as database:
        for column in ("created_at", "started_at", "ended_at"):
            database.execute(f"UPDATE run SET {column} = {column} - ?", (days * 86_400,))  # noqa: S608
    database.close()


def test_the_latest_runs_of_each_test_stay(evalmeta: Program) -> None:
    for name in ("orders", "orders", "orders", "returns"):
        assert evalmeta("run", f"{name}.yaml").code == 0
    before = run_ids(evalmeta)
    done = evalmeta("test", "prune", "--keep", "1")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Deleted 2 runs with 4 results; 2 stay.")
    assert run_ids(evalmeta) == before[2:]
    assert evalmeta("test", "results", "--job-id", before[0]).code == 2
    assert evalmeta("test", "results", "--job-id", before[2]).code == 0
    assert evalmeta("test", "prune", "--keep", "1").out.startswith("Deleted 0 runs with 0 results; 2 stay.")


def test_nothing_goes_without_saying_what(evalmeta: Program) -> None:
    refused = evalmeta("test", "prune")
    assert refused.code == 2
    assert "--keep 50" in refused.err
    wrong = evalmeta("test", "prune", "--older-than", "90")
    assert "'90' is not an age: write days, weeks or hours, such as 90d, 12w or 36h." in wrong.err
    assert evalmeta("test", "prune", "--keep", "0").code == 2


def test_a_dry_run_lists_and_deletes_nothing(evalmeta: Program) -> None:
    for _ in range(2):
        evalmeta("run", "orders.yaml")
    before = run_ids(evalmeta)
    shown = evalmeta("test", "prune", "--keep", "1", "--dry-run")
    assert before[0] in shown.out
    assert "Would delete 1 run with 2 results; 1 stay." in shown.out
    assert run_ids(evalmeta) == before


def test_with_an_age_young_runs_stay_and_with_both_options_both_must_hold(evalmeta: Program, tmp_path: Path) -> None:
    for _ in range(2):
        evalmeta("run", "orders.yaml")
    age_runs(tmp_path, days=91)
    evalmeta("run", "orders.yaml")
    assert "Deleted 0 runs" in evalmeta("test", "prune", "--older-than", "90d", "--keep", "3").out
    assert "Deleted 1 run" in evalmeta("test", "prune", "--older-than", "90d", "--keep", "2").out
    assert "Deleted 1 run" in evalmeta("test", "prune", "--older-than", "13w").out
    assert len(run_ids(evalmeta)) == 1


def test_runs_that_people_judged_and_those_of_a_baseline_stay(evalmeta: Program, tmp_path: Path) -> None:
    for _ in range(4):
        evalmeta("run", "orders.yaml")
    judged, saved, *_ = before = run_ids(evalmeta)
    evalmeta("test", "mark", "right", "--job-id", judged, "--case", "1", "--expectation", "Topic")
    assert evalmeta("test", "baseline", "-o", "baseline.json", saved).code == 0
    done = evalmeta("test", "prune", "--keep", "1")
    assert "Deleted 1 run with 2 results; 3 stay." in done.out
    assert "2 old runs stay: 1 judged by people, 1 in a baseline." in done.err
    assert run_ids(evalmeta) == [judged, saved, before[3]]
    evalmeta("test", "mark", "--remove", "--job-id", judged, "--case", "1", "--expectation", "Topic")
    (tmp_path / "baseline.json").unlink()
    assert "Would delete 2 runs" in evalmeta("test", "prune", "--keep", "1", "--dry-run").out
    evalmeta("test", "prune", "--keep", "1")
    assert run_ids(evalmeta) == [before[3]]


def test_a_newer_baseline_frees_the_runs_of_the_earlier_one(evalmeta: Program) -> None:
    for _ in range(3):
        evalmeta("run", "orders.yaml")
    first, second, third = run_ids(evalmeta)
    evalmeta("test", "baseline", "-o", "baseline.json", first)
    evalmeta("test", "baseline", "-o", "baseline.json", second)
    evalmeta("test", "prune", "--keep", "1")
    assert run_ids(evalmeta) == [second, third]


def test_runs_in_progress_stay(evalmeta: Program, tmp_path: Path) -> None:
    for _ in range(3):
        evalmeta("run", "orders.yaml")
    first, _, third = run_ids(evalmeta)
    with sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3") as database:
        database.execute("UPDATE run SET status = 'IN_PROGRESS', ended_at = NULL WHERE id = ?", (first,))
    database.close()
    assert "1 old run stays: 1 in progress." in evalmeta("test", "prune", "--keep", "1").err
    assert run_ids(evalmeta) == [first, third]


def test_a_run_that_is_not_complete_or_not_of_all_cases_takes_no_place_of_one_that_is(
    evalmeta: Program, tmp_path: Path
) -> None:
    assert evalmeta("run", "orders.yaml").code == 0
    complete = run_ids(evalmeta)[0]
    assert evalmeta("run", "orders.yaml", "--case", "1").code == 0
    evalmeta("run", "orders.yaml")
    evalmeta("test", "rescore", "latest")
    canceled = run_ids(evalmeta)[2]
    with sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3") as database:
        database.execute("UPDATE run SET status = 'TERMINATED' WHERE id = ?", (canceled,))
        database.execute("UPDATE run SET started_at = created_at")
    database.close()
    assert evalmeta("test", "prune", "--keep", "1").out.startswith("Deleted 0 runs")
    assert run_ids(evalmeta)[0] == complete


def test_a_run_whose_answers_were_judged_again_stays(evalmeta: Program) -> None:
    assert evalmeta("run", "orders.yaml").code == 0
    evalmeta("test", "rescore", "latest")
    assert evalmeta("run", "orders.yaml").code == 0
    judged, again, latest = run_ids(evalmeta)
    done = evalmeta("test", "prune", "--keep", "1")
    assert "1 judged again by a later run" in done.err
    assert run_ids(evalmeta) == [judged, latest] != [again, latest]
    evalmeta("test", "prune", "--keep", "1")
    assert run_ids(evalmeta) == [latest]


def test_of_a_test_that_was_only_run_in_part_the_latest_runs_stay(evalmeta: Program) -> None:
    for _ in range(3):
        evalmeta("run", "orders.yaml", "--case", "1")
    before = run_ids(evalmeta)
    assert evalmeta("test", "prune", "--keep", "2").out.startswith("Deleted 1 run with 1 result")
    assert run_ids(evalmeta) == before[1:]
    assert evalmeta("test", "prune", "--keep", "99999999999999999999").code == 2


def test_a_suite_that_is_not_complete_stays(evalmeta: Program, tmp_path: Path) -> None:
    assert evalmeta("run", ".").code == 0
    evalmeta("run", "orders.yaml")
    with sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3") as database:
        sql = "UPDATE suite_test SET state = 'due' WHERE name LIKE '%returns%' OR place = 2"
        assert database.execute(sql).rowcount == 1
    database.close()
    done = evalmeta("test", "prune", "--keep", "1")
    assert "1 old run stays: 1 in a suite that is not complete." in done.err
    assert len(run_ids(evalmeta)) == 3


@pytest.mark.slow
def test_the_file_gets_smaller_while_others_read(evalmeta: Program, tmp_path: Path) -> None:
    cases = "".join(f"- input: {'Where? ' * 300}{number}\n  topic: Orders\n" for number in range(300))
    (tmp_path / "large.yaml").write_text(f"subject: desk:answer\ncases:\n{cases}")
    for _ in range(3):
        evalmeta("run", "large.yaml")
    reader = sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3")
    reader.execute("SELECT count(*) FROM case_result").fetchone()
    done = json.loads(evalmeta("test", "prune", "--keep", "1", "--json").out)["result"]
    assert (len(done["deleted"]), done["left"]) == (2, 1)
    assert done["bytesAfter"] < 0.5 * done["bytesBefore"]
    assert reader.execute("SELECT count(*) FROM case_result").fetchone() == (300,)
    reader.close()
    assert evalmeta("test", "results", "--job-id", "latest").code == 0


KILLED = """
import os, signal, sqlite3, sys
from evalmeta.store import retention

real = retention._delete_some_results

def delete(database, run_id):
    real(database, run_id)
    os.kill(os.getpid(), signal.SIGKILL)

retention._delete_some_results = delete
from evalmeta.cli.main import main
sys.argv[1:] = ["test", "prune", "--keep", "1"]
main()
"""


def test_a_prune_that_is_killed_leaves_whole_runs_and_the_next_deletes_the_rest(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        evalmeta("run", "orders.yaml")
    third = run_ids(evalmeta)[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == -9, done.stderr
    assert run_ids(evalmeta) == [third]
    evalmeta("test", "prune", "--keep", "1")
    with sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3") as database:
        assert database.execute("SELECT DISTINCT run_id FROM case_result").fetchall() == [(third,)]
    database.close()


def test_runs_of_a_definition_store_it_once(evalmeta: Program, tmp_path: Path) -> None:
    assert evalmeta("test", "create", "--spec", "orders.yaml", "--api-name", "Orders").code == 0
    settings = '[subjects.desk]\nadapter = "python"\ntarget = "desk:answer"\n'
    (tmp_path / "evalmeta.toml").write_text(settings)
    for _ in range(2):
        done = evalmeta("test", "run", "-n", "Orders", "--wait")
        assert done.code == 0, done.err
    with sqlite3.connect(tmp_path / ".evalmeta/org.sqlite3") as database:
        assert database.execute("SELECT count(*), count(DISTINCT content_sha256) FROM run").fetchone() == (2, 1)
        assert database.execute("SELECT count(*) FROM content").fetchone() == (1,)
    database.close()
    evalmeta("test", "prune", "--keep", "1")
    assert evalmeta("test", "results", "--job-id", "latest").code == 0
    assert evalmeta("test", "rescore", "latest").code == 0
