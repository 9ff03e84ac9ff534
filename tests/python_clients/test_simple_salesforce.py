"""simple-salesforce, which speaks only https, uses a served org as it uses Salesforce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from clients_elsewhere.orgs import served_org
from org.certificates import make_certificate
from org.parts import KIND, definition, package, xml_of
from python_clients.clients import run_client

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What simple-salesforce said of queries, descriptions, deployments and retrieves over TLS."""
    folder: Path = tmp_path_factory.mktemp("simple-salesforce")
    (folder / "good.zip").write_bytes(package({"Orders": definition("Orders", subject="Drafts")}))
    (folder / "bad.zip").write_bytes(package({"Bad": definition("Bad", extra="<bogus/>")}))
    large = {f"Test_{number}": definition(f"Test_{number}", subject=f"Agent_{number:03}") for number in range(401)}
    (folder / "large.zip").write_bytes(package(large))
    certificate = make_certificate(folder)
    files = ("--certfile", str(certificate.certfile), "--keyfile", str(certificate.keyfile))
    with served_org(folder / "project", *files) as org:
        zips = (str(folder / f"{name}.zip") for name in ("good", "bad", "large"))
        words = (org.url.removeprefix("https://"), org.token, *zips)
        return run_client("simple_salesforce_flow.py", *words, REQUESTS_CA_BUNDLE=str(certificate.certfile))


def test_objects_are_listed_and_described(said: dict[str, Any]) -> None:
    assert said["objects"] == ["BotDefinition", "BotVersion", "Organization", "User"]
    assert {"Id", "DeveloperName", "MasterLabel"} < {*said["fields"]}
    assert said["label"] == "Bot"


def test_records_are_queried(said: dict[str, Any]) -> None:
    [agent] = said["agents"]["records"]
    assert (agent["DeveloperName"], agent["BotVersions"]["records"][0]["Status"]) == ("Desk", "Active")
    assert said["agent"]["Id"] == agent["Id"]
    assert [each["Username"] for each in said["all"]["records"]] == ["admin@evalmeta.local"]
    assert (said["each"], said["count"], said["tooling"]) == (["evalmeta"], 1, 1)
    assert (said["sandbox"], said["limits"]) == (False, {})


def test_all_pages_of_a_query_are_read(said: dict[str, Any]) -> None:
    size, names = said["paged"]
    assert (size, [name for name in names if name.startswith("Agent")]) == (200, [f"Agent_{n:03}" for n in range(401)])


def test_errors_are_the_clients_own(said: dict[str, Any]) -> None:
    name, status, [error] = said["malformed"]
    assert (name, status, error["errorCode"]) == ("SalesforceMalformedRequest", 400, "MALFORMED_QUERY")
    name, status, [error] = said["unknown"]
    assert (name, status, error["errorCode"]) == ("SalesforceMalformedRequest", 400, "INVALID_TYPE")
    assert said["missing"][:2] == ["SalesforceResourceNotFound", 404]
    assert said["created"][1] == 405
    assert said["stranger"][:2] == ["SalesforceExpiredSession", 401]


def test_packages_are_deployed_and_validated(said: dict[str, Any]) -> None:
    deployed, checked, refused = said["deployed"], said["checked"], said["refused"]
    assert (deployed["state"], checked["state"], refused["state"]) == ("Succeeded", "Succeeded", "Failed")
    assert deployed["deployment_detail"]["deployed_count"] == "1"
    [error] = refused["deployment_detail"]["errors"]
    assert "<bogus> is not a known element" in error["message"]


def test_components_are_listed_and_retrieved(said: dict[str, Any]) -> None:
    assert {KIND.name, "AiTestingDefinition"} < {*said["types"]}
    assert said["listed"] == ["Orders"]
    assert said["retrieved"] == [xml_of("Orders"), "package.xml"]
