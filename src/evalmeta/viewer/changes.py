"""What people change with forms: judgements of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.api.marks import mark_result
from evalmeta.errors import UsageError
from evalmeta.store.marks import ResultPlace
from evalmeta.viewer.pages import Target, number_of, text_of
from evalmeta.viewer.run import run_in

if TYPE_CHECKING:
    from evalmeta.viewer.pages import Query, Source

_JUDGEMENTS: Final = {"right": True, "wrong": False, "none": None}


def mark(source: Source, form: Query) -> Target:
    """Save whether the verdict of a result is right."""
    run, number, iteration = run_in(source, form), number_of(form, "number"), number_of(form, "iteration")
    judgement = form.get("judgement", "")
    if judgement not in _JUDGEMENTS:
        raise UsageError(f"{judgement!r} is not a valid judgement")
    place = ResultPlace(run.org_url, run.id, iteration, number, form.get("result", ""), number_of(form, "turn"))
    mark_result(
        source.project, source.database, place, source.user, is_right=_JUDGEMENTS[judgement], note=form.get("note", "")
    )
    several = iteration if run.options.iterations > 1 else ""
    return Target("case", {"run": run.id, "number": number, "iteration": several, "org": text_of(form, "org")})
