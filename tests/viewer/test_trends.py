"""The page of trends."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.runs.test_origins import git
from evalmeta.cli.main import main
from evalmeta.model.run import RunStatus, Summary
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.protocol.runs import write_options
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.run_lists import ListedRun
from evalmeta.viewer.trends import MEASURES, Measure, Point, Series, chart_of
from org.parts import definition, deploy, opened_of, package

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.package.project import Project
    from viewer.conftest import Browser


def test_a_trend_has_a_point_for_each_run(browser: Browser, run: Callable[..., int]) -> None:
    for _ in range(3):
        run()

    html = browser.page("/view/trends?test=orders.yaml")

    assert html.count("<tr data-row") == 3
    assert "Pass rate</h2>" in html
    assert "Latency</h2>" in html
    # Three lines of three points, each of which leads to its run.
    assert len(re.findall(r'<line x1="[\d.]+%" y1=', html)) == 6
    assert len(re.findall(r'<a href="/view/runs/\w+" tabindex="-1" aria-label="[^"]+: run ', html)) == 9


def test_one_run_is_not_a_trend(browser: Browser, run: Callable[..., int]) -> None:
    run()

    assert "needs two finished runs" in browser.page("/view/trends")


def points_of(values: Sequence[float | None], times: Sequence[float]) -> list[Point]:
    """Return runs at these times, whose median latencies are the values."""
    kept = KeptTally(Summary(0, 0, 0, 0, 0), None).columns()
    return [
        Point(
            ListedRun(
                "", "", f"{number}", "A", "", RunStatus.COMPLETED, at, at, 1, "", "", None, "", "", "", kept, b"{}"
            ),
            *(None, value, None, None),
        )
        for number, (value, at) in enumerate(zip(values, sorted(times), strict=True))
    ]


MEDIAN = Measure("Latency", (Series("p50", lambda point: point.p50),), "{:.3g}".format)
SOME = st.floats(0, 1e9, allow_subnormal=False).filter(lambda value: value == 0 or value > 1e-6)


@given(
    values=st.lists(st.one_of(st.none(), SOME, st.just(float("inf"))), min_size=2, max_size=20),
    span=st.floats(0, 3e9),
    deploys=st.lists(st.floats(0, 1), max_size=3),
)
def test_everything_is_inside_a_chart(values: list[float | None], span: float, deploys: list[float]) -> None:
    times = [1e9 + span * at / len(values) for at in range(len(values))]
    chart = chart_of(MEDIAN, points_of(values, times), [1e9 + span * at for at in deploys])

    known = [value for value in values if value is not None and value != float("inf")]
    assert (chart is None) == (not known)
    if chart:
        [(_, line)] = chart.lines
        assert len(line) == len(known)
        for place in (*line, *chart.scale, *chart.times, *chart.deploys):
            assert 0 <= place.x <= 100
            assert 0 <= place.y <= 100
        assert 2 <= len(chart.scale) <= 6
        assert (1 if span < 2 else 2) <= len(chart.times) <= 8 or span > 5 * 365 * 86_400
        assert (chart.scale[0].y, chart.scale[-1].y) == (100, 0)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((0.0, 0.0), ["0", "0.25", "0.5", "0.75", "1"]),
        ((3.0, 96.0), ["0", "25", "50", "75", "100"]),
        ((101.0, 1.0), ["0", "50", "100", "150"]),
        ((0.07, 0.01), ["0", "0.02", "0.04", "0.06", "0.08"]),
    ],
)
def test_a_scale_has_round_numbers(values: tuple[float, float], scale: list[str]) -> None:
    chart = chart_of(MEDIAN, points_of(values, (0, 1)), [])
    assert chart
    assert [place.text for place in chart.scale] == scale


@pytest.mark.parametrize(
    ("span", "times"),
    [
        (4, ["00:00:00", "00:00:01", "00:00:02", "00:00:03", "00:00:04"]),
        (7_200, ["01-01 00:00", "01-01 00:30", "01-01 01:00", "01-01 01:30", "01-01 02:00"]),
        (400_000, ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04", "1970-01-05"]),
    ],
)
def test_times_are_round(span: float, times: list[str]) -> None:
    chart = chart_of(MEDIAN, points_of((1, 2), (0, span)), [])
    assert chart
    assert [place.text for place in chart.times] == times


def test_each_measure_has_a_chart_and_its_columns(browser: Browser, project: Project, run: Callable[..., int]) -> None:
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('{"topic"', '{"tokens": {"input": 9, "output": 3}, "topic"'))
    run()
    run()
    html = browser.page("/view/trends?test=orders.yaml")

    for measure in MEASURES:
        assert f"<h2>{measure.title}</h2>" in html
        for series in measure.series:
            assert f">{series.title}</a></th>" in html
            assert html.count(f'data-label="{series.title}"') == 2


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


def test_commits_and_branches_are_notes_that_lead_to_their_first_run(
    project: Project, browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SHA", "")
    git(project.root, "init", "--quiet", "--initial-branch", "main")
    git(project.root, "commit", "--quiet", "--allow-empty", "--message", "First <b>")
    run()
    run()
    git(project.root, "checkout", "--quiet", "-b", "fix")
    git(project.root, "commit", "--quiet", "--allow-empty", "--message", "Second")
    run()

    html = browser.page("/view/trends?test=orders.yaml")

    chart = html.partition("<figure")[2].partition("</figure>")[0]
    notes = re.findall(
        r'<a href="/view/runs/(\w+)" tabindex="-1"(?: aria-label="[^"]+")?><title>(commit [^<]+)<', chart
    )
    assert [run_id for run_id, _ in notes] == ["4KB000000000001GAA", "4KB000000000003GAA"]
    assert "&#34;First &lt;b&gt;&#34;, branch main: run" in notes[0][1]
    assert ", branch fix: run 4KB000000000003GAA" in notes[1][1]
    assert re.findall(r'<text class="note[^>]*>(\w+)<', chart)[0] == "main"
    assert html.count('data-label="Commit"') == 3


def test_names_of_notes_have_room() -> None:
    points = points_of([1.0] * 50, [*range(50)])
    origins = [Origin(branch=f"branch-{number}", revision=f"{number:040}") for number in range(50)]
    told = [
        point._replace(
            run=replace(
                point.run, branch=origin.branch, written_options=orjson.dumps(write_options(RunOptions(origin=origin)))
            )
        )
        for point, origin in zip(points, origins, strict=True)
    ]
    chart = chart_of(MEDIAN, told, [])

    assert chart
    named = [note.place.x for note in chart.notes if note.name]
    assert len(chart.notes) == 50
    assert 2 < len(named) <= 10
    assert all(later - earlier >= 10 for earlier, later in pairwise(named))


def test_the_newest_commit_is_named_on_the_left_of_its_line() -> None:
    points = points_of([1.0] * 3, [0, 50, 100])
    options = [write_options(RunOptions(origin=Origin(revision=f"{number}" * 40))) for number in range(3)]
    told = [
        point._replace(run=replace(point.run, written_options=orjson.dumps(written)))
        for point, written in zip(points, options, strict=True)
    ]
    chart = chart_of(MEDIAN, told, [])

    assert chart
    assert [(note.name, note.is_left) for note in chart.notes] == [
        *(("0000000", False), ("1111111", False), ("2222222", True))
    ]
