"""Runs of agent tests: create them, extend them, score their answers again, and describe them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import InvalidMetadata, NotFound, OrgFault
from evalmeta.formats.document import Document, Reading
from evalmeta.formats.files import document_once
from evalmeta.formats.registry import all_formats, recognise
from evalmeta.model.evaluation import (
    Case,
    Evaluation,
    Quarantines,
    WorkItem,
    Workload,
    evaluation_of,
    select_cases,
    work_items,
    workload,
)
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, MetadataType, type_of_run
from evalmeta.model.run import CaseResult, ContentKind, Run, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions, Setup, invalid_option
from evalmeta.org import run_files
from evalmeta.org.lease import is_free
from evalmeta.org.readiness import Need, find_faults, needs_of
from evalmeta.org.subjects import rater_settings_of, setup_of
from evalmeta.protocol.runs import RunDefinition, joined_error
from evalmeta.store.judgements import find_check
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.model.json_value import JsonObject
    from evalmeta.org.organization import Organization


# The sf CLI recognises by these words, and by "not found", that the test does not exist.
_IDENTIFIERS: Final = {EVALUATION_DEFINITION: "AiEvalDefinitionVersion", TESTING_DEFINITION: "AiTestingDefinition"}
_DEFAULT_READING: Final = Reading()
_ENDED_EARLY: Final = frozenset({RunStatus.ERROR, RunStatus.TERMINATED})


class PreparedRun(NamedTuple):
    """A run that can be started; `content` is what it stores of its definition or file.

    `answers_of` is the id of the run whose answers it scores; None if it asks the agent.
    """

    kind: MetadataType
    evaluation: Evaluation
    content: RunContent
    options: RunOptions
    answers_of: str | None = None

    @property
    def workload(self) -> Workload:
        """Return what it will do."""
        return workload(self.evaluation, self.options)

    @property
    def needs(self) -> list[Need]:
        """Return what it needs; nothing if it has no cases."""
        if next(select_cases(self.evaluation, self.options), None) is None:
            return []
        recorded = run_files.run_file_of(self.content)
        own = None if recorded is None else recorded.subject
        return needs_of(self.evaluation, self.options, subject=own, asks=self.answers_of is None)


def prepare_run(org: Organization, kind: MetadataType, name: str, options: RunOptions) -> PreparedRun:
    """Return a run of a deployed definition; raise NotFound, or OrgFault if an option is out of range."""
    content = org.components.content(kind.name, name)
    if content is None:
        raise NotFound(f"Invalid {_IDENTIFIERS[kind]} identifier: {name} not found in this org")
    return _prepared(org, kind, name, RunContent(content), options)


def prepare_file_run(
    org: Organization,
    file: str,
    options: RunOptions,
    *,
    subject_name: str,
    subject: JsonObject | None = None,
    reading: Reading = _DEFAULT_READING,
) -> PreparedRun:
    """Return a run of a file that is not deployed, by its path below the project's folder; raise FormatError."""
    if not org.reads_files:
        raise OrgFault("this org runs only deployed definitions, not files", code="INVALID_API_INPUT")
    recorded = run_files.record_file(org.root, file, subject_name=subject_name, subject=subject, reading=reading)
    _check_options(options)
    kind, name = run_files.test_in(file)
    return PreparedRun(kind, run_files.evaluation_in(org.root, recorded, name), recorded.content(), options)


def prepare_received_run(org: Organization, content: bytes, name: str, options: RunOptions) -> PreparedRun:
    """Return a run of a test that a handler received in a format that `Format.read_kept` reads; raise FormatError."""
    return _prepared(org, EVALUATION_DEFINITION, name, RunContent(content, ContentKind.PAYLOAD), options)


def prepared_again(org: Organization, run: Run) -> PreparedRun:
    """Return a run that exists, to check whether it can continue; raise like `prepare_run`."""
    kind, content = type_of_run(run.id) or EVALUATION_DEFINITION, org.runs.content(run.id)
    return _prepared(org, kind, run.definition, content, run.options)._replace(answers_of=run.answers_of)


