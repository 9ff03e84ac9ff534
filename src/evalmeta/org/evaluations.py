"""Runs of deployed definitions: started, carried out by one worker at a time, picked up when it dies."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.plan import choose
from evalmeta.engine.reasons import reason
from evalmeta.errors import NotFound, OrgFault, StoreError
from evalmeta.interop.reading import Reading
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.model.user import ADMIN
from evalmeta.org.bindings import check_subject, rater_of, rater_settings_of, subject_of_run
from evalmeta.org.files import file_of, keep_file, read_file_of_run
from evalmeta.org.leases import is_free, keep_lease, new_worker
from evalmeta.store.runs import RunJournal
from evalmeta.xmlio.reader import read_xml
from evalmeta.xmlio.sketch import sketch_definition

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Run, RunOptions
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization

__all__ = [
    "check_options",
    "count_results",
    "evaluation_of_content",
    "evaluation_of_run",
    "fault_of",
    "is_abandoned",
    "read_evaluation",
    "start",
    "start_file",
    "work",
]

# The sf CLI tells by these words, and by "not found", that there is no such test.
_IDENTIFIERS: Final = {EVALUATION_DEFINITION: "AiEvalDefinitionVersion", TESTING_DEFINITION: "AiTestingDefinition"}


def start(org: Organization, kind: MetadataType, name: str, options: RunOptions, *, user: User = ADMIN) -> str:
    """Makes a user's run of a deployed definition, gives it a worker, and returns its id.

    Raises:
        NotFound: no such definition is deployed.
        SubjectNotBound: its subject has no adapter.
        SettingsError: its adapter cannot be used.
        OrgFault: an option is beyond its limit.
    """
    content = org.components.content(kind.name, name)
    if content is None:
        raise NotFound(f"Invalid {_IDENTIFIERS[kind]} identifier: {name} not found in this org")
    return _begin(org, kind, name, content, options, user)


def start_file(
    org: Organization,
    file: str,
    options: RunOptions,
    *,
    subject_name: str,
    subject: JsonObject | None = None,
    reading: Reading = Reading(),  # noqa: B008 - immutable
) -> str:
    """Makes a run of a file that is not deployed, gives it a worker, and returns its id.

    Args:
        org: the project's own org, embedded.
        file: the file, from the project's folder on.
        options: how to run it.
        subject_name: what the agent is called.
        subject: the agent's settings; None when the project binds it by its name.
        reading: what the project says of such files.

    Raises:
        OrgFault: the org is served to others, and reads no files for them; or an option is beyond its limit.
        NotFound: there is no such file.
        FormatError: it cannot be read.
        SubjectNotBound: its subject has no adapter.
        SettingsError: its adapter cannot be used.
    """
    if not org.reads_files:
        raise OrgFault("this org runs what is deployed, no files", code="INVALID_API_INPUT")
    kept = keep_file(org.root, file, subject_name=subject_name, subject=subject, reading=reading)
    return _begin(org, EVALUATION_DEFINITION, file, kept.content(), options, ADMIN)


def _begin(org: Organization, kind: MetadataType, name: str, content: bytes, options: RunOptions, user: User) -> str:
    check_options(org, options)
    evaluation = evaluation_of_content(org, content, name)
    check_subject(org, evaluation, content)
    total = count_results(evaluation, options)
    run_id = org.runs.start(kind, evaluation, content, options, total=total, now=time.time(), user=user)
    org.launch(run_id)
    return run_id


async def work(org: Organization, run_id: str) -> None:
    """Carries a run to its end, beginning with what is missing; does nothing if another worker has it.

    Cancelled, or when the database cannot be used, it keeps what is done and gives the run
    back. Whatever else stops it ends the run as ERROR; a run that another worker took, or
    that was canceled, is left as it is.

    Raises:
        StoreError: the database cannot be used: it is held by another program too long, full, or broken.
    """
    run = org.runs.get(run_id)
    worker = new_worker()
    if run is None or not _claim(org, run_id, worker):
        return
    # It may have ended, and been extended, before it was claimed.
    run = org.runs.get(run_id) or run
    try:
        with keep_lease(org.database.path.parent, run_id, worker):
            await _carry_out(org, run, RunJournal(org.database, run_id, worker))
    except (asyncio.CancelledError, StoreError) as stop:
        if _give_back(org, run_id, worker) or isinstance(stop, asyncio.CancelledError):
            raise
        return
    except Exception as error:  # noqa: BLE001 - given back, a run that breaks would break its next worker too
        org.runs.finish(run_id, worker, RunStatus.ERROR, error=reason(error), now=time.time())
        return
    org.runs.finish(run_id, worker, RunStatus.COMPLETED, error=None, now=time.time())


def _give_back(org: Organization, run_id: str, worker: str) -> bool:
    """Gives a run back and tells whether it was the worker's."""
    try:
        return org.runs.release(run_id, worker)
    except StoreError:
        # It is free all the same as soon as its worker has ended.
        return True


