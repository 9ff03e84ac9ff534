"""The pages for users of other test tools: each example converts to the spec beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

DOCS = Path(__file__).parents[2] / "docs"
TOOLS = ("promptfoo", "pydantic-evals", "deepeval", "inspect", "openai-evals", "langsmith", "agents-cli")
_BLOCK = re.compile(r'```\w+ title="([^"]+)"\n(.*?)```', re.DOTALL)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_example_of_a_page_becomes_the_spec_beside_it(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.chdir(tmp_path)
    [(source, content), (target, spec)] = _BLOCK.findall((DOCS / f"coming-from-{tool}.md").read_text())
    (tmp_path / source).write_text(content)
    assert evalmeta("convert", source, "--to", "testspec", "-o", target).code == 0
    assert (tmp_path / target).read_text() == spec
    (tmp_path / "my_agent.py").write_text("def answer(question):\n    return 'nothing'\n")
    before, after = (evalmeta("run", file, "--agent", "my_agent:answer") for file in (source, target))
    # What is not judged is one undecided result of a run, and its whole test case in a spec: neither passes.
    assert (before.code, after.code) in {(100, 100), (1, 1)}


def test_a_folder_lists_the_files_of_other_tools_and_does_not_run_them(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for tool in TOOLS:
        [(source, content), _] = _BLOCK.findall((DOCS / f"coming-from-{tool}.md").read_text())
        (tmp_path / f"{tool}-{source}").write_text(content)
    done = evalmeta("validate", ".", "-v")
    assert (done.code, done.err.count("name it to run it, or convert it")) == (0, len(TOOLS))


def test_strict_writes_nothing_if_an_evaluator_is_lost(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yaml").write_text("cases:\n- inputs: a\n  evaluators: [Own, {Contains: b}]\n")
    done = evalmeta("convert", "d.yaml", "--to", "testspec", "-o", "s.yaml", "--strict")
    assert done.code == 2
    assert "test case 1: the evaluator Own; the case is marked review: true" in done.err
    assert not (tmp_path / "s.yaml").exists()


def test_a_definition_names_the_checks_that_only_the_tool_can_make(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yaml").write_text("cases:\n- inputs: a\n  evaluators: [Own, {Contains: b}]\n")
    done = evalmeta("convert", "d.yaml", "--to", "definition", "--subject-name", "Desk")
    assert (done.code, "the check 'the evaluator Own'" in done.err) == (0, True)
    assert "string_comparison" in done.out


def test_a_file_of_a_tool_without_an_agent_says_how_to_name_one(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [(source, content), _] = _BLOCK.findall((DOCS / "coming-from-promptfoo.md").read_text())
    (tmp_path / source).write_text(content)
    done = evalmeta("run", source)
    assert "promptfooconfig.yaml does not name an agent" in done.err
    assert "--agent my_agent:answer" in done.err
    assert "subject: my_agent" not in done.err.replace("[subjects", "")


@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ({"provider": "openai:gpt-5"}, "provider of the test, the agents; evalmeta asks the one of --agent or of"),
        ({"providers": ["openai:gpt-5"]}, "providers of the test, the agents; evalmeta asks the one of --agent or of"),
        ({"providerOutput": "Hello"}, "providerOutput of the test, a recorded answer: the agent is asked"),
        ({"options": {"provider": "openai:gpt-5"}}, "the option provider of the test"),
    ],
)
@pytest.mark.parametrize("place", ["test", "defaultTest"])
def test_what_is_left_out_of_a_test_is_reported_when_it_is_converted(
    evalmeta: Callable[..., Outcome], tmp_path: Path, key: dict[str, object], lost: str, place: str
) -> None:
    test = {"vars": {"q": "Hi"}, "assert": [{"type": "contains", "value": "Hello"}]}
    tests = {"tests": [{**test, **key}]} if place == "test" else {"tests": [test], "defaultTest": key}
    (tmp_path / "p.json").write_text(json.dumps({"prompts": ["{{q}}"], **tests}))
    done = evalmeta("convert", str(tmp_path / "p.json"), "--to", "testspec", "-o", str(tmp_path / "s.yaml"))
    assert done.code == 0
    assert f"Lost: test case 1: {lost}" in " ".join(done.err.split())
    assert "review" not in (tmp_path / "s.yaml").read_text()
