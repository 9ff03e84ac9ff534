"""Whether an org can run a project's tests: its login, API versions, Testing Center, agents and definitions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from difflib import get_close_matches
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.changes import compare_contents
from evalmeta.api.doctor.checks import Check, Finding, excerpt, finding_of
from evalmeta.api.org_targets import Target, connect
from evalmeta.api.sync import fetch
from evalmeta.client.metadata import AgentVersion, agent_versions, list_components, names_a_version
from evalmeta.client.runs import cancel_run, check_runs, fetch_run, run_request, start_run
from evalmeta.engine.event_loop import EventLoop
from evalmeta.errors import EvalmetaError, InvalidMetadata, NotFound, OrgFault, ProjectError, Suggestion, WaitRanOut
from evalmeta.model.redaction import error_text
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION, TESTING_DEFINITION
from evalmeta.package.components import content_of
from evalmeta.package.files import shown
from evalmeta.package.folders import find_components
from evalmeta.package.project import SETTINGS_FILE, Project
from evalmeta.protocol.json_fields import list_of_objects, text
from evalmeta.protocol.runs import joined_error
from evalmeta.report.text import and_more, count
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.definition import Definition
    from evalmeta.model.registry import Component, MetadataType
    from evalmeta.model.run import Run


_PRODUCTS: Final = {EVALUATION_DEFINITION: "Testing Center", TESTING_DEFINITION: "Agentforce Studio"}
_SHOWN: Final = 3
# An id that no run has.
_NO_RUN: Final = "0" * 12
# What the REST API says of a resource that does not exist, instead of a record.
_NO_RESOURCE: Final = "requested resource does not exist"
_AGENTS: Final = "/query?q=SELECT+DeveloperName+FROM+BotDefinition"
_ASK: Final = "Ask the agent in the org itself, for example in Agentforce Builder."


def examine_org(project: Project, target: Target | None, *, is_smoke: bool, timeout: float) -> Iterator[Check]:
    """Check an org, and yield the subject and the finding of each check, which may take `timeout` seconds."""
    lines = _examine(project, target, is_smoke=is_smoke) if target else _examine_own(project, is_smoke=is_smoke)
    loop = EventLoop()
    try:
        while line := loop.run(_next(lines, timeout + limits.ORG_CASE_SECONDS * is_smoke)):
            yield line
    finally:
        loop.close()


async def _next(lines: AsyncGenerator[Check], seconds: float) -> Check | None:
    try:
        async with asyncio.timeout(seconds):
            return await anext(lines, None)
    except TimeoutError:
        return Check(
            "org", Finding("error", f"did not answer within {seconds:g} s", "Allow more time: --timeout SECONDS")
        )
    except EvalmetaError as error:
        return Check("org", finding_of(error))


async def _examine(project: Project, target: Target, *, is_smoke: bool) -> AsyncGenerator[Check]:
    async with connect(project, target) as connection:
        org = _Org(connection, project, find_components(project))
        # The first call that needs the session.
        await org.list_names(EVALUATION_DEFINITION)
        kind = ", an org of evalmeta" if connection.is_ours else ""
        yield Check("org", Finding("ok", f"{target.login.name} at {connection.url}{kind}: logged in"))
        yield Check("API version", await _guarded(org.check_version()))
        for product in org.products:
            yield Check(_PRODUCTS[product], await _guarded(org.check_product(product)))
        for line in await _check_agents(connection, [test for _, test in org.tests()]):
            yield line
        yield Check("definitions", await _guarded(org.check_definitions()))
        if connection.is_ours:
            yield Check("runs", await _guarded(org.check_starts()))
        if is_smoke:
            has_tests = any(component.type.is_test for component in org.components)
            deployed = await org.deployed_tests()
            yield Check("smoke", await _guarded(_check_smoke(connection, deployed, has_tests=has_tests)))


async def _examine_own(project: Project, *, is_smoke: bool) -> AsyncGenerator[Check]:
    yield Check("org", Finding("ok", "the embedded org of the project"))
    if not is_smoke:
        return
    components = find_components(project)
    has_tests = any(component.type.is_test for component in components)
    if not has_tests or not project.state_dir.exists():
        yield Check("smoke", _nothing_to_ask(has_tests=has_tests))
        return
    async with connect(project) as connection:
        tests = await _Org(connection, project, components).deployed_tests()
        yield Check("smoke", await _guarded(_check_smoke(connection, tests)))


async def _guarded(work: Coroutine[object, None, Finding]) -> Finding:
    try:
        return await work
    except EvalmetaError as error:
        return finding_of(error)


class _Org:
    """An org, and the components of a project whose tests it is to run."""

    def __init__(self, connection: Connection, project: Project, components: Sequence[Component]) -> None:
        self.connection = connection
        self.project = project
        self.components = components
        self._listed: dict[MetadataType, dict[str, str] | None] = {}

    @property
    def products(self) -> list[MetadataType]:
        """Return the types of tests that the project has and the API version knows, or Testing Center's."""
        used = {component.type for component in self.components if component.type.since <= self.connection.api_version}
        return [kind for kind in _PRODUCTS if kind in used] or [EVALUATION_DEFINITION]

    async def list_names(self, kind: MetadataType) -> dict[str, str] | None:
        """Return the full names in the org by their lower case; None if the org does not know the type."""
        if kind not in self._listed:
            try:
                found = await list_components(self.connection, kind.name)
            except OrgFault as fault:
                if fault.code != "INVALID_TYPE":
                    raise
                self._listed[kind] = None
            else:
                self._listed[kind] = {properties.full_name.casefold(): properties.full_name for properties in found}
        return self._listed[kind]

    async def check_version(self) -> Finding:
        newest, used = await self.connection.newest_version(), self.connection.api_version
        message = f"{used} is used; the org's newest is {newest}, evalmeta's is {NEWEST_API_VERSION}"
        needed = max(
            (component.type for component in self.components),
            key=lambda kind: kind.since,
            default=EVALUATION_DEFINITION,
        )
        if needed.since <= used:
            return Finding("ok", message)
        message = f"{message}; {needed.name} requires {needed.since}"
        if newest < needed.since:
            return Finding("error", message, "Use an org with a newer release.")
        return Finding("error", message, f"Set sourceApiVersion to {needed.since}, or SF_ORG_API_VERSION.")

    async def check_product(self, kind: MetadataType) -> Finding:
        listed, product = await self.list_names(kind), _PRODUCTS[kind]
        action = f"Ask an administrator to turn on Agentforce and {product} in Setup."
        if listed is None:
            return Finding("error", f"off: the org does not know {kind.name}", action)
        try:
            await self.connection.get(f"/einstein/{kind.run_path}/runs/{kind.run_prefix}{_NO_RUN}AAA")
        except (NotFound, OrgFault) as error:
            if _NO_RESOURCE in str(error) and not self.connection.is_ours:
                return Finding("error", f"off: the org has no /einstein/{kind.run_path}", action)
            if isinstance(error, OrgFault) and error.status == HTTPStatus.FORBIDDEN:
                return Finding(
                    "error", f"not allowed: {error_text(error)}", f"Give the user the permissions for {product}."
                )
        return Finding("ok", f"on; the org has {count(len(listed), 'test')}")

    async def check_definitions(self) -> Finding:
        known = [component for component in self.components if await self.list_names(component.type) is not None]
        if self.components and not known:
            return Finding("warning", "not compared, because the org does not know their types")
        missing: list[str] = []
        different: list[str] = []
        for kind in dict.fromkeys(component.type for component in known):
            ours = {component.full_name.casefold(): component for component in known if component.type == kind}
            theirs = await self.list_names(kind) or {}
            fetched = await fetch(self.connection, kind, [theirs[key] for key in ours if key in theirs])
            contents = {component.full_name.casefold(): component.content for component in fetched}
            missing += [component.full_name for key, component in ours.items() if key not in contents]
            different += [
                ours[key].full_name
                for key, content in contents.items()
                if key in ours and _differ(content, ours[key], self.project)
            ]
        total = count(len(self.components), "definition")
        if missing:
            message = f"of {total}, the org does not have {and_more(missing, _SHOWN)}"
            return Finding("warning", message, Suggestion("Deploy it", "deploy"))
        if different:
            message = f"of {total}, the org has another version of {and_more(different, _SHOWN)}"
            return Finding("warning", message, Suggestion("See what differs", "diff"))
        if not self.components:
            return Finding("ok", "the project has none to deploy")
        return Finding("ok", f"{total}, deployed and the same as in the project")

    async def check_starts(self) -> Finding:
        """Let an org of evalmeta say whether the tests could start; nothing is started."""
        tests = [component for component, _ in await self.deployed_tests()]
        requests = [{"type": test.type.name, **run_request(test.full_name, kind=test.type)} for test in tests]
        faults = await check_runs(self.connection, requests)
        if faults:
            return finding_of(joined_error(faults, [test.full_name for test in tests]))
        return Finding("ok", f"{count(len(tests), 'test')} can start")

    async def deployed_tests(self) -> list[tuple[Component, Definition]]:
        """Return the valid tests of the project that the org has."""
        return [
            (component, test)
            for component, test in self.tests()
            if component.full_name.casefold() in (await self.list_names(component.type) or {})
        ]

    def tests(self) -> Iterator[tuple[Component, Definition]]:
        """Yield the valid tests; the check of the tests reports the others."""
        for component in self.components:
            if component.type.is_test:
                with suppress(InvalidMetadata, ProjectError):
                    content = self.project.replacements.content_to_send(component.path)
                    yield component, read_definition(read_xml(content, label=shown(component.path)))


