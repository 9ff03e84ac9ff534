"""`evalmeta test merge`: the runs of shards as one run."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import list_runs
from evalmeta.store.runs import Runs
from org.parts import definition, make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """\
import os
import pathlib
import time

def answer(utterance):
    if os.environ.get("DOWN"):
        raise ConnectionError("no line")
    other = os.environ.get("WRONG")
    if other and utterance.endswith(f" {other}"):
        return {"outcome": "Oh.", "topic": "Other"}
    trace = {"steps": [{"kind": "agent", "duration_ms": time.perf_counter()}]}
    return {"outcome": "Done.", "topic": "Other" if utterance.endswith("2") else "Orders", "trace": trace}

def other(utterance):
    return answer(utterance)
"""
SETTINGS = """\
[run]
concurrency = 1
[subjects.Desk]
adapter = "python"
target = "desk:answer"
[[quarantine]]
test = "Orders"
case = 7
reason = "flaky"
until = UNTIL
"""
SPEC = "subject: desk:answer\ntestCases:\n" + "".join(
    f"- input: Visit {number}\n  topic: Orders\n" for number in range(1, 10)
)
# Times and ids, in which runs of the same answers differ.
TIMES = re.compile(
    r'"(?:startTime|endTime|latencyMilliseconds|duration_ms|p\d\d|runId|suite)": (?:"[^"]*"|[\d.]+)', re.ASCII
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a definition of 12 cases and one of 1, and a test spec of 9; the current folder is its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings = SETTINGS.replace("UNTIL", f"{datetime.now(UTC).date() + timedelta(days=30)}")
    root = make_project(tmp_path / "project", agent=AGENT, settings=settings).root
    folder = root / "aiEvaluationDefinitions"
    folder.mkdir()
    for name, cases in (("Orders", 12), ("Single", 1)):
        (folder / f"{name}.aiEvaluationDefinition").write_bytes(definition(name, cases=cases))
    (root / "visits.yaml").write_text(SPEC)
    monkeypatch.chdir(root)
    return root


class Matrix:
    """The jobs of a matrix: each has a state folder of its own, `shards/NUMBER`."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program) -> None:
        self.project = project
        self.folder = project.parent / "shards"
        self._monkeypatch = monkeypatch
        self._evalmeta = evalmeta

    def at(self, name: str) -> Path:
        return self.folder / name

    def run(self, *words: str, shard: str, name: str = "", deployed: bool = False) -> Outcome:
        with self.inside(name or shard.partition("/")[0]):
            if deployed:
                self._evalmeta("deploy")
            return self._evalmeta("test", "run", *words, "--wait", "--shard", shard)

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Use a state folder, also if other tests run on Postgres."""
        with self._monkeypatch.context() as patch:
            patch.setenv("EVALMETA_HOME", str(self.at(name)))
            patch.delenv("EVALMETA_STORE", raising=False)
            yield

    def run_all(self, *words: str, shards: int = 3, deployed: bool = False) -> None:
        for number in range(1, shards + 1):
            self.run(*words, shard=f"{number}/{shards}", deployed=deployed)


@pytest.fixture
def matrix(project: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program) -> Matrix:
    return Matrix(project, monkeypatch, evalmeta)


def timeless(path: Path) -> str:
    return TIMES.sub("", path.read_text())


def runs_here() -> list[str]:
    project = find_project(Path.cwd())
    with open_database(project.store) as database:
        return [run.id for run in list_runs(database)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "deployed"),
    [
        ((), True),
        (("--iterations", "2", "--seed", "3"), True),
        (("--case", "1-6"), True),
        (("visits.yaml",), False),
        (("visits.yaml", "--case", "2-7", "--iterations", "2"), False),
    ],
)
def test_merged_shards_equal_one_run_but_for_times_and_ids(
    evalmeta: Program, matrix: Matrix, words: tuple[str, ...], *, deployed: bool
) -> None:
    matrix.run_all(*words, deployed=deployed)
    merged = evalmeta("test", "merge", str(matrix.folder), "--report", "merged.json")
    if deployed:
        evalmeta("deploy")
    whole = evalmeta("test", "run", *words, "--wait", "--report", "whole.json")
    assert (merged.code, whole.code) == (100, 100)
    assert timeless(matrix.project / "merged.json") == timeless(matrix.project / "whole.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "deployed"), [(("--iterations", "2"), True), (("visits.yaml", "--agent", "desk:other"), False)]
)
def test_json_reports_of_shards_are_merged_as_their_stores(
    evalmeta: Program, matrix: Matrix, words: tuple[str, ...], *, deployed: bool
) -> None:
    reports = matrix.project.parent / "reports"
    for number in range(1, 5):
        # A single case is only in one of the shards.
        matrix.run(*words, "--report", str(reports / f"{number}.json"), shard=f"{number}/4", deployed=deployed)
    shutil.rmtree(matrix.folder)
    merged = evalmeta("test", "merge", str(reports), "--report", "merged.json")
    if deployed:
        evalmeta("deploy")
    whole = evalmeta("test", "run", *words, "--wait", "--report", "whole.json")
    assert (merged.code, whole.code) == (100, 100)
    assert timeless(matrix.project / "merged.json") == timeless(matrix.project / "whole.json")
    assert evalmeta("test", "rescore", runs_here()[0], "-q").code == 100
    (reports / "2.json").unlink()
    assert "shard 2/4 of test" in evalmeta("test", "merge", *map(str, reports.iterdir())).err


def test_a_store_counts_before_the_reports_of_its_runs(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run("visits.yaml", "-d", str(matrix.folder), "--report", str(matrix.folder / "1.json"), shard="1/2")
    shutil.rmtree(matrix.at("1"))
    matrix.run("visits.yaml", "--result-format", "json", "-d", str(matrix.folder), shard="2/2")
    merged = evalmeta("test", "merge", str(matrix.folder))
    assert "Merged 2 runs of shards into 1 run." in merged.err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"test": {}}, "does not say of which content of visits.yaml its results are"),
        ({"test": {"kind": "file", "file": "visits.yaml"}}, "does not say of which content"),
        ({"test": {"kind": "definition", "sha256": "?"}}, "does not say of which content"),
        ({"total": 99}, "of 99 results"),
        ({"options": {"shard": [3, 2]}}, "has no run with --shard"),
        ({"options": {"shard": "all"}}, "has no run with --shard"),
    ],
)
def test_a_changed_report_is_refused(evalmeta: Program, matrix: Matrix, change: dict[str, object], told: str) -> None:
    path = matrix.project / "report.json"
    matrix.run("visits.yaml", "--report", str(path), shard="1/2")
    document = json.loads(path.read_text())
    document["evalmeta"] |= change
    path.write_text(json.dumps(document))
    refused = evalmeta("test", "merge", str(path))
    assert (refused.code, told in " ".join(refused.err.split()), runs_here()) == (2, True, [])


@pytest.mark.slow
def test_all_that_reads_runs_reads_a_merged_one(evalmeta: Program, matrix: Matrix) -> None:
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    first, _ = runs_here()
    matrix.run_all(deployed=True)
    merged = evalmeta("test", "merge", str(matrix.folder), "--baseline", first, "-q")
    assert "13 cases: 10 passed, 2 failed (2 forgiven), 0 errors, 0 undecided, 1 quarantined" in merged.out
    assert "still failing" in evalmeta("test", "compare", "latest:Orders").out
    results = json.loads(evalmeta("test", "results", "--job-id", "latest", "--json").out)["result"]
    assert [(run["evalmeta"]["definition"], run["evalmeta"]["total"]) for run in results] == [
        ("Orders", 12),
        ("Single", 1),
    ]
    assert evalmeta("test", "results", "--use-most-recent", "-q").code == 0
    listed = json.loads(evalmeta("test", "history", "--json").out)["result"]
    assert [run["status"] for run in listed] == ["COMPLETED"] * 4
    assert evalmeta("test", "rescore", runs_here()[-2], "-q").code == 100
    assert evalmeta("test", "baseline", "-o", "base.json").code == 0


@pytest.mark.slow
def test_a_merged_run_is_extended_and_its_failures_run_again(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all("visits.yaml", "--agent", "desk:other")
    evalmeta("test", "merge", str(matrix.folder), "-q")
    [run_id] = runs_here()
    again = evalmeta("test", "run", "visits.yaml", "--agent", "desk:other", "--failed-from", run_id, "--wait", "-q")
    assert "1 case: 0 passed, 1 failed" in again.out
    extended = evalmeta("test", "run", "--extend", run_id, "--iterations", "2", "--wait", "-q")
    assert "9 cases in 2 iterations, 18 case results: 16 passed, 2 failed" in extended.out


@pytest.mark.slow
def test_a_shard_without_cases_of_a_test_is_not_missing(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all("-n", "Single", shards=4, deployed=True)
    merged = evalmeta("test", "merge", str(matrix.folder), "-q")
    assert (merged.code, "Single passed" in merged.out) == (0, True)


def test_a_missing_shard_is_named_and_nothing_is_saved(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run("visits.yaml", shard="1/3")
    matrix.run("visits.yaml", shard="3/3")
    refused = evalmeta("test", "merge", str(matrix.folder))
    assert (refused.code, runs_here()) == (2, [])
    assert "shard 2/3 of test visits.yaml is missing" in refused.err
    allowed = evalmeta("test", "merge", str(matrix.folder), "--allow-missing", "--json")
    assert "shard 2/3 of test visits.yaml is missing; the merged run is without it" in allowed.err
    [run] = json.loads(allowed.out)["result"]
    numbers = [case["testNumber"] for case in run["testCases"]]
    assert (run["status"], run["evalmeta"]["options"]["cases"]) == ("COMPLETED", numbers)
    assert 0 < len(numbers) < 9


@pytest.mark.slow
def test_an_unfinished_shard_is_named_with_the_way_to_finish_it(
    evalmeta: Program, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("visits.yaml", "--max-errors", "1", "--retries", "0", "--concurrency", "1")
    matrix.run(*words, shard="1/2")
    monkeypatch.setenv("DOWN", "1")
    matrix.run(*words, shard="2/2")
    monkeypatch.delenv("DOWN")
    refused = evalmeta("test", "merge", str(matrix.folder))
    assert (refused.code, runs_here()) == (2, [])
    assert re.search(
        r"shard 2/2 of test visits.yaml in \S+ is not finished: run \w+ is ERROR with 1 of \d", refused.err
    )
    assert "evalmeta test resume --job-id 4KB" in refused.err
    with matrix.inside("2"):
        evalmeta("test", "resume", "--job-id", "latest")
    assert "9 cases: " in evalmeta("test", "merge", str(matrix.folder), "-q").out


@pytest.mark.parametrize(
    ("words", "shard", "difference"),
    [
        (("--iterations", "2"), "2/2", "--iterations is 2, not 1"),
        (("--threshold", "4"), "2/2", "--threshold is 4.0, not 3.0"),
        (("--agent", "desk:other"), "2/2", "the agent is python desk:other, not python desk:answer"),
        (("--case", "1-5"), "2/2", "--cases is (1, 2, 3, 4, 5), not none"),
        ((), "2/3", "the number of shards is 3, not 2"),
    ],
)
def test_a_foreign_shard_is_named_with_what_differs(
    evalmeta: Program, matrix: Matrix, words: tuple[str, ...], shard: str, difference: str
) -> None:
    matrix.run("visits.yaml", shard="1/2")
    matrix.run("visits.yaml", *words, shard=shard)
    refused = evalmeta("test", "merge", str(matrix.folder), "--allow-missing")
    assert (refused.code, runs_here()) == (2, [])
    assert re.search(rf"shard {shard} of test visits.yaml in \S+2 does not belong to shard 1/2", refused.err)
    assert difference in " ".join(refused.err.split())


@pytest.mark.slow
def test_shards_of_a_changed_test_are_foreign(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run("visits.yaml", shard="1/2")
    (matrix.project / "visits.yaml").write_text(SPEC.replace("Visit 9", "Visit 99"))
    matrix.run("visits.yaml", shard="2/2")
    assert "the content of the file is" in evalmeta("test", "merge", str(matrix.folder)).err
    shutil.rmtree(matrix.folder)
    matrix.run("-n", "Orders", shard="1/2", deployed=True)
    path = matrix.project / "aiEvaluationDefinitions/Orders.aiEvaluationDefinition"
    path.write_bytes(definition("Orders", cases=13))
    matrix.run("-n", "Orders", shard="2/2", deployed=True)
    assert "the content of the test is" in evalmeta("test", "merge", str(matrix.folder)).err
    assert runs_here() == []


@pytest.mark.slow
def test_results_that_are_there_twice_count_once(
    evalmeta: Program, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages of one result each.
    monkeypatch.setattr(limits, "MERGED_CASES", 1)
    matrix.run_all("visits.yaml")
    shutil.copytree(matrix.at("2"), matrix.at("copy"))
    # The job of a shard was repeated, with the same answers.
    matrix.run("visits.yaml", shard="3/3", name="repeated")
    merged = evalmeta("test", "merge", str(matrix.folder), str(matrix.at("1")), "-q")
    assert "9 cases: 8 passed, 1 failed" in merged.out


def test_different_results_of_a_case_are_refused_with_both_sources(
    evalmeta: Program, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix.run_all("visits.yaml")
    monkeypatch.setenv("WRONG", "5")
    shard = next(number for number in "123" if _has_case(matrix, number, 5))
    matrix.run("visits.yaml", shard=f"{shard}/3", name="repeated")
    refused = evalmeta("test", "merge", str(matrix.folder), "--allow-missing")
    assert (refused.code, runs_here()) == (2, [])
    said = " ".join(refused.err.split())
    assert "case 5 of test visits.yaml has two different results" in said
    assert f"{matrix.at(shard)} (run 4KB" in said
    assert f"{matrix.at('repeated')} (run 4KB" in said


def _has_case(matrix: Matrix, shard: str, number: int) -> bool:
    with open_database(matrix.at(shard)) as database:
        return Runs(database).case("4KB000000000001GAA", 1, number) is not None


def test_merging_again_changes_nothing(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all("visits.yaml")
    first = evalmeta("test", "merge", str(matrix.folder))
    again = evalmeta("test", "merge", *(str(matrix.at(number)) for number in "321"))
    assert "Merged 3 runs of shards into 1 run." in first.err
    assert "These 3 runs of shards were merged before, into 1 run; nothing was saved." in again.err
    assert (first.out, first.code) == (again.out, again.code)
    assert len(runs_here()) == 1


@pytest.mark.slow
def test_shards_are_merged_again_if_a_merged_run_was_deleted(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all(deployed=True)
    evalmeta("test", "merge", str(matrix.folder))
    with open_database(find_project(Path.cwd()).store) as database:
        database.execute("DELETE FROM case_result WHERE run_id = ?", (runs_here()[0],))
        database.execute("DELETE FROM run WHERE id = ?", (runs_here()[0],))
    again = evalmeta("test", "merge", str(matrix.folder))
    assert "into 2 runs." in again.err
    assert "merged before" not in again.err
    assert "merged before, into 2 runs" in evalmeta("test", "merge", str(matrix.folder)).err


def test_a_damaged_store_is_named_and_nothing_is_saved(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all("visits.yaml")
    path = matrix.at("2") / "org.sqlite3"
    path.write_bytes(path.read_bytes()[:20_000])
    refused = evalmeta("test", "merge", str(matrix.folder))
    assert (refused.code, f"{path} is not a valid database" in refused.err, runs_here()) == (4, True, [])


@pytest.mark.slow
def test_suspect_cases_that_shards_asked_again_stay_decided(
    evalmeta: Program, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalmeta("test", "run", "visits.yaml", "--wait")
    evalmeta("test", "baseline", "-o", "base.json")
    monkeypatch.setenv("WRONG", "5")
    for number in (1, 2):
        matrix.run("visits.yaml", "--baseline", "base.json", shard=f"{number}/2")
    merged = evalmeta("test", "merge", str(matrix.folder), "--baseline", "base.json")
    assert re.search(r"suspect +5  1/1 -> 0/1, again 0/[1-9]", merged.out)
    once = json.loads(evalmeta("test", "history", "--json").out)["result"]
    evalmeta("test", "merge", str(matrix.folder), "-q")
    assert json.loads(evalmeta("test", "history", "--json").out)["result"] == once


def test_a_test_that_never_started_in_a_shard_is_named(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all(shards=2, deployed=True)
    with open_database(matrix.at("1")) as database:
        database.execute("DELETE FROM case_result WHERE run_id IN (SELECT id FROM run WHERE definition = 'Orders')")
        database.execute("DELETE FROM run WHERE definition = 'Orders'")
        database.execute("UPDATE suite_test SET state = 'due' WHERE name = 'Orders'")
    refused = evalmeta("test", "merge", str(matrix.folder))
    assert f"shard 1/2 of test Orders never started in {matrix.at('1')}" in refused.err


@pytest.mark.sqlite
def test_shards_of_one_store_are_merged_in_place(evalmeta: Program, project: Path) -> None:
    for number in (1, 2):
        evalmeta("test", "run", "visits.yaml", "--wait", "--shard", f"{number}/2")
    assert "9 cases: 8 passed, 1 failed" in evalmeta("test", "merge", ".", "-q").out
    assert "9 cases: 8 passed, 1 failed" in evalmeta("test", "results", "--job-id", "latest", "-q").out
    # What was merged is no shard.
    assert "merged before" in evalmeta("test", "merge", str(project)).err


@pytest.mark.slow
def test_merged_runs_can_be_saved_in_another_folder(evalmeta: Program, matrix: Matrix) -> None:
    matrix.run_all("visits.yaml")
    merged = evalmeta("test", "merge", str(matrix.folder), "-o", "../merged", "--report", "merged.xml")
    assert (merged.code, runs_here()) == (100, [])
    assert "FAILED visits.yaml:5  case 2" in merged.out
    with matrix.inside("../merged"):
        assert "9 cases: 8 passed, 1 failed" in evalmeta("test", "results", "--job-id", "latest", "-q").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing"], "nothing cannot be found"),
        (["visits.yaml"], "this is not valid JSON"),
        (["visits.jsonl"], "visits.jsonl is JSON Lines, which has results without their options"),
        (["whole.json"], "whole.json has no run with --shard"),
        (["."], ". has no run with --shard"),
        (["aiEvaluationDefinitions"], "aiEvaluationDefinitions has no run with --shard"),
        pytest.param(["shared"], "no shared store is configured", marks=pytest.mark.sqlite),
        ([], "Missing argument 'SHARD...'"),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_is_no_shard_is_refused(evalmeta: Program, words: list[str], told: str) -> None:
    evalmeta("test", "run", "visits.yaml", "--wait", "--report", "whole.json", "--report", "visits.jsonl")
    refused = evalmeta("test", "merge", *words)
    assert (refused.code, told in refused.err, len(runs_here())) == (2, True, 1)


def test_shards_that_ran_with_a_shared_store_are_merged_in_it(
    evalmeta: Program, project: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALMETA_STORE", store_url)
    for number in (1, 2, 3):
        evalmeta("test", "run", "visits.yaml", "--wait", "--shard", f"{number}/3", "--iterations", "2")
    merged = evalmeta("test", "merge", "shared", "--report", "merged.json")
    again = evalmeta("test", "merge", "shared", "-q")
    whole = evalmeta("test", "run", "visits.yaml", "--wait", "--iterations", "2", "--report", "whole.json")
    assert (merged.code, again.code, whole.code) == (100, 100, 100)
    assert timeless(project / "merged.json") == timeless(project / "whole.json")
    assert len(runs_here()) == 5


@pytest.mark.slow
def test_four_shards_of_10000_cases_equal_one_run_but_for_times_and_ids(
    evalmeta: Program, matrix: Matrix, project: Path
) -> None:
    cases = "".join(f"- input: Visit {number}\n  topic: Orders\n" for number in range(1, 10_001))
    (project / "visits.yaml").write_text(f"subject: desk:answer\ntestCases:\n{cases}")
    words = ("visits.yaml", "-q", "--concurrency", "10")
    matrix.run_all(*words, shards=4)
    merged = evalmeta("test", "merge", str(matrix.folder), "-q", "--report", "merged.json")
    whole = evalmeta("test", "run", *words, "--wait", "--report", "whole.json")
    assert merged.code == whole.code
    assert "10,000 cases: 9,000 passed, 1,000 failed" in merged.out
    assert timeless(project / "merged.json") == timeless(project / "whole.json")
