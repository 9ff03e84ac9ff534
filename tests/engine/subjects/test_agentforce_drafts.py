"""Drafts of agents, which an org compiles and previews; the org is one of evalmeta."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import httpx
import pytest
from pydantic import ValidationError

from evalmeta.engine.interfaces import PreparedSubject
from evalmeta.engine.redaction import with_redaction
from evalmeta.engine.subjects.agentforce import AgentforceSubject, bind_agentforce
from evalmeta.engine.subjects.agentforce_drafts import read_bundle
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectRefused
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.login import SignedIn
from evalmeta.org.app import create_app
from evalmeta.package.settings import load_settings
from org.parts import opened_with
from systems.agent_script.previews import NAMED, RULES
from systems.agent_script.projects import write_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.org.organization import Organization

URL = "https://desk.my.salesforce.com"
CUSTOMER = (ContextVariable("$Context.CustomerId", "C1"),)


class Network(httpx.AsyncBaseTransport):
    """Sends requests to an org, and keeps them.

    Attributes:
        broken: the replies to the next requests, which do not reach the org.
    """

    def __init__(self, org: Organization) -> None:
        self._org = httpx.ASGITransport(create_app(org))
        self.requests: list[httpx.Request] = []
        self.broken: list[httpx.Response] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.broken:
            return self.broken.pop(0)
        return await self._org.handle_async_request(request)

    def paths(self) -> list[str]:
        """Return the requests below the API, with the names of sessions and plans left out."""
        names = (request.url.path.removeprefix("/einstein/ai-agent/v1.1/") for request in self.requests)
        kinds = ("scripts", "sessions", "messages", "plans")
        return [next((kind for kind in reversed(kinds) if kind in name.split("/")), name) for name in names]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_project(tmp_path, script=NAMED, rules=RULES)
    (tmp_path / "evalmeta.toml").write_text("")
    return tmp_path


@pytest.fixture
def org(folder: Path) -> Iterator[Organization]:
    with opened_with(folder, lambda: load_settings(folder / "evalmeta.toml"), is_served=True) as opened:
        yield opened


@pytest.fixture
def network(org: Organization) -> Network:
    return Network(org)


def settings(**given: object) -> AgentforceSubject:
    chosen = {
        "adapter": "agentforce",
        "authoring_bundle": "Bike_Shop",
        "org": "dev",
        "url": f"{URL}/einstein/ai-agent/v1",
    }
    return AgentforceSubject.model_validate(chosen | given)


def bound(folder: Path, org: Organization, network: Network, **given: object) -> Subject:
    async def sign_in(_: str, *, instead_of: str = "") -> SignedIn:
        assert not instead_of
        return SignedIn(URL, org.token)

    chosen = settings(**given)
    bundle = read_bundle(folder, chosen.authoring_bundle)
    return bind_agentforce(chosen, bundle, sign_in=sign_in, transport=network)


def converse(subject: Subject, *utterances: str, cases: int = 1, **given: object) -> list[GeneratedData]:
    """Return the answers in one conversation for each case, which are held at the same time."""
    values = {"context_variables": CUSTOMER, **given}
    case = Case(1, tuple(Turn(utterance, ()) for utterance in utterances), **values)  # type: ignore[arg-type]

    async def hold() -> list[GeneratedData]:
        session = await subject.open(case)
        try:
            return [await session.ask(utterance) for utterance in utterances]
        finally:
            await session.close()

    async def go() -> list[GeneratedData]:
        try:
            held = await asyncio.gather(*(hold() for _ in range(cases)))
        finally:
            await subject.close()
        return [answer for answers in held for answer in answers]

    return asyncio.run(go())


def test_an_answer_has_topic_actions_and_transitions(folder: Path, org: Organization, network: Network) -> None:
    [answer] = converse(bound(folder, org, network), "Repair 7?")
    assert (answer.outcome, answer.topic, answer.handoffs) == ("It costs 120.", "repairs", ("repairs",))
    assert [(action.name, action.input) for action in answer.actions or ()] == [
        ("check_customer", {"id": "C1"}),
        ("find_ticket", {"number": "7", "detail": True}),
        ("notify", {"text": "ticket ready"}),
    ]
    named_user, compiled, started, *_ = network.requests
    assert (named_user.url.path, named_user.headers["cookie"]) == (
        "/agentforce/bootstrap/nameduser",
        f"sid={org.token}",
    )
    assert compiled.headers["authorization"].startswith("Bearer eyJ")
    assert network.paths()[1:] == ["scripts", "sessions", "messages", "plans", "sessions"]
    assert json.loads(started.content)["bypassUser"] is True


def test_a_person_who_takes_over_is_a_handoff(folder: Path, org: Organization, network: Network) -> None:
    [answer] = converse(bound(folder, org, network), "A person, please")
    assert answer.handoffs == ("human",)


def test_without_plans_nothing_is_known_but_the_answer(folder: Path, org: Organization, network: Network) -> None:
    [answer] = converse(bound(folder, org, network, traces=False), "7")
    assert (answer.outcome, answer.topic, answer.actions, answer.handoffs) == ("It costs 120.", None, None, None)


def test_all_sessions_share_what_was_compiled(folder: Path, org: Organization, network: Network) -> None:
    assert len(converse(bound(folder, org, network), "7", cases=3)) == 3
    assert network.paths().count("scripts") == 1


def test_the_users_messages_of_a_history_are_sent_first(folder: Path, org: Organization, network: Network) -> None:
    history = (HistoryMessage("user", "Hello", None, 0), HistoryMessage("agent", "Hi", None, 1))
    (folder / "rules/Bike_Shop.yaml").write_text('rules: [{answer: "{!@system_variables.user_input}!"}]')
    [answer] = converse(bound(folder, org, network), "7", history=history)
    assert (answer.outcome, network.paths().count("messages")) == ("7!", 2)


def test_variables_have_the_types_of_the_script(folder: Path, org: Organization, network: Network) -> None:
    given = (*CUSTOMER, ContextVariable("visits", "4"), ContextVariable("verified", "true"))
    (folder / "rules/Bike_Shop.yaml").write_text('rules: [{answer: "{!@variables.visits + 1}"}]')
    [answer] = converse(bound(folder, org, network), "7", context_variables=given)
    started = next(request for request in network.requests if request.url.path.endswith("preview/sessions"))
    sent = {each["name"]: each["value"] for each in json.loads(started.content)["variables"]}
    assert (answer.outcome, sent) == ("5", {"$Context.CustomerId": "C1", "visits": 4, "verified": True})


def test_the_version_is_the_target_of_the_bundle(folder: Path, org: Organization, network: Network) -> None:
    metadata = next(folder.rglob("*.bundle-meta.xml"))
    assert read_bundle(folder, "Bike_Shop").version == "v0"
    metadata.write_text(metadata.read_text().replace("</bundleType>", "</bundleType><target>Bike_Shop.v12</target>"))
    assert read_bundle(folder, "Bike_Shop").version == "v12"
    converse(bound(folder, org, network), "7")
    started = next(request for request in network.requests if request.url.path.endswith("preview/sessions"))
    assert json.loads(started.content)["agentDefinition"]["agentVersion"]["developerName"] == "v12"


def test_live_actions_are_requested(folder: Path, org: Organization, network: Network) -> None:
    with pytest.raises(SubjectRefused, match="actions cannot be live"):
        converse(bound(folder, org, network, actions="live"), "7")


def prepare(subject: Subject) -> None:
    async def go() -> None:
        assert isinstance(subject, PreparedSubject)
        try:
            await subject.prepare()
        finally:
            await subject.close()

    asyncio.run(go())


@pytest.mark.parametrize("patterns", [(), ("plan",)])
def test_a_script_with_errors_ends_the_run_before_the_first_case(
    folder: Path, org: Organization, network: Network, patterns: tuple[str, ...]
) -> None:
    script = next(folder.rglob("*.agent"))
    script.write_text(NAMED + "            | The plan is {!@variables.plan}.\n" * 5)
    line = len(NAMED.splitlines()) + 1
    place = f"force-app/main/default/aiAuthoringBundles/Bike_Shop/Bike_Shop.agent:{line}:29: @variables"
    with pytest.raises(SubjectError, match=place) as caught:
        prepare(with_redaction(bound(folder, org, network), patterns))
    assert ("'plan'" in str(caught.value)) is not bool(patterns)
    assert f"; {line + 1}:29: " in str(caught.value)
    assert str(caught.value).endswith("; and 2 more")
    assert network.paths()[1:] == ["scripts"]


def test_an_org_that_does_not_answer_yet_may_answer_the_cases(
    folder: Path, org: Organization, network: Network
) -> None:
    subject = bound(folder, org, network)
    assert isinstance(subject, PreparedSubject)

    async def go() -> int:
        network.broken = [httpx.Response(404), httpx.Response(503)]
        with pytest.raises(SubjectBusy):
            await subject.prepare()
        session = await subject.open(Case(1, (Turn("7"),), context_variables=CUSTOMER))
        answer = await session.ask("7")
        await session.close()
        await subject.close()
        return len(answer.actions or ())

    assert asyncio.run(go()) == 3


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"authoring_bundle": ""}, "the key 'agent_id' is missing"),
        ({"agent_id": "0Xxed00000002Q1CAI"}, "needs either agent_id or authoring_bundle"),
        ({"agent_id": "0Xxed00000002Q1CAI", "authoring_bundle": "", "actions": "live"}, "only for an authoring_bundle"),
    ],
)
def test_an_agent_is_published_or_a_draft(given: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings(**given)


def test_a_bundle_that_the_project_does_not_have_is_refused(folder: Path) -> None:
    with pytest.raises(SettingsError, match="no Agent Script of 'Bike_Shp'"):
        settings(authoring_bundle="Bike_Shp").bind(root=folder)


def test_a_changed_script_is_another_version_of_the_agent(folder: Path) -> None:
    name, files = settings(actions="live").identity(folder)
    assert name == "agentforce draft Bike_Shop with live actions in dev"
    assert [path.name for path in files] == ["Bike_Shop.agent"]
