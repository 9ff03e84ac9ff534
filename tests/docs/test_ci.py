"""The workflows of docs/ci.md, carried out in a fresh checkout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner

from evalmeta.cli.main import cli
from workflows import ACTION, EXAMPLES, PAGE, ROOT, Job

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = ROOT / "metadata-samples"
# The tests already have evalmeta, so that pip needs no index.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def workflow(*, without: str = "") -> list[dict[str, object]]:
    """Return the steps of the workflow that the page marks as executed."""
    [text] = re.findall(r"<!-- workflow: .*? -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    [job] = yaml.safe_load(text)["jobs"].values()
    return [step for step in job["steps"] if step.get("name") != without]


def carried_out(folder: Path, project: Path, *, without: str = "") -> Job:
    job = Job(folder, project, environment=OFFLINE)
    job.run_steps(workflow(without=without))
    return job


@pytest.mark.slow
def test_the_workflow_passes_and_leaves_reports_and_a_summary(tmp_path: Path) -> None:
    job = carried_out(tmp_path, SAMPLES / "dx-project")
    assert {*job.outcomes.values()} == {"success"}, job.log
    names = {"junit.xml", "report.html", "summary.md", "annotations.github.txt"}
    assert {path.name for path in (job.artifacts / "results").iterdir()} == names
    assert job.summary

    [pages] = (example for example in EXAMPLES if isinstance(example, list))
    job.run_steps(pages)
    assert (job.artifacts / "pages/index.html").exists(), job.log


@pytest.mark.slow
def test_a_failing_case_makes_the_workflow_red_and_leaves_the_reports(tmp_path: Path) -> None:
    job = carried_out(tmp_path, SAMPLES / "failing")
    assert [name for name, outcome in job.outcomes.items() if outcome == "failure"] == ["Run"]
    assert (job.artifacts / "results/junit.xml").exists()
    assert "missing: PrintLabel" in job.summary


@pytest.mark.slow
@pytest.mark.parametrize("step", ["Deploy", "Run"])
def test_a_forgotten_step_makes_the_workflow_red(tmp_path: Path, step: str) -> None:
    assert carried_out(tmp_path, SAMPLES / "dx-project", without=step).has_failed


def test_the_table_lists_the_inputs_of_the_action() -> None:
    table = PAGE.split("| input |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE) == list(ACTION["inputs"])


def test_commands_of_the_page_have_options_that_exist() -> None:
    lines = {line for each in re.findall(r"evalmeta (?:validate|deploy|test \w+)[^\n`]*", PAGE) for line in [each]}
    for line in lines:
        words = [word for word in line.split()[1:] if not word.isupper()]
        command = words[: 2 if words[0] == "test" else 1]
        options = {word for word in words if word.startswith("--")}
        told = CliRunner().invoke(cli, [*command, "--help"]).output
        assert {option for option in options if option not in told} == set(), line


def test_every_example_is_yaml_that_deploys_before_it_runs() -> None:
    assert len(EXAMPLES) == 5
    text = [str(example) for example in EXAMPLES if "evalmeta test run" in str(example)]
    assert all(each.index("evalmeta deploy") < each.index("evalmeta test run") for each in text)
