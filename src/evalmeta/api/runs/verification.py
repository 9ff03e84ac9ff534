"""Checking the runs of Salesforce's orgs: what they ran, what evalmeta's rules say, and which version was asked."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.changes import DefinitionChanged
from evalmeta.api.sync import fetch
from evalmeta.client.metadata import AgentVersion, agent_versions, names_a_version
from evalmeta.errors import EvalmetaError, NotFound
from evalmeta.model.evaluation import Evaluation, evaluation_of
from evalmeta.model.expectations import ACTIONS, parse_actions
from evalmeta.model.fingerprints import checks_of
from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType, type_of_run
from evalmeta.model.run import Doubt, Run
from evalmeta.org.subjects import rater_settings
from evalmeta.protocol.json_fields import from_timestamp
from evalmeta.store.database import open_database
from evalmeta.store.judgements import Ratings
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.engine.interfaces import Exchange, Rater, Scored, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run_options import Deciding, RunOptions, Scoring, ScoringProfile
    from evalmeta.package.project import Project

_EARLIER_RUNS: Final = 4


class Checking(NamedTuple):
    """How the verdicts of a Salesforce org are checked.

    Attributes:
        verifies: whether evalmeta's rules judge the answers too.
        decides: whose verdicts count; None leaves it to the options of the run.
        profile: the profile that was chosen for evalmeta's rules; None for that of the org.
        case_timeout: the chosen time limit in seconds until another case ends; None for that of orgs.
    """

    verifies: bool = True
    decides: Deciding | None = None
    profile: ScoringProfile | None = None
    case_timeout: float | None = None

    def options(self, options: RunOptions, kind: MetadataType | None) -> RunOptions:
        """Return the options of a run of a type; its rules judge as its org does, so that only defects differ."""
        is_testing_center = kind in {None, EVALUATION_DEFINITION}
        profile = self.profile or ("testing-center" if is_testing_center else options.scoring.profile)
        return replace(
            options,
            scoring=replace(options.scoring, profile=profile),
            case_timeout=limits.ORG_CASE_SECONDS if self.case_timeout is None else self.case_timeout,
        )


async def check_run(connection: Connection, project: Project, remote: RemoteRun) -> RemoteRun:
    """Return a run with evalmeta's verdicts beside the org's, and with its doubts; never raise an EvalmetaError.

    What prevents a check is a doubt too. The definition is retrieved from the org, because that is what it ran.
    """
    try:
        remote = await with_definition(connection, remote)
        definition = read_leniently(read_xml(remote.content or b"", label=remote.run.definition))
        evaluation = evaluation_of(definition, name=remote.run.definition)
        with open_remote_runs(project.store) as runs:
            earlier = [saved.run for saved in runs.same(remote, limit=_EARLIER_RUNS)]
        run = await _judged(project, with_checks(replace(remote.run, doubts=()), evaluation), evaluation, earlier)
    except EvalmetaError as error:
        from evalmeta.engine.verification import without_own_verdicts

        doubt = Doubt("not-checked", f"the verdicts of the org were not checked: {error}")
        cases = tuple(without_own_verdicts(case, doubt.text) for case in remote.run.cases)
        return replace(remote, run=replace(remote.run, cases=cases, doubts=(doubt,)))
    # In results, an org names the definition as the subject.
    run = replace(run, subject_name=evaluation.subject_name or run.subject_name)
    versions = await agent_versions(connection, evaluation.subject_name)
    doubts = _version_doubts(evaluation, versions) if run.subject_version is None else ()
    return replace(remote, run=replace(run, doubts=(*doubts, *run.doubts)))


def with_checks(run: Run, evaluation: Evaluation) -> Run:
    """Return a run of an org whose case results have the fingerprints of what its definition expects."""
    checks = {case.number: checks_of(case) for case in evaluation.cases}
    return replace(run, cases=tuple(case._replace(checks=checks.get(case.number, "")) for case in run.cases))


async def with_subject(connection: Connection, remote: RemoteRun) -> RemoteRun:
    """Return a run with the name of its subject, which results of Agentforce Studio do not contain.

    It is that of the definition in the org; without one, the run is returned as it is.
    """
    if remote.run.subject_name:
        return remote
    try:
        found = await with_definition(connection, remote)
        definition = read_leniently(read_xml(found.content or b"", label=found.run.definition))
    except EvalmetaError:
        return remote
    return replace(found, run=replace(found.run, subject_name=definition.subject_name))


async def with_definition(connection: Connection, remote: RemoteRun) -> RemoteRun:
    """Return a run with its definition, which is retrieved from the org if it was not yet."""
    run = remote.run
    if remote.content is not None:
        return remote
    kind = type_of_run(run.id) or EVALUATION_DEFINITION
    for fetched in await fetch(connection, kind, [run.definition] if run.definition else []):
        if fetched.full_name == run.definition:
            if run.started and (from_timestamp(fetched.modified) or 0.0) > run.started:
                raise DefinitionChanged(run.id)
            return replace(remote, content=fetched.content)
    raise NotFound(f"the org does not return the definition {run.definition!r}")


async def _judged(project: Project, run: Run, evaluation: Evaluation, earlier: Sequence[Run]) -> Run:
    from evalmeta.engine.verification import verify

    async with _rater_of(project, run.options) as rater:
        return await verify(run, evaluation, _checking_scorers(run.options.scoring, rater), earlier=earlier)


async def check_rater(project: Project, options: RunOptions) -> None:
    """Raise SettingsError if the rater that shall check a run cannot be used."""
    async with _rater_of(project, options):
        pass


@asynccontextmanager
async def _rater_of(project: Project, options: RunOptions) -> AsyncIterator[Rater]:
    from evalmeta.engine.case_run import close
    from evalmeta.engine.project_code import functions_of
    from evalmeta.engine.raters import bind_rater

    settings = rater_settings(project.settings.raters, options.scoring.rater, root=project.root)
    with open_database(project.store) as database, functions_of(project.root):
        rater = bind_rater(settings, root=project.root, cache=Ratings(database))
        try:
            yield rater
        finally:
            await close(rater)


def _checking_scorers(scoring: Scoring, rater: Rater) -> Mapping[str, Scorer]:
    """Return the scorers of a check: unlike an org, it fails `[]` if the agent took an action."""
    from evalmeta.engine.scorers import make_scorers
    from evalmeta.engine.scorers.actions import action_scorer

    scorers, exact = make_scorers(scoring, rater), action_scorer("exact")
    if scoring.actions is not None:
        return scorers
    lenient = scorers[ACTIONS]

    def score(expectation: Expectation, exchange: Exchange) -> Scored:
        is_empty = parse_actions(expectation.expected_value or "") == ()
        return exact(expectation, exchange) if is_empty else lenient(expectation, exchange)

    return {**scorers, ACTIONS: score}


def _version_doubts(evaluation: Evaluation, versions: Sequence[AgentVersion]) -> Iterator[Doubt]:
    """Yield why the tested version may not be the one that users reach; Salesforce's results do not name it."""
    if not versions:
        return
    agent, named, newest = evaluation.subject_name, evaluation.subject_version, versions[0]
    active = next((version for version in versions if version.is_active), None)
    unknown = "the org does not report which version it asked"
    if active is None:
        yield Doubt("agent-version", f"{agent} has no active version, so users reach none of it; {unknown}")
    elif named and names_a_version(named) and not active.is_named(named):
        yield Doubt("agent-version", f"the definition names {named} of {agent}, but {active.name} is active; {unknown}")
    elif newest is not active:
        text = f"{newest.name} of {agent} is the newest version, but users reach {active.name}, the active one"
        yield Doubt("agent-version", f"{text}; {unknown}")
