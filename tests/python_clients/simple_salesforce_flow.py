"""simple-salesforce uses an org. Prints what each call returned or raised, as JSON.

The arguments are the org's host and port, its token, and the zips of a good, a bad and a large package.
"""

from __future__ import annotations

import io
import json
import sys
import time
from typing import TYPE_CHECKING, TypeVar
from zipfile import ZipFile

from simple_salesforce import Salesforce
from simple_salesforce.exceptions import SalesforceError

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
TYPE = "AiEvaluationDefinition"
AGENTS = "SELECT Id, DeveloperName, (SELECT Status FROM BotVersions) FROM BotDefinition WHERE DeveloperName LIKE 'D%'"
DEADLINE_SECONDS = 60


def main(instance: str, token: str, good: str, bad: str, large: str) -> None:
    org = Salesforce(instance=instance, session_id=token, version="66.0")
    agents = org.query(AGENTS)
    [agent] = agents["records"]
    found = {
        "objects": [each["name"] for each in org.describe()["sobjects"]],
        "fields": [each["name"] for each in org.BotDefinition.describe()["fields"]],
        "label": org.BotDefinition.metadata()["objectDescribe"]["label"],
        "agents": agents,
        "agent": org.BotDefinition.get(agent["Id"]),
        "missing": _error(lambda: org.BotDefinition.get("0Xx000000000000AAA")),
        "created": _error(lambda: org.BotDefinition.create({"DeveloperName": "New"})),
        "all": org.query_all("SELECT Username FROM User ORDER BY Username", include_deleted=True),
        "each": [each["Name"] for each in org.query_all_iter("SELECT Name FROM Organization")],
        "count": org.query("SELECT COUNT() FROM BotVersion")["totalSize"],
        "tooling": org.toolingexecute("query/", params={"q": "SELECT Id FROM BotDefinition"})["totalSize"],
        "malformed": _error(lambda: org.query("SELECT Id FORM User")),
        "unknown": _error(lambda: org.query("SELECT Id FROM Account")),
        "stranger": _error(lambda: Salesforce(instance=instance, session_id="x", version="66.0").describe()),
        "sandbox": org.is_sandbox(),
        "limits": org.limits(),
        "deployed": _deploy(org, good),
        "checked": _deploy(org, good, checkOnly=True),
        "refused": _deploy(org, bad),
        "types": [thing.xmlName for thing in org.mdapi.describe_metadata().metadataObjects],
        "listed": [each.fullName for each in org.mdapi.list_metadata([{"type": TYPE}])],
        "retrieved": _retrieve(org),
        "large": _deploy(org, large),
        "paged": _paged(org),
    }
    sys.stdout.write(json.dumps(found, default=str))


def _deploy(org: Salesforce, zip_file: str, **options: bool) -> object:
    job_id = org.deploy(zip_file, sandbox=True, **options)["asyncId"]
    return _wait(lambda: org.checkDeployStatus(job_id), lambda reply: reply["state"])


def _paged(org: Salesforce) -> tuple[int, list[str]]:
    """Return how many records the first page has, and all names."""
    query, options = "SELECT DeveloperName FROM BotDefinition", {"Sforce-Query-Options": "batchSize=200"}
    first = org.query(query, headers=options)
    return len(first["records"]), [each["DeveloperName"] for each in org.query_all_iter(query, headers=options)]


def _retrieve(org: Salesforce) -> list[str]:
    job_id, _ = org.mdapi.retrieve("", unpackaged={TYPE: ["*"]})
    _wait(lambda: org.mdapi.check_retrieve_status(job_id), lambda reply: reply[0])
    *_, content = org.mdapi.retrieve_zip(job_id)
    return sorted(ZipFile(io.BytesIO(content)).namelist())


def _wait(ask: Callable[[], _T], state_of: Callable[[_T], str]) -> _T:
    until = time.monotonic() + DEADLINE_SECONDS
    while True:
        reply = ask()
        if state_of(reply) not in {"Pending", "Queued", "InProgress"}:
            return reply
        assert time.monotonic() < until
        time.sleep(0.05)


def _error(call: Callable[[], object]) -> tuple[str, int, object]:
    try:
        return "no error", 0, call()
    except SalesforceError as error:
        return type(error).__name__, error.status, error.content


if __name__ == "__main__":
    main(*sys.argv[1:])
