"""Whether an org can run a project's tests: its login, API versions, Testing Center, agents and definitions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta import limits
from evalmeta.api.changes import compare_contents
from evalmeta.api.doctor_checks import Finding, finding_of
from evalmeta.api.org_agents import check_agents
from evalmeta.api.org_smoke import check_smoke, nothing_to_ask
from evalmeta.api.org_targets import connect
from evalmeta.api.sync import fetch
from evalmeta.client.metadata import list_components
from evalmeta.client.runs import check_runs, run_request
from evalmeta.engine.event_loop import EventLoop
from evalmeta.errors import EvalmetaError, InvalidMetadata, NotFound, OrgFault, Suggestion
from evalmeta.model.redaction import error_text
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION, TESTING_DEFINITION
from evalmeta.package.files import read_file, shown
from evalmeta.package.resolver import find_components
from evalmeta.protocol.run_faults import joined_error
from evalmeta.report.text import count
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence

    from evalmeta.api.org_targets import Target
    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component
    from evalmeta.model.definition import Definition
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project

Line: TypeAlias = "tuple[str, Finding]"

_PRODUCTS: Final = {EVALUATION_DEFINITION: "Testing Center", TESTING_DEFINITION: "Agentforce Studio"}
_SHOWN: Final = 3
# An id that no run has.
_NO_RUN: Final = "0" * 12
# What the REST API says of a resource that does not exist, instead of a record.
_NO_RESOURCE: Final = "requested resource does not exist"


def examine_org(project: Project, target: Target | None, *, is_smoke: bool, timeout: float) -> Iterator[Line]:
    """Check an org, and yield the subject and the finding of each check when it is known.

    Args:
        project: the project with the tests; only a smoke run in the embedded org is saved in it.
        target: the org; None is the embedded one.
        is_smoke: start the test with the fewest cases, and cancel it after the first answer.
        timeout: the time limit of each check, in seconds.
    """
    lines = _examine(project, target, is_smoke=is_smoke) if target else _examine_own(project, is_smoke=is_smoke)
    loop = EventLoop()
    try:
        while line := loop.run(_next(lines, timeout + limits.ORG_CASE_SECONDS * is_smoke)):
            yield line
    finally:
        loop.close()


async def _next(lines: AsyncGenerator[Line], seconds: float) -> Line | None:
    try:
        async with asyncio.timeout(seconds):
            return await anext(lines, None)
    except TimeoutError:
        return "org", Finding("error", f"did not answer within {seconds:g} s", "Allow more time: --timeout SECONDS")
    except EvalmetaError as error:
        return "org", finding_of(error)


async def _examine(project: Project, target: Target, *, is_smoke: bool) -> AsyncGenerator[Line]:
    async with connect(project, target) as connection:
        org = _Org(connection, find_components(project))
        # The first call that needs the session.
        await org.list_names(EVALUATION_DEFINITION)
        kind = ", an org of evalmeta" if connection.is_ours else ""
        yield "org", Finding("ok", f"{target.login.name} at {connection.url}{kind}: logged in")
        yield "API version", await _guarded(org.check_version())
        for product in org.products:
            yield _PRODUCTS[product], await _guarded(org.check_product(product))
        for line in await check_agents(connection, [test for _, test in org.tests()]):
            yield line
        yield "definitions", await _guarded(org.check_definitions())
        if connection.is_ours:
            yield "runs", await _guarded(org.check_starts())
        if is_smoke:
            has_tests = any(component.type.is_test for component in org.components)
            deployed = await org.deployed_tests()
            yield "smoke", await _guarded(check_smoke(connection, deployed, has_tests=has_tests))


async def _examine_own(project: Project, *, is_smoke: bool) -> AsyncGenerator[Line]:
    yield "org", Finding("ok", "the embedded org of the project")
    if not is_smoke:
        return
    components = find_components(project)
    has_tests = any(component.type.is_test for component in components)
    if not has_tests or not project.state_dir.exists():
        yield "smoke", nothing_to_ask(has_tests=has_tests)
        return
    async with connect(project) as connection:
        tests = await _Org(connection, components).deployed_tests()
        yield "smoke", await _guarded(check_smoke(connection, tests))


async def _guarded(work: Coroutine[object, None, Finding]) -> Finding:
    try:
        return await work
    except EvalmetaError as error:
        return finding_of(error)


class _Org:
    """An org, and the components of a project whose tests it is to run."""

    def __init__(self, connection: Connection, components: Sequence[Component]) -> None:
        self.connection = connection
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
        for kind in dict.fromkeys(each.type for each in known):
            ours = {each.full_name.casefold(): each for each in known if each.type == kind}
            theirs = await self.list_names(kind) or {}
            fetched = await fetch(self.connection, kind, [theirs[key] for key in ours if key in theirs])
            contents = {each.full_name.casefold(): each.content for each in fetched}
            missing += [each.full_name for key, each in ours.items() if key not in contents]
            different += [
                ours[key].full_name for key, content in contents.items() if key in ours and _differ(content, ours[key])
            ]
        total = count(len(self.components), "definition")
        if missing:
            message = f"of {total}, the org does not have {_some(missing)}"
            return Finding("warning", message, Suggestion("Deploy it", "deploy"))
        if different:
            message = f"of {total}, the org has another version of {_some(different)}"
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
                with suppress(InvalidMetadata):
                    yield component, read_definition(read_xml(read_file(component.path), label=shown(component.path)))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _differ(content: bytes, component: Component) -> bool:
    found = compare_contents(("the org", content), (shown(component.path), read_file(component.path)))
    return found is not None and not found.is_form_only
