"""What `evalmeta doctor -o ORG` says of a good org, and of each org that cannot run the tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from client.salesforce import Scene, case, done, salesforce
from client.servers import TOKEN, http_reply
from evalmeta import limits
from evalmeta.api.doctor.org import examine_org
from evalmeta.api.org_targets import Target
from evalmeta.model.login import Login, Secrets
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCREENS = Path(__file__).with_name("org_checks.txt")
ORDERS = """\
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>Orders</name>
    <subjectName>Agent</subjectName>
    <subjectType>AGENT</subjectType>
    <testCase>
        <number>1</number>
        <inputs><utterance>Where's it?</utterance></inputs>
        <expectation><name>topic_sequence_match</name><expectedValue>Orders</expectedValue></expectation>
    </testCase>
</AiEvaluationDefinition>
"""
AGENT = "<subjectName>Agent</subjectName>"
VISITS = """\
<AiTestingDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>Visits</name>
    <subjectName>Agent</subjectName>
    <subjectType>AGENT</subjectType>
</AiTestingDefinition>
"""
V1 = {"DeveloperName": "v1", "VersionNumber": 1, "Status": "Active"}
V2 = {"DeveloperName": "v2", "VersionNumber": 2, "Status": "Inactive"}
ANSWERED = Scene("COMPLETED", done(case(1)))
GOING = Scene("IN_PROGRESS", done(case(1), case(2, status="IN_PROGRESS"), status="IN_PROGRESS"))
FAILED = Scene("COMPLETED", done(case(1, status="ERROR", errorMessage="Agent call failed", generatedData={})))
SILENT = Scene("IN_PROGRESS", done(status="IN_PROGRESS"))


def error(status: int, code: str, message: str) -> bytes:
    return http_reply(status, orjson.dumps([{"errorCode": code, "message": message}]), "Content-Type: application/json")


def fault(code: str, message: str) -> bytes:
    text = f"<faultcode>sf:{code}</faultcode><faultstring>{code}: {message}</faultstring>"
    body = f"<e:Body><e:Fault>{text}</e:Fault></e:Body>"
    return http_reply(
        500, f'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/">{body}</e:Envelope>'.encode()
    )


def release(version: str) -> dict[bytes, bytes]:
    reply = orjson.dumps([{"label": "", "url": f"/services/data/v{version}", "version": version}])
    return {b"GET /services/data HTTP": http_reply(200, reply, "Content-Type: application/json")}


class Org:
    """An org and a project for it."""

    def __init__(
        self,
        *scenes: Scene,
        instead: Mapping[bytes, bytes] | None = None,
        versions: Sequence[dict[str, object]] = (V1,),
        content: str = "",
        deployed: str = "Orders",
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.scenes = scenes
        self.instead = instead
        self.versions = versions
        self.deployed = deployed
        self.files = files or {"aiEvaluationDefinitions/Orders.aiEvaluationDefinition": ORDERS}
        self.content = content or next(reversed(self.files.values()))

    def screen(self, folder: Path) -> str:
        """Return the lines of the screen."""
        (folder / "evalmeta.toml").touch()
        for name, text in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        content = self.content.encode()
        with salesforce(
            self.scenes, definition=self.deployed, content=content, versions=self.versions, instead=self.instead
        ) as org:
            target = Target(Login("me@dev.example", org.url, alias="dev"), Secrets(TOKEN))
            lines = list(examine_org(find_project(folder), target, is_smoke=bool(self.scenes), timeout=30))
            assert len(org.canceled) == (self.scenes in ((GOING,), (SILENT,)))
        return "".join(
            f"{found.status} {name}: {found.message}{found.action and f' -> {found.action}'}\n" for name, found in lines
        ).replace(org.url, "URL")


def naming(old: str, new: str) -> dict[str, str]:
    return {"aiEvaluationDefinitions/Orders.aiEvaluationDefinition": ORDERS.replace(old, new)}


UNKNOWN_TYPE = fault("INVALID_TYPE", "Cannot use: AiEvaluationDefinition in this organization")
NO_OBJECT = error(400, "INVALID_TYPE", "sObject type 'BotDefinition' is not supported.")
NO_RESOURCE = error(404, "NOT_FOUND", "The requested resource does not exist")
ORGS = {
    "good": Org(),
    "good, and asked": Org(ANSWERED),
    "good, and asked in a long test": Org(GOING),
    "form differs": Org(content=ORDERS.replace("    ", "  ")),
    "session refused": Org(instead={b"/services/Soap": fault("INVALID_SESSION_ID", "Invalid Session ID")}),
    "old release": Org(instead=release("62.0")),
    "release before Agentforce Studio": Org(
        instead=release("65.0"), files={"aiTestingDefinitions/Visits.aiTestingDefinition": VISITS}
    ),
    "project asks for an old version": Org(
        deployed="Visits",
        files={
            "sfdx-project.json": '{"packageDirectories": [{"path": "app"}], "sourceApiVersion": "64.0"}',
            "app/Visits.aiTestingDefinition-meta.xml": VISITS,
        },
    ),
    "Testing Center off": Org(instead={b"/ai-evaluations/": NO_RESOURCE}),
    "Testing Center unknown": Org(instead={b"/services/Soap": UNKNOWN_TYPE}),
    "Testing Center not allowed": Org(instead={b"/ai-evaluations/": error(403, "FORBIDDEN", "You don't have access")}),
    "agent missing": Org(files=naming(AGENT, "<subjectName>Agnet</subjectName>")),
    "agent of a package": Org(files=naming(AGENT, "<subjectName>ns__Agent</subjectName>")),
    "no active version": Org(versions=[V2]),
    "newer version not active": Org(versions=[V1, V2]),
    "version missing": Org(files=naming(AGENT, f"{AGENT}<subjectVersion>v9</subjectVersion>")),
    "latest version, and another case": Org(
        files=naming(AGENT, "<subjectName>agent</subjectName><subjectVersion>LATEST</subjectVersion>")
    ),
    "version in another case": Org(files=naming(AGENT, f"{AGENT}<subjectVersion>V1</subjectVersion>")),
    "versions not shown": Org(versions=[]),
    "agents not listed": Org(instead={b"/query": NO_OBJECT}),
    "not deployed": Org(ANSWERED, deployed="Other"),
    "deployed another version": Org(content=ORDERS.replace(">Orders</expectedValue>", ">Returns</expectedValue>")),
    "agent call failed": Org(FAILED),
    "no answer": Org(SILENT),
    "run refused": Org(ANSWERED, instead={b"/runs HTTP": error(400, "LIMIT_EXCEEDED", "too many runs in progress")}),
    "nothing in the project": Org(files={"note.txt": ""}),
    "nothing to ask": Org(ANSWERED, files={"tests/orders.yaml": "testCases: []"}),
}


def screens() -> dict[str, str]:
    names, *texts = SCREENS.read_text(encoding="utf-8").split("== ")
    assert names == ""
    return {name: lines for name, _, lines in (text.partition("\n") for text in texts)}


@pytest.mark.parametrize("name", ORGS)
def test_the_screen_says_of_each_org_what_is_wrong_and_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ORG_CASE_SECONDS", 0.2)
    assert ORGS[name].screen(tmp_path) == screens()[name].rstrip("\n") + "\n"
    assert not (tmp_path / ".evalmeta").exists()


def test_an_org_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").touch()
    target = Target(Login("me@dev.example", "http://127.0.0.1:9"), Secrets(TOKEN))
    [(name, finding)] = examine_org(find_project(tmp_path), target, is_smoke=False, timeout=30)
    assert (name, finding.status, "127.0.0.1:9" in finding.message) == ("org", "error", True)


def test_an_org_that_does_not_answer_ends_at_the_time_limit(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").touch()
    with salesforce([], instead={b"/services/Soap": error(503, "SERVER_UNAVAILABLE", "later")}) as org:
        target = Target(Login("me@dev.example", org.url), Secrets(TOKEN))
        [(name, finding)] = examine_org(find_project(tmp_path), target, is_smoke=False, timeout=0.2)
    assert (name, finding.message) == ("org", "did not answer within 0.2 s")
