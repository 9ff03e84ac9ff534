"""What the pages about ADK print works as it is printed."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from evalmeta.adk import AgentEvaluator
from evalmeta.systems.adk.config import read_test_config
from evalmeta.systems.adk.reader import read_adk
from systems.adk.adkfiles import FULL

DOCS = Path(__file__).parents[2] / "docs"


def blocks(language: str, page: str = "coming-from-adk.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_test_of_the_page_passes_and_fails_as_its_eval_set_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evaluation/tests").mkdir(parents=True)
    (tmp_path / "evaluation/tests/basic.test.json").write_bytes(FULL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(blocks("python")[1], "page", "exec"), names)  # noqa: S102 - the page's own
    test = names["test_weather"]
    assert callable(test)

    test()
    (tmp_path / "evaluation/tests/basic.test.json").write_bytes(FULL.replace(b"London", b"Rome"))
    with pytest.raises(AssertionError, match="tool_trajectory_avg_score for case-1 failed: expected 1, got 0"):
        test()


def test_the_eval_set_of_the_page_is_read_without_a_warning() -> None:
    document = read_adk(blocks("json", "adk.md")[0].encode(), label="page", name="page")

    [case] = document.evaluation.cases
    assert (case.label, [len(turn.expectations) for turn in case.turns], document.notes) == ("two-cities", [2, 2], ())


def test_the_keywords_of_the_page_are_those_of_the_evaluator() -> None:
    [call] = [node for node in ast.walk(ast.parse(blocks("python")[0])) if isinstance(node, ast.Call) and node.keywords]
    inspect.signature(AgentEvaluator.evaluate).bind(**{str(keyword.arg): None for keyword in call.keywords})


def test_the_criteria_of_the_page_are_read_without_a_warning() -> None:
    config = read_test_config(blocks("json", "adk.md")[1].encode(), label="page")

    assert ([each.name for each in config.criteria], config.notes) == (
        ["tool_trajectory_avg_score", "response_match_score", "final_response_match_v2", "brevity", "token_usage_v1"],
        (),
    )
