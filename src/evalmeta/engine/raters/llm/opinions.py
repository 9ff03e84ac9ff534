"""What a model's text comes to, be it a rating of an answer or a ruling on a question about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta.engine.raters.llm.judgement import opinion_of, read_judgement
from evalmeta.engine.raters.llm.questions import QUESTIONS, item_count
from evalmeta.engine.raters.llm.rulings import read_ruling, weigh

if TYPE_CHECKING:
    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.engine.raters.llm.judgement import Opinion


class Reply(NamedTuple):
    """One sample: what the model said, as JSON that can be kept and read again, and what it comes to."""

    body: str
    opinion: Opinion


def read_opinion(text: str, rubric: Rubric) -> Reply | None:
    """Reads what a model says about a rubric; None when it cannot be read."""
    inquiry = QUESTIONS.get(rubric.metric)
    if inquiry is None:
        judgement = read_judgement(text)
        return Reply(judgement.model_dump_json(), opinion_of(judgement, rubric)) if judgement else None
    ruling = read_ruling(text, inquiry.form, count=item_count(inquiry, rubric))
    return Reply(ruling.model_dump_json(), weigh(ruling, inquiry.form, rubric)) if ruling else None
