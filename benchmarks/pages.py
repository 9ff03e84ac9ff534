"""The pages of `evalmeta view` over a large store, as a browser on the same machine gets them."""

from __future__ import annotations

import os
import statistics
import subprocess
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx

from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from large_store import ANSWER, TESTS, open_large
from projects import EVALMETA, Project
from rows import Goal, Result, Row
from timing import Usage, medians, of_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from large_store import LargeStore

ROUNDS, SERVERS = 15, 3
SIZES = {"runs": 2_000, "results": 1_000_000, "largest": 100_000}
TINY = {"runs": 60, "results": 3_000, "largest": 1_000}
GRID_SIZES = {"runs": 30, "results": 300_000, "largest": 10_000, "tests": 1}
GRID_TINY = {"runs": 3, "results": 300, "largest": 100, "tests": 1}
QUICK, FIRST = Goal("at most", 200, " ms"), Goal("at most", 1_000, " ms")
LAST_RUN = "{largest:,} results of a run"
_open_stores, _open_servers = ExitStack(), ExitStack()


class Served(NamedTuple):
    """A store, a client that is logged in to its pages, and the id of the server's process."""

    store: LargeStore
    client: httpx.Client
    process: int


@cache
def _large(runs: int, results: int, largest: int, tests: int) -> LargeStore:
    """Fill a store once; all rows use it."""
    return _open_stores.enter_context(open_large(runs=runs, results=results, largest=largest, tests=tests))


@cache
def _served(runs: int, results: int, largest: int, tests: int) -> Served:
    """Serve the store once; all rows of pages that were loaded before use it."""
    store = _large(runs, results, largest, tests)
    return Served(store, *_open_servers.enter_context(_serve(store.root)))


