"""CumulusCI's classes use a served org as they use Salesforce."""

from __future__ import annotations

from typing import Any

import pytest

from clients_elsewhere.orgs import served_org
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import NEWEST_API_VERSION, Manifest, ManifestTypes
from evalmeta.package.archive import build_zip
from evalmeta.xmlio.definitions import write_manifest
from org.certificates import make_certificate
from org.parts import KIND, definition, package, xml_of
from python_clients.clients import run_client

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What CumulusCI said of the org, deployments, listings and retrieves over TLS."""
    folder = tmp_path_factory.mktemp("cumulusci")
    types = ManifestTypes(KIND.name, ("Orders",)), ManifestTypes("ApexClass", ("Desk",))
    entries = [
        ("package.xml", write_manifest(Manifest(types, "66.0"))),
        (xml_of("Orders"), definition("Orders")),
        ("classes/Desk.cls", b"public class Desk {}"),
    ]
    zips = {
        "good.zip": package({"Orders": definition("Orders")}),
        "bad.zip": package({"Bad": definition("Bad", extra="<bogus/>")}),
        "mixed.zip": build_zip(entries),
    }
    for name, content in zips.items():
        (folder / name).write_bytes(content)
    certificate = make_certificate(folder)
    files = ("--certfile", str(certificate.certfile), "--keyfile", str(certificate.keyfile))
    with served_org(folder / "project", *files) as org:
        words = (org.url, org.token, *(str(folder / name) for name in zips))
        return run_client("cumulusci_flow.py", *words, REQUESTS_CA_BUNDLE=str(certificate.certfile))


def test_cumulusci_reads_what_it_stores_of_an_org(said: dict[str, Any]) -> None:
    org = said["org"]
    facts = {"org_type": "Developer Edition", "is_sandbox": False, "namespace": None, "expires": "Persistent"}
    assert {name: org[name] for name in facts} == facts
    assert (org["username"], org["version"]) == (ADMIN.username, str(NEWEST_API_VERSION))
    assert org["record"]["Id"] == org["userinfo"]["organization_id"]


def test_cumulusci_deploys_and_validates(said: dict[str, Any]) -> None:
    assert (said["deploy"], said["check"], said["rest"]) == ("Success", "Success", None)


def test_cumulusci_says_why_components_are_refused(said: dict[str, Any]) -> None:
    assert "Bad: Error on line 7, col 3: <bogus> is not a known element" in said["bad"]
    assert "ApexClass Desk: Error: This org does not support the type ApexClass" in said["mixed"]


def test_cumulusci_lists_components_and_types(said: dict[str, Any]) -> None:
    [orders] = said["list"]
    assert (orders["fullName"], orders["fileName"]) == ("Orders", xml_of("Orders"))
    assert {KIND.name, "AiAgentScorerDefinition", "AiAuthoringBundle", "AiTestingDefinition"} == set(said["types"])
    assert said["apex"].startswith("sf:INVALID_TYPE: INVALID_TYPE: Unknown type:ApexClass")


def test_cumulusci_retrieves_what_is_there(said: dict[str, Any]) -> None:
    assert said["retrieve"] == [xml_of("Orders"), "package.xml"]
    assert said["installed"] == {}
    assert said["packaged"].endswith("No package named 'Orders' found")


def test_cumulusci_logs_in_again_when_its_session_is_not_valid(said: dict[str, Any]) -> None:
    assert said["stranger"].startswith("sf:INVALID_SESSION_ID: ")
    assert said["renewed"] == said["list"]
