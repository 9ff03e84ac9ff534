from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest

from evalmeta.cli.commands.rater import show
from evalmeta.engine.metrics import METRICS
from evalmeta.engine.raters.llm.prompts import last_words, system_message
from evalmeta.engine.raters.llm.verdicts import judgement_schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.mark.parametrize("name", ["bot_response_rating", "output_validation"])
def test_a_prompt_is_shown_as_the_model_gets_it(evalmeta: Program, name: str) -> None:
    done = evalmeta("rater", "show", name)

    assert done.out.startswith("# bot_response_rating, prompt v2\n")
    assert system_message("bot_response_rating") in done.out
    assert '"answer": "<the agent\'s answer>"' in done.out
    assert json.loads(done.out.partition("## Schema of the answer\n")[2]) == judgement_schema()


def test_a_prompt_of_another_system_has_its_own_data_and_schema(evalmeta: Program) -> None:
    out = evalmeta("rater", "show", "response/llm_judged/groundedness/rating").out

    assert '"content": "<the passage\'s text>"' in out
    assert '"guidelines"' not in out
    assert json.loads(out.partition("## Schema of the answer\n")[2])["properties"]["label"]["enum"] == ["yes", "no"]


def test_without_a_metric_every_prompt_is_shown(evalmeta: Program) -> None:
    heads = [line for line in evalmeta("rater", "show").out.splitlines() if line.startswith("# ")]
    assert heads == [f"# {metric}, prompt v2" for metric in METRICS]


def test_prompts_can_be_had_as_json(evalmeta: Program) -> None:
    result = json.loads(evalmeta("rater", "show", "coherence", "--json").out)["result"]

    assert result["version"] == 2
    [prompt] = result["prompts"]
    assert (prompt["metric"], prompt["system"]) == ("coherence", system_message("coherence") + last_words("<nonce>"))
    assert prompt["schema"] == judgement_schema()
    assert json.loads(prompt["user"])["question"] == "<the utterance>"


def test_a_metric_without_a_prompt_is_refused_with_the_closest_metric(evalmeta: Program) -> None:
    done = evalmeta("rater", "show", "coherense")

    assert (done.code, done.out) == (2, "")
    assert "the LLM rater has no prompt for 'coherense'" in done.err
    assert "Did you mean coherence? It has: bot_response_rating, " in done.err


def test_a_word_without_a_close_match_gets_the_list(evalmeta: Program) -> None:
    assert "It has: bot_response_rating" in evalmeta("rater", "show", "zzz").err


@pytest.mark.parametrize(("begun", "metrics"), [("co", ["coherence", "completeness", "conciseness"]), ("zz", [])])
def test_a_shell_completes_metrics(begun: str, metrics: list[str]) -> None:
    (argument,) = (param for param in show.params if param.name == "metric")

    found = argument.shell_complete(click.Context(show), begun)

    assert [item.value for item in found] == metrics


def test_the_rubric_of_a_rater_is_shown_in_its_prompt(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = '[raters.strict]\nadapter = "llm"\nmodel = "a"\ninstructions = "Name the order."\n'
    (tmp_path / "evalmeta.toml").write_text(f"{table}choices = {{good = 5, bad = 0}}\n")
    out = evalmeta("rater", "show", "bot_response_rating", "--rater", "strict").out

    assert "they apply:\nName the order.\n" in out
    assert "choice: the verdict that fits best: good (rated 5 of 5) or bad (rated 0 of 5)." in out
    assert "The nonce of this request is <nonce>." in out


def test_a_rater_without_prompts_has_nothing_to_show(evalmeta: Program) -> None:
    done = evalmeta("rater", "show", "--rater", "rules")
    assert (done.code, "the rater 'rules' has no prompts; only LLM raters do" in done.err) == (2, True)
