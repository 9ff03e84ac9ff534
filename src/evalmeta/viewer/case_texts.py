"""The texts of a case by their names on its page, and the page that shows one of them whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from evalmeta.errors import NotFound
from evalmeta.model.json_value import read_json
from evalmeta.report.details import exchanges
from evalmeta.report.results import plain_text
from evalmeta.report.text import clean, json_text, shorten
from evalmeta.viewer.markdown import is_markdown, render_markdown
from evalmeta.viewer.pages import Page, Query, Source, number_of, text_of
from evalmeta.viewer.run import iterations_of, run_in
from evalmeta.viewer.waterfall import waterfall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import CaseResult


class RenderedText(NamedTuple):
    """A text in another form: JSON with a line for each value, or Markdown as HTML."""

    kind: Literal["JSON", "Markdown"]
    text: str


def rendered_text(text: str, *, whole: bool = False) -> RenderedText | None:
    """Return JSON and Markdown as they are read best, cut as other texts are unless it is `whole`; None for others."""
    cut = clean if whole else shorten
    value = _json_of(text)
    if value is not None:
        return RenderedText("JSON", cut(json_text(value, indent=2)))
    return RenderedText("Markdown", render_markdown(cut(text))) if is_markdown(text) else None


def _json_of(text: str) -> JsonValue:
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def text_page(source: Source, query: Query) -> Page:
    """Return the page with one text of a case as a whole."""
    run, number = run_in(source, query), number_of(query, "number")
    cases, part = iterations_of(source, run, number), text_of(query, "part")
    iteration = number_of(query, "iteration", otherwise=cases[0].iteration)
    texts = dict(text for case in cases if case.iteration == iteration for text in _texts_of(case))
    if part not in texts:
        raise NotFound(f"case {number} of run {run.id} has no text {part!r}")
    values = {
        "run": run,
        "number": number,
        "iteration": iteration if run.options.is_repeated else "",
        "part": part,
        "text": clean(texts[part]),
        "rendered": rendered_text(texts[part], whole=True),
    }
    return Page("text.html.j2", f"A text of case {number} of {run.definition}", values)


def _texts_of(case: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield the texts of a case by the names that its page gives them."""
    for exchange in exchanges(case):
        yield f"turn-{exchange.turn}-utterance", exchange.utterance
        if exchange.generated:
            yield f"turn-{exchange.turn}-answer", exchange.generated.outcome
    for number, result in enumerate(case.results, 1):
        yield f"result-{number}-expected", plain_text(result, result.expected)
        yield f"result-{number}-actual", plain_text(result, result.actual)
    for row in (row for turn in waterfall(case).turns for row in turn.rows if row.step):
        if row.step:
            yield f"{row.id}-input", step_text(row.step.input)
            yield f"{row.id}-output", step_text(row.step.output)


def step_text(value: JsonValue) -> str:
    """Return what a step received or returned as text: JSON in lines, unless it is a text."""
    return value if isinstance(value, str) else json_text(value, indent=2)
