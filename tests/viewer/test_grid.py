"""The page with the results of the cases of a test in its latest runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.run import Verdict
from evalmeta.viewer.grid import Cell, GridRow

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

PATH: Final = "/view/grid?test=orders.yaml"
_CASES: Final = "".join(f"  - utterance: Where is order {number}?\n    contains: Friday\n" for number in range(20, 30))
_HEAD: Final = "subjectType: AGENT\nsubjectName: Order_Agent\ntestCases:\n"


def answer(project: Project, day: str) -> None:
    """Let the agent answer another day."""
    agent = project.root / "order_agent.py"
    agent.write_text(re.sub(r"arrives on \w+", f"arrives on {day}", agent.read_text()))


def squares(html: str) -> list[tuple[str, list[str]]]:
    """Return the number of changes of each row, and the looks of its squares."""
    rows = re.findall(r"<tr data-row>(.*?)</tr>", html)
    return [(re.findall(r'class="number">(\d+)', row)[0], re.findall(r'class="square ([\w ]+)"', row)) for row in rows]


def test_rows_are_cases_and_columns_are_runs_the_newest_first(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    (project.root / "orders.yaml").write_text(_HEAD + _CASES)
    run()
    answer(project, "Monday")
    run("--case", "2")
    answer(project, "Friday")
    run()

    html = browser.page(PATH)

    assert squares(html)[:2] == [("2", ["pass", "failure", "pass"]), ("0", ["pass", "pass"])]
    assert "The results of 10 cases in the newest 3 runs" in html
    [failed] = re.findall(r'<a class="square failure" href="([^"]+)" title="([^"]+)"', html)
    assert failed[0] == "/view/runs/4KB000000000002GAA/cases/2"
    assert failed[1].startswith("FAILED, ")
    assert html.count('<span class="hidden">not in this run</span>') == 9
    assert browser.page(failed[0])
    assert 'href="/view/grid?test=orders.yaml"' in browser.page("/view/trends?test=orders.yaml")


def test_a_case_keeps_its_row_when_its_number_changes(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(_HEAD + _CASES)
    run()
    answer(project, "Monday")
    spec.write_text(f"{_HEAD}  - utterance: Hello\n    contains: Hello\n{_CASES}")
    run()

    html = browser.page(PATH)

    assert sorted(squares(html)) == sorted([("0", ["pass"]), *([("1", ["failure", "pass"])] * 10)])
    [row] = [row for row in re.findall(r"<tr data-row>(.*?)</tr>", html) if "order 20?" in row]
    assert re.findall(r'href="/view/runs/\w+/cases/(\d+)"', row) == ["2", "2", "1"]


def test_cases_that_always_passed_are_left_out_of_a_large_grid_which_says_so(
    project: Project, browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 5)
    (project.root / "orders.yaml").write_text(_HEAD + _CASES)
    run()
    assert "All 10 cases passed in the newest 1 run." in browser.page(PATH)

    answer(project, "Monday")
    run("--case", "1-6")

    html = browser.page(PATH)
    assert "The results of 6 cases in the newest 2 runs" in html
    assert "4 cases that passed in all of them are not shown." in html
    assert len(squares(html)) == 5
    [following] = re.findall(r'rel="next" href="([^"]+)"', html)
    assert len(squares(browser.page(following.replace("&amp;", "&")))) == 1


def test_iterations_that_differ_are_a_change() -> None:
    passed, mixed = Cell(1, Verdict.PASS, 1, 1), Cell(1, Verdict.FAILURE, 1, 3)

    assert GridRow.of("", {0: passed, 2: passed}).changes == 0
    assert GridRow.of("", {0: passed, 1: mixed, 2: passed}).changes == 3
    assert (mixed.is_mixed, passed.is_mixed) == (True, False)


def test_orders_of_a_grid(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(_HEAD + _CASES.replace("Friday", "Sunday", 1))
    run()
    answer(project, "Monday")
    run("--case", "1", "--case", "3")

    def numbers(sort: str) -> list[str]:
        html = browser.page(f"{PATH}&sort={sort}")
        return re.findall(r'<tr data-row><th scope="row"><a href="[^"]+">(\d+)</a>', html)[:2]

    assert numbers("") == ["3", "1"]
    assert numbers("failures") == ["1", "3"]
    assert numbers("number") == ["1", "2"]
    assert numbers("nonsense") == ["3", "1"]


def test_a_project_without_runs_has_an_empty_grid(browser: Browser) -> None:
    assert "No finished runs yet." in browser.page("/view/grid")
