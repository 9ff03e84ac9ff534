"""Runs that go on from earlier ones: more iterations of a run, and its answers judged again."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.model.registry import type_of_run
from evalmeta.model.user import ADMIN
from evalmeta.org.bindings import check_subject
from evalmeta.org.evaluations import (
    check_options,
    count_results,
    evaluation_of_content,
    evaluation_of_run,
    is_abandoned,
)
from evalmeta.org.files import digest_now, file_of

if TYPE_CHECKING:
    from evalmeta.model.run import Run, RunOptions
    from evalmeta.model.user import User
    from evalmeta.org.files import FileOfRun
    from evalmeta.org.organization import Organization

__all__ = ["DefinitionOfRun", "extend", "look_at_definition", "rescore"]


class DefinitionOfRun(NamedTuple):
    """What a run asks, and what it would ask if it began now; `now` is None when that is deployed no more."""

    then: bytes
    now: bytes | None
    is_abandoned: bool


def look_at_definition(org: Organization, run: Run) -> DefinitionOfRun:
    """Gives a run's definition as it was and as it is now, and whether the run needs a new worker."""
    return DefinitionOfRun(org.runs.content(run.id), _deployed(org, run), is_abandoned(org, run))


def extend(org: Organization, run: Run, *, iterations: int) -> None:
    """Gives a run that is over more iterations and a worker; only the new ones are asked.

    Raises:
        OrgFault: it is not over, has as many iterations already, or judges another run's answers.
        SubjectNotBound: its subject has no adapter now.
        SettingsError: the adapter, or the rater, cannot be used now.
    """
    if not run.status.is_over:
        raise OrgFault(f"Run {run.id} is not over: it is {run.status}", code="INVALID_STATUS")
    if run.answers_of is not None:
        raise OrgFault(f"Run {run.id} judges the answers of {run.answers_of}; extend that one", code="INVALID_STATUS")
    if not run.options.iterations < iterations <= limits.MAX_ITERATIONS:
        possible = f"{run.options.iterations + 1} to {limits.MAX_ITERATIONS}"
        message = f"Run {run.id} can be extended to {possible} iterations, not to {iterations}"
        raise OrgFault(message, code="INVALID_API_INPUT")
    check_options(org, run.options)
    check_subject(org, evaluation_of_run(org, run), org.runs.content(run.id))
    total = run.total // run.options.iterations * iterations
    if not org.runs.extend(run.id, replace(run.options, iterations=iterations), total=total):
        raise OrgFault(f"Run {run.id} is not over", code="INVALID_STATUS")
    org.launch(run.id)


def rescore(org: Organization, run: Run, options: RunOptions, *, as_deployed: bool, user: User = ADMIN) -> str:
    """Makes a run that judges the answers of one that is over again, gives it a worker and returns its id.

    Args:
        org: whose runs they are.
        run: the run whose answers are judged.
        options: how to judge; how and what the other run asked, and when to stop, does not matter.
        as_deployed: judge by the definition as it is deployed now, not as it was.
        user: whose run it is.

    Raises:
        OrgFault: the run is not over; the definition is deployed no more, or without the cases that were
            asked; or an option is beyond its limit.
    """
    if not run.status.is_over:
        raise OrgFault(f"Run {run.id} is not over: it is {run.status}", code="INVALID_STATUS")
    content = _deployed(org, run) if as_deployed else org.runs.content(run.id)
    kind = type_of_run(run.id)
    if content is None or kind is None:
        what = "deployed" if file_of(org.runs.content(run.id)) is None else "there"
        raise OrgFault(f"{run.definition} is not {what} any more", code="NOT_FOUND")
    asked = run.options
    options = replace(
        options, iterations=asked.iterations, cases=asked.cases, shard=asked.shard, seed=None, max_errors=None
    )
    check_options(org, options)
    evaluation = evaluation_of_content(org, content, run.definition)
    total = count_results(evaluation, options)
    run_id = org.runs.start(
        kind, evaluation, content, options, total=total, now=time.time(), user=user, answers_of=run.answers_of or run.id
    )
    org.launch(run_id)
    return run_id


def _deployed(org: Organization, run: Run) -> bytes | None:
    kept = file_of(org.runs.content(run.id))
    if kept is not None:
        return _as_it_is(org, kept)
    kind = type_of_run(run.id)
    return None if kind is None else org.components.content(kind.name, run.definition)


def _as_it_is(org: Organization, kept: FileOfRun) -> bytes | None:
    digest = digest_now(org.root, kept)
    return None if digest is None else replace(kept, digest=digest).content()
