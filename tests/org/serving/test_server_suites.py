"""The runs of a served org share their agent's concurrency, although each has a process of its own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.model.run_options import RunOptions
from evalmeta.package.project import find_project
from org.parts import deploy, opened_of, package, start_run
from org.servers import served, wait_for
from suites import make_suite

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("processes", "tests"),
    [(4, 5), pytest.param(10, 20, marks=pytest.mark.slow), pytest.param(4, 20, marks=pytest.mark.slow)],
)
def test_all_processes_together_use_the_whole_concurrency_and_no_more(
    tmp_path: Path, processes: int, tests: int
) -> None:
    suite = make_suite(tmp_path / "project", tests=tests)
    project = find_project(suite.root)
    with opened_of(project) as org:
        files = suite.root.rglob("*.aiEvaluationDefinition")
        deploy(org, package({file.name.partition(".")[0]: file.read_bytes() for file in files}))
        options = RunOptions(concurrency=10)
        names = [f"Test_{test:02}" for test in range(tests)]
        run_ids = [start_run(org, EVALUATION_DEFINITION, name, options) for name in names]
        with served(project, MAX_RUNS=processes):
            wait_for(lambda: not org.runs.unfinished())
        assert {org.runs.get(run_id).status for run_id in run_ids} == {RunStatus.COMPLETED}
        assert {case.verdict for run_id in run_ids for case in org.runs.cases(run_id)} == {"PASS"}
    assert suite.most_in_flight() == 10
    assert Counter(suite.asked()) == Counter(suite.questions)