@contextmanager
def _serve(root: Path) -> Iterator[tuple[httpx.Client, int]]:
    """Serve the pages of a project; yield a client that is logged in, and the id of the server's process."""
    command = [EVALMETA, "view", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=root, env=Project(root).environment(), stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout
            url, code = (server.stdout.readline().decode().split()[1] for _ in range(2))
            with httpx.Client(base_url=httpx.URL(url).join("/"), timeout=600, follow_redirects=True) as client:
                # The page is not loaded: rows also measure the first time.
                assert client.post("/view/login", data={"token": code}, follow_redirects=False).is_redirect
                yield client, server.pid
        finally:
            server.terminate()


def close() -> None:
    """Stop the server and delete the store."""
    _served.cache_clear()
    _large.cache_clear()
    _open_servers.close()
    _open_stores.close()


def _rows(
    name: str,
    what: str,
    address: Callable[[LargeStore], str],
    sizes: dict[str, int] = SIZES,
    tiny: dict[str, int] = TINY,
) -> tuple[Row, Row]:
    """Return the row of a page that was loaded before, and that of the first page of a new server."""

    def measure(*, runs: int, results: int, largest: int, tests: int = TESTS) -> Result:
        served = _served(runs, results, largest, tests)
        path = f"/view{address(served.store)}"
        _load(served.client, path)
        before = _cpu_seconds(served.process)
        wall = statistics.median(of_work(lambda: _load(served.client, path)).wall for _ in range(ROUNDS))
        return _result(wall, (_cpu_seconds(served.process) - before) / ROUNDS)

    def measure_first(*, runs: int, results: int, largest: int, tests: int = TESTS) -> Result:
        store = _large(runs, results, largest, tests)
        taken = medians([_first(store, f"/view{address(store)}") for _ in range(SERVERS)])
        return _result(taken.wall, taken.cpu)

    first = "the same, the first page of a new server, nothing is kept"
    return (
        Row(name, what, "a fixed time", measure, sizes, tiny, QUICK, unit=" ms", clock="CPU"),
        Row(f"{name}-first", first, "a fixed time", measure_first, sizes, tiny, FIRST, unit=" ms", clock="CPU"),
    )


def _result(wall: float, cpu: float) -> Result:
    return Result(f"{cpu * 1_000:.0f} ms", "-", cpu * 1_000, f"on the wall clock {wall * 1_000:.0f} ms")


def _first(store: LargeStore, path: str) -> Usage:
    """Return the seconds of the first page of a new server, without numbers of runs that pages keep."""
    with open_database(find_project(store.root).state_dir) as database:
        database.execute("DELETE FROM run_digest")
    with _serve(store.root) as (client, server):
        before = _cpu_seconds(server)
        wall = of_work(lambda: _load(client, path)).wall
        return Usage(wall, _cpu_seconds(server) - before)


def _cpu_seconds(process: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _load(client: httpx.Client, path: str) -> None:
    reply = client.get(path)
    assert reply.is_success, f"{path}: {reply.status_code} {reply.text[:500]}"


PAGES = (
    ("view-changes", "what changed in 40 tests of {runs:,} runs with {results:,} results", lambda _: ""),
    ("view-tests", "page of all 40 tests of {runs:,} runs with {results:,} results", lambda _: "/tests"),
    ("view-runs", "list of the same runs", lambda _: "/runs"),
    ("view-runs-search", "failed runs of some tests", lambda _: "/runs?text=orders_7&outcome=failed"),
    ("view-run", f"page of {LAST_RUN}", lambda store: f"/runs/{store.last}"),
    ("view-run-deep", "page near the end of the same run", lambda store: f"/runs/{store.last}?after={store.deep}"),
    (
        "view-run-filtered",
        "its results with an undecided expectation",
        lambda store: f"/runs/{store.last}?verdict=undecided&name=output_validation",
    ),
    (
        "view-run-search",
        "a search in it for a text that no result has, until it stops",
        lambda store: f"/runs/{store.last}?text=Ada",
    ),
    (
        "view-run-search-worst",
        "the same with a text that only names of inputs contain",
        lambda store: f"/runs/{store.last}?text=question",
    ),
    ("view-case", "one of its results, with its history", lambda store: f"/runs/{store.last}/cases/7"),
    ("view-command", "page of the 20 runs of one command", lambda store: f"/suites/{store.suite}"),
    (
        "view-compare",
        "comparison of two runs of one test with 10,000 cases",
        lambda store: "/compare?before={}&after={}".format(*store.wide),
    ),
    (
        "view-compare-filtered",
        "the same, only changed expectations with a text",
        lambda store: "/compare?before={}&after={}&text=Paris&expectation=output_validation".format(*store.wide),
    ),
    ("view-matrix", "the same runs side by side", lambda store: "/matrix?run={}&run={}".format(*store.wide)),
    ("view-review", "the results that wait for a person", lambda _: "/review"),
    ("view-trends", "trend of one test", lambda _: "/trends?test=Orders_3"),
    (
        "view-grid",
        "the cases of one test in {runs} runs of {largest:,} cases",
        lambda _: "/grid?test=Orders_0",
        GRID_SIZES,
        GRID_TINY,
    ),
)


def _export(*, runs: int, results: int) -> Result:
    """Export a new store, whose answers are varied, so that they cannot be compressed like copies."""
    with open_large(runs=runs, results=results, largest=results // runs) as store:
        with open_database(find_project(store.root).state_dir) as database, database.transaction():
            sql = "SELECT body, run_id, number FROM case_result"
            varied = [(_varied(*row), *row[1:]) for row in database.query(sql)]
            database.execute_many("UPDATE case_result SET body = ? WHERE run_id = ? AND number = ?", varied)
        taken = Project(store.root).run("view", "--export", "out")
        sizes = [path.stat().st_size for path in (store.root / "out").iterdir()]
    return Result(f"{taken.cpu:.2f} s", "-", taken.cpu, f"{sum(sizes) / 1e6:.2f} MB")


def _varied(body: bytes, run_id: str, number: int) -> bytes:
    """Return the JSON of a case with an answer of 64 words that no other one has."""
    digest, words = blake2b(f"{run_id} {number}".encode()).digest(), ANSWER.split()
    return body.replace(ANSWER.encode(), " ".join(f"{words[byte % len(words)]}{byte}" for byte in digest).encode())


# Parts of pages, whose first time is that of the page.
PARTS = {"view-runs-search", "view-run-deep", "view-run-filtered", "view-run-search", "view-run-search-worst"}
ROWS = (
    *(row for page in PAGES for row in _rows(*page)[: 1 if page[0] in PARTS else 2]),
    Row(
        "view-export",
        "`evalmeta view --export` of {runs} runs with {results:,} results",
        "a fixed time",
        _export,
        {"runs": 53, "results": 2_120},
        {"runs": 4, "results": 8},
        Goal("at most", 2, " s"),
        unit=" s",
        clock="CPU",
    ),
)