async def _carry_out(org: Organization, run: Run, journal: RunJournal) -> None:
    from evalmeta.engine.runner import execute, rescore  # noqa: PLC0415 - 85 ms, which only a worker needs
    from evalmeta.engine.scorer import make_scorers  # noqa: PLC0415 - likewise

    content, options = org.runs.content(run.id), run.options
    evaluation = evaluation_of_content(org, content, run.definition)
    async with rater_of(org, options) as rater:
        scorers = make_scorers(options.scoring, rater)
        if run.answers_of is None:
            subject = subject_of_run(org, run.subject_name, content)
            await execute(evaluation, subject, journal, options=options, scorers=scorers)
        else:
            answers = partial(org.runs.case, run.answers_of)
            await rescore(evaluation, answers, journal, options=options, scorers=scorers)


def evaluation_of_run(org: Organization, run: Run) -> Evaluation:
    """Gives what a run asks: its definition, or file, as it was when the run was made.

    Raises:
        SettingsError: the file has changed, or is gone.
    """
    return evaluation_of_content(org, org.runs.content(run.id), run.definition)


def evaluation_of_content(org: Organization, content: bytes, name: str) -> Evaluation:
    """Gives what a run asks whose content is a definition, or stands for a file; raises like `evaluation_of_run`."""
    kept = file_of(content)
    return read_evaluation(content, name) if kept is None else read_file_of_run(org.root, kept, name)


def is_abandoned(org: Organization, run: Run) -> bool:
    """Tells whether an unfinished run has no worker: none yet, a dead one, or another machine's lease that ran out."""
    return not run.status.is_over and is_free(org.runs.lease(run.id))


def _claim(org: Organization, run_id: str, worker: str) -> bool:
    lease = org.runs.lease(run_id)
    until = time.time() + limits.RUN_LEASE_SECONDS
    return is_free(lease) and org.runs.claim(run_id, worker, taken_from=lease, until=until)


def check_options(org: Organization, options: RunOptions) -> None:
    """Makes sure that a run can have these options.

    Raises:
        OrgFault: one is beyond its limit.
        SettingsError: no rater of that name is bound.
    """
    if fault := fault_of(options):
        raise OrgFault(f"runOptions.{fault}", code="INVALID_API_INPUT")
    rater_settings_of(org, options)


def fault_of(options: RunOptions) -> str | None:
    """Says which option is beyond its limit, by its name in `runOptions`; None when all are well."""
    bounds: dict[str, tuple[float | None, float, float]] = {
        "iterations": (options.iterations, 1, limits.MAX_ITERATIONS),
        "minPassRate": (options.min_pass_rate, 0, 1),
        "concurrency": (options.concurrency, 1, limits.MAX_CONCURRENCY),
        "caseTimeoutSeconds": (options.case_timeout, 0, limits.MAX_CASE_TIMEOUT_SECONDS),
        "rateLimit": (options.rate_limit, 1e-6, limits.MAX_RATE),
        "retries": (options.retries, 0, limits.MAX_RETRIES),
        "maxErrors": (options.max_errors, 1, limits.MAX_INTEGER),
        "seed": (options.seed, -limits.MAX_INTEGER, limits.MAX_INTEGER),
        "shard": (options.shard and options.shard[0], 1, options.shard[1] if options.shard else 1),
        "scoring.threshold": (options.scoring.threshold, 0, 5),
    }
    for name, (value, least, most) in bounds.items():
        if value is not None and not least <= value <= most:
            return f"{name} is {value}; {least} to {most:g} are allowed"
    return None


def count_results(evaluation: Evaluation, options: RunOptions) -> int:
    """Counts the case results that a run will have.

    Raises:
        OrgFault: it would have none.
    """
    total = sum(1 for _ in choose(evaluation, options)) * options.iterations
    if not total:
        raise OrgFault(f"no case of {evaluation.name} is among those that were chosen", code="NOTHING_TO_RUN")
    return total


def read_evaluation(content: bytes, name: str) -> Evaluation:
    """Gives what a definition asks."""
    return evaluation_of(sketch_definition(read_xml(content, label=name)), name=name)
