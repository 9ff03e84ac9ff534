"""What large suites cost: reports on a million results, appending results to a store, and copying a store.

Rows with Postgres start a server of their own on loopback.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.model.evaluation import Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunContent
from evalmeta.model.run_options import RunOptions
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal, Runs
from evalmeta.store.stored_cases import decode_case
from large_store import end_of_case, open_large
from postgres_servers import postgres_servers
from projects import EVALMETA, Project
from rows import Goal, Result, Row
from timing import of_process, of_work

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_RESULTS = {"results": 1_000_000}
FEW_RESULTS = {"results": 2_000}
APPENDED = {"rows": 100_000, "batch": 1_000}
FEW_APPENDED = {"rows": 400, "batch": 200}
FAST_APPEND = Goal("at least", 40_000, " a second")
NOT_PASSED = (1, 100)


def measure_report(*words: str, results: int) -> Result:
    """Return the processor seconds of a report on one run, whose counts were kept when it ended."""
    with open_large(runs=2, results=results + 100, largest=results) as store:
        usage = Project(store.root).run("test", "results", "--job-id", store.last, *words, codes=NOT_PASSED)
    return Result(f"{usage.cpu:.1f} s", "-", usage.cpu, f"{usage.megabytes:.0f} MB")


def measure_append(*, rows: int, batch: int, kind: str) -> Result:
    """Return how many results a journal commits in a second, each batch in a transaction of its own."""
    cases = [decode_case(b"[1" + end_of_case(place % 20)) for place in range(batch)]
    with _store(kind) as store, open_database(store) as database:
        runs, evaluation = Runs(database), Evaluation("Orders", "Order_Desk", ())
        run_id = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), RunOptions(), total=rows, now=1.0)
        assert runs.claim(run_id, "bench", taken_from=Lease(None, None), until=1e12)
        journal = RunJournal(database, run_id, "bench")

        def append() -> None:
            for start in range(0, rows, batch):
                journal.append([case._replace(number=start + place + 1) for place, case in enumerate(cases)])

        taken = of_work(append)
        assert len(journal.finished()) == rows
    rate = rows / taken.wall
    return Result(f"{rate:,.0f} a second", "-", rate, f"CPU of this program {taken.cpu / rows * 1e6:.0f} us each")


@contextmanager
def _store(kind: str) -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "sqlite":
            yield Store(Path(folder))
            return
        with postgres_servers(durable=True) as servers, servers.store() as team:
            yield Store(Path(folder), read_store_url(team.direct if kind == "direct" else team.pooled))


def measure_copy(*, results: int) -> Result:
    """Return the seconds in which a store is copied to Postgres, verified, copied back, and verified."""
    with open_large(runs=2, results=results, largest=results - 1) as store, _store("direct") as team:
        env = {**Project(store.root).environment(), **team.variables}
        del env["EVALMETA_HOME"]
        first = of_process(EVALMETA, "store", "copy", "local", "shared", cwd=store.root, env=env)
        second = of_process(EVALMETA, "store", "copy", "shared", "./back", cwd=store.root, env=env)
    most = max(first.megabytes, second.megabytes)
    return Result(f"{first.wall:.1f} s", f"{second.wall:.1f} s", most, "there and back; the largest memory")


ROWS = (
    Row(
        "scale-results-quiet",
        "`evalmeta test results -q` of a run with {results:,} results",
        "a fixed time",
        lambda *, results: measure_report("-q", results=results),
        ALL_RESULTS,
        FEW_RESULTS,
        Goal("at most", 5, " s"),
        unit=" s",
        clock="CPU",
    ),
    Row(
        "scale-results-jsonl",
        "the same run as JSON Lines",
        "a fixed time",
        lambda *, results: measure_report("--result-format", "jsonl", results=results),
        ALL_RESULTS,
        FEW_RESULTS,
        Goal("at most", 20, " s"),
        unit=" s",
        clock="CPU",
    ),
    *(
        Row(
            f"scale-append-{kind}",
            f"a journal commits {{rows:,}} results, {{batch:,}} at a time, to {where}",
            "a fixed rate",
            lambda *, rows, batch, kind=kind: measure_append(rows=rows, batch=batch, kind=kind),
            APPENDED,
            FEW_APPENDED,
            FAST_APPEND,
            unit=" a second",
        )
        for kind, where in (("sqlite", "SQLite"), ("direct", "Postgres"), ("pooled", "Postgres through PgBouncer"))
    ),
    Row(
        "scale-copy",
        "`evalmeta store copy` of {results:,} results to Postgres and back",
        "a fixed amount of memory",
        measure_copy,
        ALL_RESULTS,
        FEW_RESULTS,
        Goal("at most", 150, " MB"),
        unit=" MB",
        clock="-",
    ),
)
