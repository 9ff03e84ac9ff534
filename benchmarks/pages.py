"""The pages of `evalmeta view` over a large store, as a browser on the same machine gets them."""

from __future__ import annotations

import statistics
import subprocess
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import httpx

from large_store import open_large
from projects import EVALMETA, Project
from rows import Goal, Result, Row
from timing import of_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from large_store import LargeStore

ROUNDS = 15
SIZES = {"runs": 2_000, "results": 1_000_000, "largest": 100_000}
TINY = {"runs": 60, "results": 3_000, "largest": 1_000}
QUICK = Goal("at most", 200, " ms")
LAST_RUN = "{largest:,} results of a run"
_open_servers = ExitStack()


class Served(NamedTuple):
    """A store, and a client that is logged in to its pages."""

    store: LargeStore
    client: httpx.Client


@cache
def _served(runs: int, results: int, largest: int) -> Served:
    """Fill a store and serve it once; all rows use it."""
    store = _open_servers.enter_context(open_large(runs=runs, results=results, largest=largest))
    return Served(store, _open_servers.enter_context(_serve(store.root)))


@contextmanager
def _serve(root: Path) -> Iterator[httpx.Client]:
    command = [EVALMETA, "view", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=root, env=Project(root).environment(), stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout
            url, code = (server.stdout.readline().decode().split()[1] for _ in range(2))
            with httpx.Client(base_url=httpx.URL(url).join("/"), timeout=600, follow_redirects=True) as client:
                # The page is not loaded: rows also measure the first time.
                assert client.post("/view/login", data={"token": code}, follow_redirects=False).is_redirect
                yield client
        finally:
            server.terminate()


def close() -> None:
    """Stop the server and delete the store."""
    _served.cache_clear()
    _open_servers.close()


def _row(name: str, what: str, address: Callable[[LargeStore], str]) -> Row:
    def measure(*, runs: int, results: int, largest: int) -> Result:
        served = _served(runs, results, largest)
        path = f"/view{address(served.store)}"

        def load() -> None:
            reply = served.client.get(path)
            assert reply.is_success, f"{path}: {reply.status_code} {reply.text[:500]}"

        # The first time, the numbers of runs that take long to compute are kept.
        first = of_work(load).wall * 1_000
        taken = statistics.median(of_work(load).wall for _ in range(ROUNDS)) * 1_000
        return Result(f"{taken:.0f} ms", "-", taken, f"the first time {first:.0f} ms")

    return Row(name, what, "a fixed time", measure, SIZES, TINY, QUICK, unit=" ms")


ROWS = (
    _row("view-tests", "page of all 40 tests of {runs:,} runs with {results:,} results", lambda _: ""),
    _row("view-runs", "list of the same runs", lambda _: "/runs"),
    _row("view-runs-search", "failed runs of some tests", lambda _: "/runs?text=orders_7&outcome=failed"),
    _row("view-run", f"page of {LAST_RUN}", lambda store: f"/runs/{store.last}"),
    _row("view-run-deep", "page near the end of the same run", lambda store: f"/runs/{store.last}?after={store.deep}"),
    _row(
        "view-run-filtered",
        "its results with an undecided expectation",
        lambda store: f"/runs/{store.last}?verdict=undecided&name=output_validation",
    ),
    _row(
        "view-run-search",
        "a search in it for a text that no result has, until it stops",
        lambda store: f"/runs/{store.last}?text=Ada",
    ),
    _row(
        "view-run-search-worst",
        "the same with a text that only names of inputs contain",
        lambda store: f"/runs/{store.last}?text=question",
    ),
    _row("view-case", "one of its results, with its history", lambda store: f"/runs/{store.last}/cases/7"),
    _row("view-command", "page of the 20 runs of one command", lambda store: f"/suites/{store.suite}"),
    _row(
        "view-compare",
        "comparison of two runs of one test",
        lambda store: f"/compare?after={store.ids[-2]}&before={store.ids[-42]}",
    ),
    _row("view-trends", "trend of one test", lambda _: "/trends?test=Orders_3"),
)
