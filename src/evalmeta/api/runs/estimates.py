"""What runs would cost, by what earlier runs of the same tests and agent used and by the prices of now."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.prices import Prices
from evalmeta.engine.spending import models_of
from evalmeta.errors import EvalmetaError
from evalmeta.model.registry import type_of_run
from evalmeta.model.spending import Spent, merged
from evalmeta.org.run_files import read_subject
from evalmeta.org.subjects import agent_of, agent_settings
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import RunFilter, newest_runs
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.api.runs.selection import PlannedRun
    from evalmeta.api.runs.starting import RunCall
    from evalmeta.model.run import CaseResult
    from evalmeta.store.database import Database
    from evalmeta.store.run_lists import ListedRun

_RUNS: Final = 20
"""The number of earlier runs of a test that an estimate reads at most."""


class Estimate(NamedTuple):
    """What a run would cost.

    Attributes:
        asked: the number of case results that the run would have.
        runs: the number of earlier runs that it is based on, with `answers` case results.
        spent: what agent and rater would cost, by model; empty if nothing is known.
    """

    definition: str
    asked: int
    runs: int = 0
    answers: int = 0
    spent: tuple[Spent, ...] = ()

    @property
    def is_known(self) -> bool:
        """Return whether all that would be asked has a price."""
        return bool(self.spent) and not any(row.unknown for row in self.spent)


def estimate_runs(call: RunCall, planned: Sequence[PlannedRun]) -> list[Estimate]:
    """Return what each planned run would cost; runs of other orgs are not known."""
    with open_database(call.project.store) as database:
        return [_estimate(call, run, database) for run in planned if run.cases]


def _estimate(call: RunCall, planned: PlannedRun, database: Database) -> Estimate:
    asked = planned.results
    runs = [] if call.target else [*_earlier(call, planned, database)]
    prices, model = Prices(call.project.settings.prices), _model_of(call, planned)
    answers = 0
    used: tuple[Spent, ...] = ()
    for run in runs:
        for case in Runs(database).stream(run.id):
            answers += 1
            used = merged((*used, *(_priced(row, prices, model) for row in _rows(case))))
    if not answers:
        return Estimate(planned.definition, asked)
    spent = tuple(_scaled(row, asked, answers) for row in used)
    known = spent if any(row.is_known for row in spent) else ()
    return Estimate(planned.definition, asked, len(runs), answers, known)


def _model_of(call: RunCall, planned: PlannedRun) -> str:
    """Return the model in the settings of the agent that a run would ask: its file's own ones, or the project's."""
    test, agent = planned.definition, planned.subject_name
    own = (file.subject for file in call.files if (file.name, file.subject_name) == (test, agent) and file.subject)
    subject = next(own, None)
    settings = (
        read_subject(subject)
        if subject
        else agent_settings(call.project.settings.subjects, agent, root=call.project.root)
    )
    return settings.language_model if settings else ""


def _earlier(call: RunCall, planned: PlannedRun, database: Database) -> Iterator[ListedRun]:
    """Yield the latest runs of a test in which the same agent was asked and the same rater judged."""
    agent = ""
    with suppress(EvalmetaError):
        subjects = call.project.settings.subjects
        if agent_settings(subjects, planned.subject_name, root=call.project.root) is not None:
            agent, _ = agent_of(subjects, planned.subject_name, root=call.project.root)
    wanted = RunFilter(test=planned.definition, subject=planned.subject_name, org_url="")
    for run in newest_runs(database, wanted, limit=_RUNS):
        kind, options = type_of_run(run.id), run.options
        is_same = not agent or options.setup.agent in {agent, ""}
        is_of_test = kind is not None and kind.name == planned.type and run.status.is_over and run.answers_of is None
        if is_of_test and is_same and options.scoring.rater == call.options.scoring.rater:
            yield run


def _rows(case: CaseResult) -> Iterable[Spent]:
    if any(row.role == "agent" for row in case.spent):
        return case.spent
    answers = len(case.earlier) + (case.generated is not None)
    return (*case.spent, Spent("agent", replies=answers, unknown=answers))


def _priced(row: Spent, prices: Prices, model: str) -> Spent:
    """Return what replies cost by the prices of now, with the agent's model in its settings as in a run."""
    models = models_of(row, model)
    row = row._replace(model=next(filter(None, models), ""))
    reported = row.replies - row.unknown
    amount = prices.amount(models, row) if reported or row.input or row.output else None
    if amount is not None:
        return row._replace(amount=amount, unknown=0 if not reported else row.unknown)
    return row._replace(amount=0, unknown=row.replies)


def _scaled(row: Spent, asked: int, basis: int) -> Spent:
    """Return the mean of a case, for as many cases as are asked; stored judgements count as if they were asked anew."""
    anew = row.reused if row.role == "rater" else 0
    reported = row.replies - row.unknown
    share = (reported + anew, reported) if reported else (1, 1)
    numbers = (number * share[0] * asked // (share[1] * basis) for number in (row.input, row.output, row.cached))
    given, output, cached = numbers
    unknown = row.unknown if reported else row.unknown + anew
    return Spent(
        row.role,
        row.model,
        replies=-(-(row.replies + anew) * asked // basis),
        unknown=-(-unknown * asked // basis),
        input=given,
        output=output,
        cached=cached,
        amount=row.amount * share[0] * asked // (share[1] * basis),
        reused=0 if row.role == "rater" else row.reused * asked // basis,
    )