def _prepared(
    org: Organization, kind: MetadataType, name: str, content: RunContent, options: RunOptions
) -> PreparedRun:
    _check_options(options)
    return PreparedRun(kind, _evaluation_of_content(org, content, name), content, options)


def _check_options(options: RunOptions) -> None:
    if problem := invalid_option(options):
        raise OrgFault(f"runOptions.{problem}", code="INVALID_API_INPUT")


def start_prepared(org: Organization, run: PreparedRun, *, user: User = ADMIN) -> str:
    """Create a run, launch a worker for it, and return its id; raise OrgFault or SettingsError if it cannot start."""
    results, most_iterations = run.workload
    if not results:
        is_empty = next(iter(run.evaluation.cases), None) is None
        what = "no test cases" if is_empty else "none of the selected cases"
        raise OrgFault(f"{run.evaluation.name} has {what}", code="NOTHING_TO_RUN")
    check_needs(org, run)
    _check_room(org, user)
    origin = run.options.origin._replace(project=org.project)
    run_id = org.runs.start(
        run.kind,
        run.evaluation,
        run.content,
        replace(run.options, origin=origin, setup=_setup_of(org, run), most_iterations=most_iterations),
        total=results,
        now=org.runs.next_timestamp(org.database.now()),
        user=user,
        answers_of=run.answers_of,
    )
    org.launch(run_id)
    return run_id


def _setup_of(org: Organization, run: PreparedRun) -> Setup:
    """Return what answers and judges in a new run; recorded answers are those of the agent that gave them."""
    subjects = run_files.subjects_of_run(org.settings().subjects, run.evaluation.subject_name, run.content)
    setup = setup_of(subjects, run.evaluation.subject_name, rater_settings_of(org, run.options), root=org.root)
    check = find_check(org.database.folder, (setup.rater, setup.prompt), run.options.scoring.threshold)
    setup = setup._replace(judge_check=check)
    if run.answers_of is None:
        return setup
    earlier = _run_anywhere(org, run.answers_of)
    before = earlier.options.setup if earlier else Setup()
    return setup._replace(agent=before.agent, agent_version=before.agent_version)


def _check_room(org: Organization, user: User) -> None:
    own, all_runs = org.runs.count_waiting(user) if org.is_served else (0, 0)
    if own >= limits.MAX_WAITING_RUNS_OF_USER or all_runs >= limits.MAX_WAITING_RUNS:
        whose = f"{own:,} runs of yours" if own >= limits.MAX_WAITING_RUNS_OF_USER else f"{all_runs:,} runs"
        message = f"{whose} wait already; try again when some have ended"
        raise OrgFault(message, code="REQUEST_LIMIT_EXCEEDED", status=HTTPStatus.TOO_MANY_REQUESTS)


def check_needs(org: Organization, run: PreparedRun) -> None:
    """Raise one error for all that a run needs and that cannot be used."""
    if faults := find_faults(org, [run.needs]):
        raise joined_error(faults, [run.evaluation.name])


def find_remote_run(org: Organization, run_id: str, url: str) -> Run | None:
    """Return a run of another org that the project saved; None in an org that reads no files of the project."""
    earlier = RemoteRuns(org.database).find(run_id, org_url=url) if url and org.reads_files else []
    return earlier[0].run if earlier else None


def answers_of_run(org: Organization, run_id: str) -> Callable[[int, int], CaseResult | None]:
    """Return a function from an iteration and a case number to the answer in a run, here or in another org."""
    if org.runs.get(run_id) is not None:
        return partial(org.runs.case, run_id)
    saved = _run_anywhere(org, run_id)
    cases = {(case.iteration, case.number): case for case in (saved.cases if saved else ())}
    return lambda iteration, number: cases.get((iteration, number))


def _run_anywhere(org: Organization, run_id: str) -> Run | None:
    """Return a run of this org, or of another one whose results the project saved."""
    return org.runs.get(run_id) or next((saved.run for saved in RemoteRuns(org.database).find(run_id)), None)


