"""The tables of pages: each follows from its columns."""

from __future__ import annotations

import importlib
import pkgutil
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta import viewer
from evalmeta.viewer import org, run, runs, tests, trends
from evalmeta.viewer.tables import Column
from org.parts import definition, deploy, opened_of, package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

JOB: Final = "0Af000000000001CAA"
# The address of a page with a table, and where its columns stand.
TABLES: Final = (
    ("/view/tests", tests, "COLUMNS"),
    ("/view/runs", runs, "COLUMNS"),
    ("/view/suites/{suite}", run, "SUITE_COLUMNS"),
    ("/view/suites/{suite}", run, "CASE_COLUMNS"),
    ("/view/trends?test=orders.yaml", trends, "COLUMNS"),
    ("/view/org", org, "COLUMNS"),
    ("/view/org", org, "JOB_COLUMNS"),
    (f"/view/org/jobs/{JOB}", org, "MESSAGE_COLUMNS"),
)
_table: Final = re.compile(r'<table class="rows stack">(.*?)</table>', re.DOTALL)
_heading: Final = re.compile(r'<th scope="col"[^>]*>(?:<a [^>]*>)?(?:<span class="hidden">)?(.*?)<')


@pytest.fixture
def page(project: Project, browser: Browser, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Gives the HTML of pages of a project with two runs of one command, and a deployment."""
    (project.root / "more.yaml").write_text((project.root / "orders.yaml").read_text())
    start = request.getfixturevalue("run")
    start("more.yaml")
    start()
    with opened_of(project) as org:
        deploy(org, package({"A": definition("A")}))
    suite = re.findall(r"/view/suites/([\w-]+)", browser.page("/view/runs"))

    return lambda path: browser.page(path.format(suite=suite[-1]))


def columns() -> Iterator[Column[object]]:
    """Yield the columns of all pages."""
    for info in pkgutil.iter_modules(viewer.__path__):
        for value in vars(importlib.import_module(f"evalmeta.viewer.{info.name}")).values():
            yield from (
                column for column in (value if isinstance(value, tuple) else (value,)) if isinstance(column, Column)
            )


def test_each_cell_has_a_macro_and_each_macro_a_column() -> None:
    source = (Path(viewer.__file__).parent / "templates" / "cells.html.j2").read_text()
    macros = set(re.findall(r"{% macro (\w+)\(", source))

    assert {column.cell for column in columns()} == macros


@pytest.mark.parametrize(("path", "module", "name"), TABLES, ids=lambda value: value if value.__class__ is str else "")
def test_a_table_has_its_columns(page: Callable[[str], str], path: str, module: ModuleType, name: str) -> None:
    titles = [column.title for column in getattr(module, name) if not column.is_extra]
    shown = {tuple(_heading.findall(table)): table for table in _table.findall(page(path))}

    table = shown[tuple(titles)]
    for row in table.split("<tr")[2:]:
        assert row.count("<td") == len(titles)
        assert set(re.findall('data-label="(.*?)"', row)) < set(titles)


@pytest.mark.parametrize(("path", "module", "name"), TABLES, ids=lambda value: value if value.__class__ is str else "")
def test_a_new_column_is_one_row(
    page: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, path: str, module: ModuleType, name: str
) -> None:
    new: Column[object] = Column("New here", "text", lambda row: f"<{type(row).__name__}>")
    monkeypatch.setattr(module, name, (*getattr(module, name), new))

    html = page(path)

    assert "New here" in [title for table in _table.findall(html) for title in _heading.findall(table)]
    assert re.search(r'<td data-label="New here"><\w+></td>', unescape(html))
    assert not re.search(r'<td data-label="New here"><', html)


def test_a_new_filter_of_runs_is_one_row(page: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    new = runs.Choice("status", "New here", "anything", ("COMPLETED", "ERROR"))
    monkeypatch.setattr(runs, "CHOICES", (*runs.CHOICES, new))

    html = page("/view/runs?status=ERROR")

    assert '<label for="status">New here</label>' in html
    assert '<option value="ERROR" selected>ERROR</option>' in html
    assert "No run matches" in html
    assert "No run matches" not in page("/view/runs?status=COMPLETED")
