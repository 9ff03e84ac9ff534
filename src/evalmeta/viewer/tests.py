"""The page of all tests: what is known about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.store.history import list_runs
from evalmeta.viewer.pages import Page

if TYPE_CHECKING:
    from evalmeta.viewer.pages import Query, Source


def tests_page(source: Source, _: Query) -> Page:
    """Return the page of all tests."""
    latest = {run.definition: run for run in list_runs(source.database, limit=1_000)}
    return Page("tests.html.j2", "Tests", {"tests": list(latest.values())}, command="evalmeta test list", live=True)