def _content(org: Organization, run: Run) -> RunContent:
    """Return the test of a run as it was when the run started, here or in another org."""
    if org.runs.get(run.id) is not None:
        return org.runs.content(run.id)
    saved = RemoteRuns(org.database).find(run.id)
    return RunContent(next((remote.content for remote in saved if remote.content), b""))


def extend_run(org: Organization, run: Run, *, iterations: int, max_cost: float | None = None) -> None:
    """Add iterations to a finished run and launch a worker, which runs only what is missing.

    A run that stopped early, because too many of its cases ended in errors or because of its cost, can keep its number
    of iterations, and so do cases that say their own number. `max_cost` is its new cost limit, None for the one it has;
    a run that is not over gets it too, and follows it if no worker has the run yet. Raise OrgFault if the run is not
    over, has that many iterations already, or scores another run's answers.
    """
    options = run.options if max_cost is None else replace(run.options, max_cost=max_cost)
    _check_options(options)
    if max_cost is not None and not run.status.is_over:
        org.runs.record(run.id, options)
        return
    _check_over(run)
    if run.answers_of is not None:
        message = f"Run {run.id} scores the answers of run {run.answers_of}; extend that run"
        raise OrgFault(message, code="INVALID_STATUS")
    least = run.options.iterations + (run.status is not RunStatus.ERROR)
    if not least <= iterations <= limits.MAX_ITERATIONS:
        possible = f"{least} to {limits.MAX_ITERATIONS}"
        message = f"Run {run.id} can be extended to {possible} iterations, not to {iterations}"
        raise OrgFault(message, code="INVALID_API_INPUT")
    again = prepared_again(org, run)
    check_needs(org, again)
    options = replace(options, iterations=iterations)
    results, most_iterations = again._replace(options=options).workload
    if results <= run.total and run.status is not RunStatus.ERROR:
        message = f"Run {run.id} cannot be extended: each of its cases has its own number of iterations"
        raise OrgFault(message, code="INVALID_API_INPUT")
    if not org.runs.extend(run.id, replace(options, most_iterations=most_iterations), total=results):
        raise OrgFault(f"Run {run.id} is not over", code="INVALID_STATUS")
    org.launch(run.id)


def rescore_run(org: Organization, run: Run, options: RunOptions, *, as_deployed: bool, user: User = ADMIN) -> str:
    """Create a run that scores the answers of a finished run again, launch a worker, and return its id.

    The selection of cases and iterations is the first run's. `as_deployed` uses the definition as it is deployed now,
    if the run was in this org.
    """
    _check_over(run)
    if as_deployed and org.runs.get(run.id) is None:
        message = f"Run {run.id} was in another org; its answers are scored by the definition that it had there"
        raise OrgFault(f"{message}. Leave out --as-deployed", code="INVALID_API_INPUT")
    content = _current_content(org, run) if as_deployed else _content(org, run)
    kind = type_of_run(run.id)
    if content is None or kind is None:
        is_file = run_files.run_file_of(_content(org, run)) is not None
        raise OrgFault(
            f"{run.definition} {'cannot be found' if is_file else 'is no longer deployed'}", code="NOT_FOUND"
        )
    first = run.options
    options = replace(
        options,
        iterations=first.iterations,
        iterations_by=first.iterations_by,
        cases=first.cases,
        shard=first.shard,
        seed=None,
        max_errors=None,
        max_cost=None,
        confirms="",
    )
    again = _prepared(org, kind, run.definition, content, options)
    return start_prepared(org, again._replace(answers_of=run.answers_of or run.id), user=user)


def _check_over(run: Run) -> None:
    if not run.status.is_over:
        raise OrgFault(f"Run {run.id} is not over: its status is {run.status}", code="INVALID_STATUS")


def is_abandoned(org: Organization, run: Run) -> bool:
    """Return whether an unfinished run has no worker: none yet, a dead one, or an expired lease."""
    return not run.status.is_over and is_free(org.runs.lease(run.id), now=org.database.now())