async def _check_agents(connection: Connection, tests: Sequence[Definition]) -> list[Check]:
    """Return a line for each agent of the tests, or one line if the org does not list its agents."""
    tests = [test for test in tests if test.subject_type == "AGENT"]
    names = sorted({test.subject_name for test in tests})
    try:
        reply = await connection.get(_AGENTS) if names else {}
    except EvalmetaError as error:
        action = "Give the user read access to agents (BotDefinition)."
        finding = Finding("warning", f"the org does not list its agents: {error_text(error)}", action)
        return [Check("agents", finding)]
    there = [text(value, "DeveloperName") for value in list_of_objects(reply, "records")]
    return [Check(f"agent {name}", await _check_agent(connection, name, there, tests)) for name in names]


async def _check_agent(connection: Connection, name: str, there: Sequence[str], tests: Sequence[Definition]) -> Finding:
    # Tests name the agent of a package with its namespace.
    known = {agent.casefold(): agent for agent in there}
    own = known.get(name.casefold()) or known.get(name.casefold().rpartition("__")[2])
    if own is None:
        near = get_close_matches(name, there, n=1)
        way = f"Bind it in {SETTINGS_FILE} of the org" if connection.is_ours else "Deploy and publish it first"
        hint = f"Did you mean {near[0]}?" if near else f"{way}, or correct <subjectName>."
        return Finding("error", f"the org has no agent {name}", hint)
    # Orgs of evalmeta know one version, whatever tests name.
    if connection.is_ours:
        return Finding("ok", "the org has it")
    if versions := await agent_versions(connection, own):
        return _judge_versions(own, versions, [test for test in tests if test.subject_name == name])
    return Finding("warning", "the org does not show its versions", "Give the user read access to BotVersion.")


