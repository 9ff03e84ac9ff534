"""Tests of a draft run in a served org: what the org compiles from the bundle in the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.api.servers import make_token
from evalmeta.package.project import find_project
from org.servers import served
from systems.agent_script.previews import NAMED, RULES
from systems.agent_script.projects import write_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

pytestmark = pytest.mark.slow
SPEC = """\
subject: Bike_Shop
testCases:
- input: My repair 7
  contextVariables: [{name: $Context.CustomerId, value: C1}]
  topic: repairs
  actions: [check_customer, find_ticket, notify]
  handoffs: [repairs]
  contains: "120"
- input: A person, please
  handoffs: [human]
"""
TABLE = """\
[subjects.Bike_Shop]
adapter = "agentforce"
authoring_bundle = "Bike_Shop"
token_env = "AGENT_TOKEN"
instance_url = "URL"
url = "URL/einstein/ai-agent/v1"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with the draft; the project that serves the org has its rules and its doubles."""
    write_project(tmp_path / "org", rules=RULES)
    (tmp_path / "org/evalmeta.toml").write_text("")
    serving = find_project(tmp_path / "org")
    mine = tmp_path / "mine"
    write_project(mine, script=NAMED, doubles={})
    (mine / "shop.yaml").write_text(SPEC)
    with served(serving) as url:
        (mine / "evalmeta.toml").write_text(TABLE.replace("URL", url))
        monkeypatch.setenv("AGENT_TOKEN", make_token(serving))
        monkeypatch.chdir(mine)
        yield mine


def test_the_tests_of_a_draft_run_in_the_org(project: Path, evalmeta: Evalmeta) -> None:
    run = evalmeta("run", "shop.yaml")
    assert (run.code, "2 cases: 2 passed" in run.out) == (0, True), run
    script = next(project.rglob("*.agent"))
    script.write_text(
        NAMED.replace("subagent repairs:", "subagent mending:").replace("subagent.repairs", "subagent.mending")
    )
    run = evalmeta("run", "shop.yaml")
    assert (run.code, "mending" in run.out) == (100, True), run


def test_a_draft_that_is_not_compiled_is_one_error(project: Path, evalmeta: Evalmeta) -> None:
    script = next(project.rglob("*.agent"))
    script.write_text(NAMED + "            | The plan is {!@variables.plan}.\n")
    run = evalmeta("run", "shop.yaml")
    said = run.out + run.err
    assert run.code == 1, run
    assert said.count("there is no variable 'plan'") == 1, said
    assert f"Bike_Shop.agent:{len(NAMED.splitlines()) + 1}:29" in said


def test_doctor_lets_the_org_compile_the_draft(project: Path, evalmeta: Evalmeta) -> None:
    said = evalmeta("doctor")
    assert "the org compiles the draft" in said.out, said
    script = next(project.rglob("*.agent"))
    script.write_text(NAMED + "            | The plan is {!@variables.plan}.\n")
    said = evalmeta("doctor")
    assert (said.code, "there is no variable 'plan'" in said.out) == (1, True), said
