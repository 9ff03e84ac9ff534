from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from api.runs.test_comparisons import keep, run
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from evalmeta.package.project import Project

    Program = Callable[..., Outcome]

PASS, FAILURE = Verdict.PASS, Verdict.FAILURE
FILE = "baseline.json"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "evalmeta.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return find_project(tmp_path)


def test_the_most_recent_run_of_each_test_is_written(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, FAILURE), run(2, PASS, FAILURE), run(3, PASS, name="Returns"))
    created, headers, *rows = evalmeta("test", "baseline", "-o", FILE).out.splitlines()
    assert created == f"Created {FILE}: 2 tests, 3 cases, 1 of them failing"
    assert [headers.split("  ")[0], *(row.split() for row in rows[:2])] == [
        "Test",
        ["Orders", "2", run(2).id, "Desk"],
        ["Returns", "1", run(3).id, "Desk"],
    ]
    finds = "a comparison finds a broken case, but no fall of the pass rate with 1 iteration"
    assert rows[2:] == [
        "Orders: known failures: case 2 (0 of 1)",
        "Orders: flaky: case 1 (1 of 2)",
        f"Orders: {finds}",
        f"Returns: {finds}",
    ]
    assert evalmeta("test", "baseline", "-o", FILE).out.startswith("Unchanged ")


def test_named_runs_are_written_and_other_tests_stay(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, FAILURE), run(2, PASS), run(3, PASS, name="Returns"))
    evalmeta("test", "baseline", "-o", FILE)
    found = json.loads(evalmeta("test", "baseline", "-o", FILE, run(1).id, "--json").out)["result"]
    counts = {"tests": 2, "cases": 2, "failing": 1, "errors": 0}
    taken = {
        "runIds": [run(1).id],
        "leftOut": {},
        "otherExpectations": 0,
        "knownFailures": [1],
        "flaky": [],
        "iterations": 1,
        "detectableFall": None,
    }
    assert found == {
        "file": FILE,
        "state": "Changed",
        **counts,
        "runs": [{"name": "Orders", "runId": run(1).id, "subjectName": "Desk", **taken}],
    }


def test_a_red_run_is_left_out_with_the_reason_until_it_is_accepted(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, PASS, PASS), run(2, PASS, FAILURE))
    done = evalmeta("test", "baseline", "-o", FILE)
    assert "Orders: left out 1 red run (--accept takes red runs too)\n" in done.out
    accepted = evalmeta("test", "baseline", "-o", FILE, "--accept")
    assert "Orders: flaky: case 2 (1 of 2)\n" in accepted.out


def test_only_red_runs_change_nothing_and_are_an_error(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, PASS))
    evalmeta("test", "baseline", "-o", FILE, run(1).id)
    before = Path(FILE).read_text()
    keep(project, run(1, FAILURE))
    done = evalmeta("test", "baseline", "-o", FILE)
    assert (done.code, Path(FILE).read_text()) == (2, before)
    assert "no run was taken: Orders: 1 red run" in done.err
    assert "--accept" in done.err


def test_reports_are_read_where_the_store_is_not_kept(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, PASS, FAILURE), run(2, PASS, PASS))
    for number in (1, 2):
        Path(f"{number}.json").write_text(
            evalmeta("test", "results", "--job-id", run(number).id, "--result-format", "json").out
        )
    for file in (project.state_dir).glob("org.sqlite3*"):
        file.unlink()
    Path("copy.json").write_text(Path("1.json").read_text())
    done = evalmeta("test", "baseline", "-o", FILE, "1.json", "copy.json", "2.json")
    assert done.out.startswith(f"Created {FILE}: 1 test, 2 cases, 0 of them failing\n")
    assert '"passed": [0, 1], "failed": [1, 0]' in Path(FILE).read_text()
    assert evalmeta("test", "baseline", "-o", FILE, "3.json").err.startswith(
        "Error (NotFound): the file '3.json' cannot"
    )


def test_a_run_of_some_cases_reports_what_happened_to_the_others(evalmeta: Program, project: Project) -> None:
    part = RunOptions(shard=(1, 2))
    keep(project, run(1, PASS, options=part))
    done = evalmeta("test", "baseline", "-o", FILE)
    way = f"to join shards, name their runs: evalmeta test baseline -o {FILE} RUN1 RUN2"
    assert done.err == f"{run(1).id} ran only part of Orders: {FILE} has no other cases; {way}\n"
    keep(project, run(2, PASS, FAILURE), run(3, PASS, options=part))
    evalmeta("test", "baseline", "-o", FILE, run(2).id)
    done = evalmeta("test", "baseline", "-o", FILE, run(3).id)
    assert done.err == f"{run(3).id} ran only part of Orders: 1 other case of {FILE} are unchanged\n"


def test_cases_with_only_errors_are_reported(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, FAILURE, Verdict.ERROR))
    told = evalmeta("test", "baseline", "-o", FILE).out
    assert told.startswith(f"Created {FILE}: 1 test, 2 cases, 1 of them failing, 1 with errors only\n")


def test_an_incomplete_run_is_saved_by_id_with_a_warning(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, PASS, status=RunStatus.TERMINATED, total=2))
    assert evalmeta("test", "baseline", "-o", FILE).code == 2
    done = evalmeta("test", "baseline", "-o", FILE, run(1).id)
    assert (done.code, f"Warning: {run(1).id} is not complete" in done.err) == (0, True)


def test_a_file_that_is_not_a_baseline_is_not_overwritten(evalmeta: Program, project: Project) -> None:
    keep(project, run(1, PASS))
    Path(FILE).write_text("{}\n<<<<<<< HEAD\n")
    done = evalmeta("test", "baseline", "-o", FILE)
    assert (done.code, f"{FILE}:2:1: this is not valid JSON" in done.err) == (2, True)
    assert Path(FILE).read_text() == "{}\n<<<<<<< HEAD\n"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("words", [[], ["no id"], [run(1).id]])
def test_without_runs_there_is_no_baseline(evalmeta: Program, words: list[str]) -> None:
    assert evalmeta("test", "baseline", "-o", FILE, *words).code == 2
    assert not Path(FILE).exists()


@pytest.mark.parametrize(
    ("words", "command"), [(("init", "--sample"), "run"), (("init", "--sample", "--dx"), "test run --wait")]
)
def test_without_runs_the_way_out_is_the_command_that_runs_the_tests_of_the_project(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evalmeta(*words).code == 0
    assert evalmeta("test", "baseline", "-o", FILE).err.endswith(f"  Run the tests: evalmeta {command}\n")