def definition_of_run(org: Organization, run: Run) -> RunDefinition:
    """Return a run's definition as it was and as it is now, and whether the run needs a new worker."""
    current = _current_content(org, run)
    return RunDefinition(org.runs.content(run.id), current and current.data, is_abandoned(org, run))


def _current_content(org: Organization, run: Run) -> RunContent | None:
    """Return the content that a new run would have; None if its definition or file is gone."""
    recorded = run_files.run_file_of(_content(org, run))
    if recorded is not None:
        digest = run_files.current_digest(org.root, recorded)
        return None if digest is None else replace(recorded, digest=digest).content()
    kind = type_of_run(run.id)
    content = None if kind is None else org.components.content(kind.name, run.definition)
    return None if content is None else RunContent(content)


def evaluation_of_run(org: Organization, run: Run) -> Evaluation:
    """Return a run's evaluation as it was when the run was created; raise SettingsError if its file changed."""
    return _evaluation_of_content(org, org.runs.content(run.id), run.definition)


def quarantines_of_run(org: Organization, run: Run) -> Quarantines:
    """Return the quarantines of a run's cases on the day on which the agent was asked."""
    asked = run if run.answers_of is None else _run_anywhere(org, run.answers_of) or run
    kind = type_of_run(run.id) or EVALUATION_DEFINITION
    return org.settings().quarantines_of(run.definition, kind.name, started=asked.started or run.started)


def tags_of_run(org: Organization, run: Run) -> dict[str, frozenset[int] | None]:
    """Return the tags that the project's settings give cases of a run, with the numbers of these cases."""
    return org.settings().tags_of(run.definition, (type_of_run(run.id) or EVALUATION_DEFINITION).name)


def _evaluation_of_content(org: Organization, content: RunContent, name: str) -> Evaluation:
    recorded = run_files.run_file_of(content)
    if recorded is not None:
        return run_files.read_run_file(org.root, recorded, name)
    key = name, content.kind, sha256(content.data).digest()
    return document_once(key, lambda: _read_content(content, name)).evaluation


def _read_content(content: RunContent, name: str) -> Document:
    """Return the test that a run has kept: a definition, or what a handler of another system received."""
    received = recognise(content.data) if content.kind is ContentKind.PAYLOAD else None
    document = all_formats()[received].read_kept(content.data, name=name) if received else None
    return document or Document(read_evaluation(content.data, name))


def read_evaluation(content: bytes, name: str) -> Evaluation:
    """Return the evaluation of a definition."""
    return evaluation_of(read_leniently(read_xml(content, label=name)), name=name)


def placeholders(org: Organization, run: Run) -> tuple[CaseResult, ...]:
    """Return an error for every expectation of cases that ended in an error or, in a run that ended early, never ran.

    Salesforce's clients show nothing of a case without results, and divide by the number of cases.
    """
    errors = [case for case in run.cases if case.verdict is Verdict.ERROR and not case.results]
    ended_early = run.status in _ENDED_EARLY and len(run.cases) < run.total
    if not errors and not ended_early:
        return ()
    try:
        evaluation = evaluation_of_run(org, run)
        cases = {case.number: case for case in select_cases(evaluation, run.options)}
    except InvalidMetadata:
        # The definition cannot be read, which is why the run ended.
        return ()
    if ended_early:
        done = {(case.iteration, case.number) for case in run.cases}
        errors += [_not_run(run, item) for item in work_items(evaluation, replace(run.options, seed=None), done)]
    return tuple(case._replace(results=_errors(cases[case.number], case.error or "")) for case in errors)


def _not_run(run: Run, item: WorkItem) -> CaseResult:
    iteration, case = item
    error = run.error or "the run ended before this case was run"
    ended = run.ended or run.started
    return CaseResult(case.number, iteration, case.turns[-1].utterance, Verdict.ERROR, run.started, ended, error=error)


def _errors(case: Case, error: str) -> tuple[TestResult, ...]:
    return tuple(
        TestResult(
            expectation.name,
            Verdict.ERROR,
            expected=expectation.expected_value or "",
            label=expectation.label,
            error=error,
        )
        for turn in case.turns
        for expectation in turn.expectations
    )
