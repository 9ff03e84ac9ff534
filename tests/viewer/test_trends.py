"""The page of trends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
