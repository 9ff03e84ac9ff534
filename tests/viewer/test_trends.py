"""The page of trends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.cli.main import main
from org.parts import definition, deploy, opened_of, package

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser


def test_a_trend_has_a_point_for_each_run(browser: Browser, run: Callable[..., int]) -> None:
    for _ in range(3):
        run()

    html = browser.page("/view/trends?test=orders.yaml")

    assert html.count("<tr data-row") == 3
    assert "Pass rate</h2>" in html
    assert "Latency</h2>" in html


def test_one_run_is_not_a_trend(browser: Browser, run: Callable[..., int]) -> None:
    run()

    assert "needs two finished runs" in browser.page("/view/trends")


def test_only_deployments_that_changed_the_test_are_marked(
    project: Project, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = definition("A", subject="Order_Agent")
    for cases in (1, 2, 3):
        with opened_of(project) as org:
            deploy(org, package({"A": ours, "B": definition("B", cases=cases)}))
        with pytest.raises(SystemExit):
            main(["test", "run", "--wait", "--api-name", "A"])
    with opened_of(project) as org:
        deploy(org, package({"A": definition("A", subject="Order_Agent", cases=2)}))
    capsys.readouterr()

    html = browser.page("/view/trends?test=A")

    assert html.count('<line class="deploy"') == html.count("<figcaption>")