def _judge_versions(agent: str, versions: Sequence[AgentVersion], tests: Sequence[Definition]) -> Finding:
    listed = ", ".join(version.name for version in versions)
    for test in tests:
        named = test.subject_version
        if named and names_a_version(named) and not any(version.is_named(named) for version in versions):
            message = f"{test.name} names {named}; the org has {listed}"
            return Finding("error", message, "Correct <subjectVersion>.")
    newest, active = versions[0], next((version for version in versions if version.is_active), None)
    if active is None:
        action = f"Activate one: sf agent activate --api-name {agent}"
        return Finding("error", f"none of its versions is active: {listed}", action)
    if newest != active:
        # Source: agentforce-test-kit, knowledge/02-known-issues.md, defect D1.
        message = f"{active.name} is active, but {newest.name} is newer; tests may ask {newest.name}"
        return Finding("warning", message, f"Activate the version to test: sf agent activate --api-name {agent}")
    return Finding("ok", f"{active.name} is active; versions: {listed}")


def _nothing_to_ask(*, has_tests: bool) -> Finding:
    """Return the finding if an org has no test of a project; `has_tests` says that the project could deploy some."""
    if has_tests:
        return Finding("warning", "no test of the project is deployed", Suggestion("Deploy them", "deploy"))
    what = "the project has no tests to deploy; only deployed tests are asked"
    return Finding("warning", what, Suggestion("Run test files without an org", "run", "FILE"))


async def _check_smoke(
    connection: Connection, tests: Sequence[tuple[Component, Definition]], *, has_tests: bool = True
) -> Finding:
    """Start the deployed test with the fewest cases, wait for its first answer, and cancel what is left."""
    sizes = [(len(test.test_cases), component) for component, test in tests if test.test_cases]
    if not sizes:
        return _nothing_to_ask(has_tests=has_tests)
    _, component = min(sizes, key=lambda sized: sized[0])
    run = await _run_first_case(connection, component)
    if run is None or not run.cases:
        is_late = run is None or not run.status.is_over
        what = f"no case ended within {limits.ORG_CASE_SECONDS:g} s" if is_late else "the run ended without a result"
        reason = f": {run.error}" if run and run.error else ""
        return Finding("error", f"{component.full_name}: {what}{reason}", _ASK)
    case = run.cases[0]
    where = f"{component.full_name}, case {case.number}"
    if case.error or case.generated is None:
        return Finding("error", f"{where}: {case.error or 'there is no answer'}", _ASK)
    return Finding("ok", f"{where}: answered {excerpt(case.utterance)} with {excerpt(case.generated.outcome)}")


async def _run_first_case(connection: Connection, test: Component) -> Run | None:
    """Return a run when its first case has ended; None if the org said nothing of it in time."""
    run_id = await start_run(connection, test.full_name, kind=test.type)
    latest: Run | None = None

    async def look() -> Run:
        nonlocal latest
        latest = await fetch_run(connection, run_id, definition=test.full_name)
        return latest

    try:
        return await connection.poll(
            look, lambda run: bool(run.cases) or run.status.is_over, job_id=run_id, wait=limits.ORG_CASE_SECONDS
        )
    except WaitRanOut:
        return latest
    finally:
        if latest is None or not latest.status.is_over:
            with suppress(EvalmetaError):
                await cancel_run(connection, run_id)


def _differ(content: bytes, component: Component, project: Project) -> bool:
    ours = content_of(component, read=project.replacements.content_to_send)
    if component.type.is_bundle:
        return content != ours
    found = compare_contents(("the org", content), (shown(component.path), ours))
    return found is not None and not found.is_form_only
