"""Calls that run tests, made without the command line."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TypeVar

import pytest
from rich.console import Console

from evalmeta.api.runs.calls import carry_out, plan, prepared
from evalmeta.api.runs.selection import CaseSelection
from evalmeta.api.runs.starting import AgentOptions, RunCall
from evalmeta.engine.event_loop import run_to_end
from evalmeta.errors import UsageError
from evalmeta.model.run_options import RunOptions
from evalmeta.report.progress import Progress
from org.parts import make_project

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.model.problem import Problem
    from evalmeta.package.project import Project

T = TypeVar("T")

ORDERS, RETURNS = "answers/orders.yaml", "answers/returns.yaml"

AGENT = """
def answer(utterance):
    return {"outcome": "It is on its way.", "topic": "Orders", "actions": []}
"""
SPEC = """\
name: {name}
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedTopic: {topic}
"""


class Recorder:
    """Keeps what an observer learns."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.others: list[str] = []
        self.waited: list[int] = []
        self.started: list[RunHandle] = []

    def run(self, work: Coroutine[None, None, T], /) -> T:
        return run_to_end(work)

    def note(self, text: str, /) -> None:
        self.texts.append(text)

    def warn(self, text: str, /) -> None:
        self.texts.append(f"Warning: {text}")

    def warn_of(self, problems: Sequence[Problem], paths: Sequence[Path] = (), /) -> None:
        self.texts += [f"Warning: {problem} in {len(paths)} paths" for problem in problems]

    def show_others(self, others: Mapping[Path, str], /) -> None:
        self.others += [path.name for path in others]

    def show_org(self, project: Project, target: Target | None, /) -> None:
        self.texts.append(f"Target: {target} of {project.root}")

    def show_started(self, what: str, run: RunHandle, /) -> None:
        self.texts.append(what)
        self.started.append(run)

    def progress(self, runs: int, /) -> Progress:
        self.waited.append(runs)
        return Progress(Console(file=io.StringIO()), enabled=False, runs=runs)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCall:
    """A call for a folder with an agent, two tests and a file that is not one."""
    project = make_project(tmp_path / "project")
    monkeypatch.chdir(project.root)
    folder = project.root / "answers"
    folder.mkdir()
    (project.root / "desk.py").write_text(AGENT)
    for topic in ("Orders", "Returns"):
        (folder / f"{topic.lower()}.yaml").write_text(SPEC.format(name=topic, topic=topic))
    (folder / "notes.json").write_text("{}")
    agent = AgentOptions("desk:answer")
    return RunCall(project=project, options=RunOptions(), wait=60, paths=(folder,), agent=agent)


def test_a_call_runs_the_tests_of_a_folder_and_tells_its_observer(call: RunCall) -> None:
    observer = Recorder()
    with prepared(call, observer) as ready:
        assert ready is not None
        assert [file.name for file in ready.files] == [ORDERS, RETURNS]
        assert not observer.others
        outcome, comparator = carry_out(ready, observer)
    passed = {finished.run.definition: finished.summary.passed for finished in outcome.finished}
    assert (passed, outcome.errors, outcome.started, comparator) == ({ORDERS: 1, RETURNS: 0}, [], [], None)
    assert (observer.waited, observer.others) == ([2], ["notes.json"])


def test_a_plan_asks_nothing(call: RunCall) -> None:
    observer = Recorder()
    with prepared(call, observer) as ready:
        assert ready is not None
        planned = plan(ready, observer)
    assert [(run.definition, len(run.cases)) for run in planned] == [(ORDERS, 1), (RETURNS, 1)]
    assert not observer.waited


def test_a_call_without_a_wait_only_starts_runs(call: RunCall) -> None:
    observer = Recorder()
    (call.project.root / RETURNS).unlink()
    with prepared(
        RunCall(project=call.project, options=call.options, paths=call.paths, agent=call.agent), observer
    ) as ready:
        assert ready is not None
        outcome, _ = carry_out(ready, observer)
    assert [run.definition for run in outcome.started] == [ORDERS]
    assert observer.started == outcome.started
    assert not observer.waited


def test_the_observer_learns_of_other_files_also_if_nothing_matches(call: RunCall) -> None:
    observer = Recorder()
    selection = CaseSelection(tags=("refunds",))
    tagged = RunCall(
        project=call.project, options=call.options, paths=call.paths, agent=call.agent, selection=selection
    )
    with pytest.raises(UsageError, match="refunds"), prepared(tagged, observer):
        pass
    assert observer.others == ["notes.json"]
