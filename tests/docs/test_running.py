"""The matrix of docs/running.md, carried out: a job for each shard, and the job that merges them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from workflows import ROOT, Job

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs/running.md").read_text()
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
AGENT = "def answer(question):\n    return question\n"
SPEC = "subject: agents:answer\ntestCases:\n" + "".join(
    f"- input: Case {number}\n  contains: Case {number if number != 7 else 'seven'}\n" for number in range(1, 21)
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose seventh case of 20 fails."""
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "agents.py").write_text(AGENT)
    (folder / "tests/shop.yaml").write_text(SPEC)
    (folder / "evalmeta.toml").write_text("")
    return folder


def carried_out(folder: Path, project: Path, *, without: int = 0) -> Job:
    """Carry out the jobs, except that of one shard, and return the last."""
    [text] = re.findall(r"<!-- matrix: .*? -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    shard, merge = yaml.safe_load(text)["jobs"].values()
    last = Job(folder / "merge", project, environment=OFFLINE)
    for number in shard["strategy"]["matrix"]["shard"]:
        job = Job(folder / str(number), project, environment=OFFLINE, matrix={"shard": str(number)})
        job.artifacts.parent.mkdir(parents=True)
        if number != without:
            job.run_steps(shard["steps"])
            assert {*job.outcomes.values()} == {"success"}, job.log
            (job.artifacts / f"shard-{number}").rename(_folder(last) / f"shard-{number}")
    last.run_steps(merge["steps"])
    return last


def _folder(job: Job) -> Path:
    job.artifacts.mkdir(parents=True, exist_ok=True)
    return job.artifacts


@pytest.mark.slow
def test_the_shards_of_the_matrix_become_one_report(tmp_path: Path, project: Path) -> None:
    job = carried_out(tmp_path, project)
    assert "20 cases: 19 passed, 1 failed" in job.log
    assert [name for name, outcome in job.outcomes.items() if outcome == "failure"] == ["Merge"]
    assert 'tests="20"' in (job.artifacts / "results/junit.xml").read_text()


@pytest.mark.slow
def test_a_job_that_left_no_store_is_named(tmp_path: Path, project: Path) -> None:
    job = carried_out(tmp_path, project, without=3)
    assert "shard 3/4 of test tests/shop.yaml is missing" in job.log
    assert job.outcomes["Merge"] == "failure"
