"""`evalmeta rater`: what raters go by, and how well they rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["rater", "show"]


@click.group(
    cls=LazyGroup, rows={"check": "evalmeta.cli.commands.rater_check:check", "show": "evalmeta.cli.commands.rater:show"}
)
def rater() -> None:
    """See what raters go by, and how well they rate."""


def _complete_metric(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from evalmeta.engine.raters.llm.prompts import METRICS  # noqa: PLC0415 - not needed for --help

    return [metric for metric in METRICS if metric.startswith(begun)]


@click.command()
@click.argument("metric", required=False, shell_complete=_complete_metric)
@json_option
def show(*, metric: str | None, as_json: bool) -> None:
    """Print the prompts of the LLM rater, word for word as a model gets them.

    METRIC is an expectation's name; without it, all are printed. What is to be rated
    follows each prompt as one JSON object.

    \b
    evalmeta rater show bot_response_rating
    evalmeta rater show --json
    """
    from evalmeta.engine.raters.llm.prompts import METRICS  # noqa: PLC0415 - not needed for --help

    metrics = METRICS if metric is None else (_known(metric),)
    if as_json:
        print_json(_prompts_json(metrics))
    else:
        click.echo("\n\n".join(_page(each) for each in metrics))


def _known(metric: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - not needed for --help

    from evalmeta.engine.raters.llm.prompts import METRICS  # noqa: PLC0415 - likewise
    from evalmeta.errors import NotFound  # noqa: PLC0415 - likewise
    from evalmeta.model.expectations import canonical_name  # noqa: PLC0415 - likewise

    name = canonical_name(metric)
    if name in METRICS:
        return name
    near = get_close_matches(name, METRICS, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise NotFound(f"the LLM rater has no prompt for {metric!r}", actions=(f"{hint}It has: {', '.join(METRICS)}.",))


def _page(metric: str) -> str:
    import json  # noqa: PLC0415 - not needed for --help

    from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, answer_schema, system_message  # noqa: PLC0415

    parts = (
        f"# {metric}, prompt v{PROMPT_VERSION}",
        f"## System message\n\n{system_message(metric).rstrip()}",
        f"## User message, with your texts in it\n\n{_example(metric)}",
        f"## Schema of the answer\n\n{json.dumps(answer_schema(metric), indent=2)}",
    )
    return "\n\n".join(parts)


def _example(metric: str) -> str:
    from evalmeta.engine.raters.llm.prompts import rubric_message  # noqa: PLC0415 - not needed for --help
    from evalmeta.engine.raters.rater import Rubric  # noqa: PLC0415 - likewise
    from evalmeta.model.definition import HistoryMessage  # noqa: PLC0415 - likewise
    from evalmeta.model.generated import Action, Passage  # noqa: PLC0415 - likewise

    rubric = Rubric(
        metric,
        "<the utterance>",
        "<the agent's answer>",
        "<the expectedValue>",
        (HistoryMessage("<user or agent>", "<what was said before>"),),
        (Action("<the action's name>", {}, "<what it gave>"),),
        passages=(Passage("<the document's address>", "<the passage's text>"),),
        facts=("<an expected fact>",),
        guidelines=("<a guideline>",),
    )
    return rubric_message(rubric)


def _prompts_json(metrics: Sequence[str]) -> JsonObject:
    from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, answer_schema, system_message  # noqa: PLC0415

    return {
        "version": PROMPT_VERSION,
        "prompts": [
            {
                "metric": metric,
                "system": system_message(metric),
                "user": _example(metric),
                "schema": answer_schema(metric),
            }
            for metric in metrics
        ],
    }
