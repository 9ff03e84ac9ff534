from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.run_options import RunOptions
from evalmeta.report import FORMATS
from org.parts import AGENT, asked, make_project, started

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.project import Project

CASES, RUN = 30, "4KB000000000001GAA"
# Times of day; durations with a unit, or under a name that says what they are; ids of traces, which the start decides.
TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:?00| UTC)?"
    r"|\b[\d.,]+ ?m?s\b"
    r"""|\btime="[\d.]+"|"(duration|start|stop)": ?\d+"""
    r'|"\w*UnixNano": ?"\d+"|"(traceId|spanId|parentSpanId)": ?"\w+"'
)
FAILING = """\
import hashlib

def chosen(utterance):
    return "Orders" if hashlib.sha256(utterance.encode()).digest()[0] % 3 else "Other"
"""


@pytest.fixture
def twins(tmp_path: Path) -> list[Project]:
    """Two projects that are the same, with a run each that nobody has worked on."""
    agent = FAILING + AGENT.replace('"topic": "Orders"', '"topic": chosen(utterance), "latency_ms": 7')
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        project = make_project(tmp_path / name / "project", agent=agent)
        assert started(project, cases=CASES, options=RunOptions(seed=7, iterations=2, concurrency=1)) == RUN
        made.append(project)
    return made


@pytest.mark.slow
def test_the_same_seed_gives_the_same_order_and_the_same_reports_but_for_times(
    twins: list[Project], evalmeta: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[dict[str, str]] = []
    for project in twins:
        monkeypatch.chdir(project.root)
        evalmeta("test", "resume", "--job-id", RUN)
        said.append({name: TIMES.sub("TIME", _report(evalmeta, name)) for name in FORMATS})
    orders = [asked(project) for project in twins]
    assert orders[0] == orders[1]
    assert orders[0][:CASES] != orders[0][CASES:]
    assert sorted(orders[0][:CASES]) == sorted(orders[0][CASES:])
    for name in FORMATS:
        assert said[0][name] == said[1][name], name


def _report(evalmeta: Callable[..., object], name: str) -> str:
    return evalmeta("test", "results", "--job-id", RUN, "--result-format", name).out
