"""Runs of deployed definitions: started, carried out by one worker at a time, picked up when it dies.

Runs that go on from earlier ones: more iterations of a run, and its answers judged again.

What clients that show every case and every expectation are told of those that never had a result.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.plan import select_cases
from evalmeta.engine.reasons import reason
from evalmeta.errors import InvalidMetadata, NotFound, OrgFault, StoreError
from evalmeta.formats.document import Reading
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, type_of_run
from evalmeta.model.run import CaseResult, RunStatus, TestResult, Verdict
from evalmeta.org.lease import is_free, keep_lease, new_worker
from evalmeta.org.run_files import digest_now, file_of, keep_file, read_file_of_run
from evalmeta.org.subjects import check_subject, rater_of, rater_settings_of, subject_of_run
from evalmeta.store.runs import RunJournal
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Run, RunOptions
    from evalmeta.org.organization import Organization
    from evalmeta.org.run_files import FileOfRun


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
    from evalmeta.engine.scorers.registry import make_scorers  # noqa: PLC0415 - likewise

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
    total = sum(1 for _ in select_cases(evaluation, options)) * options.iterations
    if not total:
        raise OrgFault(f"no case of {evaluation.name} is among those that were chosen", code="NOTHING_TO_RUN")
    return total


def read_evaluation(content: bytes, name: str) -> Evaluation:
    """Gives what a definition asks."""
    return evaluation_of(read_leniently(read_xml(content, label=name)), name=name)


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


_ENDED_EARLY: Final = frozenset({RunStatus.ERROR, RunStatus.TERMINATED})


def stand_ins(org: Organization, run: Run) -> tuple[CaseResult, ...]:
    """Gives, for broken cases and for those that a run which ended early never asked, an error for every expectation.

    Salesforce's clients show nothing of a case without results, and divide by the number of cases.
    """
    broken = [each for each in run.cases if each.verdict is Verdict.ERROR and not each.results]
    ended_early = run.status in _ENDED_EARLY and len(run.cases) < run.total
    if not broken and not ended_early:
        return ()
    try:
        cases = {case.number: case for case in select_cases(evaluation_of_run(org, run), run.options)}
    except InvalidMetadata:
        # It is what broke the run.
        return ()
    if ended_early:
        done = {(each.iteration, each.number) for each in run.cases}
        every = ((iteration, case) for iteration in range(1, run.options.iterations + 1) for case in cases.values())
        broken += [
            _never_asked(run, case, iteration) for iteration, case in every if (iteration, case.number) not in done
        ]
    return tuple(replace(each, results=_errors(cases[each.number], each.error or "")) for each in broken)


def _never_asked(run: Run, case: Case, iteration: int) -> CaseResult:
    error = run.error or "the run ended before this case was asked"
    utterance = case.turns[-1].utterance
    return CaseResult(
        case.number, iteration, utterance, Verdict.ERROR, run.started, run.ended or run.started, error=error
    )


def _errors(case: Case, error: str) -> tuple[TestResult, ...]:
    return tuple(
        TestResult(each.name, Verdict.ERROR, expected=each.expected_value or "", label=each.label, error=error)
        for turn in case.turns
        for each in turn.expectations
    )
