"""The page of all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from evalmeta.package.project import Project
    from viewer.conftest import Browser


def test_a_project_without_runs_says_how_to_start(browser: Browser) -> None:
    assert "evalmeta run" in browser.page("/view/runs")
    assert "No test has run yet" in browser.page("/view")
    assert "No tests yet." in browser.page("/view/tests")
    assert "No runs yet." in browser.page("/view/trends")
    assert "Nothing is deployed." in browser.page("/view/org")


def test_runs_are_found_by_their_result(browser: Browser, run: Callable[..., int]) -> None:
    run()

    assert RUN in browser.page("/view/runs?outcome=failed")
    assert "No run matches" in browser.page("/view/runs?outcome=passed")
    assert "No run matches" in browser.page("/view/runs?text=refunds")
    assert RUN in browser.page("/view/runs?outcome=nonsense&since=yesterday&after=x")


def test_runs_are_found_by_the_tag_that_chose_their_cases(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("expectedTopic: Orders", "expectedTopic: Orders\n    tags: [smoke]"))
    run("--tag", "smoke")
    run()

    assert browser.page("/view/runs?tag=smoke").count("data-row") == 1
    assert browser.page("/view/runs").count("data-row") == 2


def test_all_pages_together_are_all_runs(
    browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 2)
    for _ in range(3):
        run()

    first = browser.page("/view/runs")
    [after] = {part.split('"')[0] for part in first.split("after=")[1:]}
    second = browser.page(f"/view/runs?after={after}")

    assert (first.count("data-row"), second.count("data-row")) == (2, 1)
    assert "First page" in second
