"""Schemathesis sends what an org's OpenAPI description allows, and what it does not allow, to every REST route."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from org.parts import definition
from python_clients.clients import PYTHON_CLIENTS

if TYPE_CHECKING:
    from pathlib import Path

    from clients_elsewhere.orgs import Org

pytestmark = pytest.mark.slow

# No schema can tell a valid SOQL query, and one address has a route of its own for POST and another's for GET.
UNCHECKED = "positive_data_acceptance,allow_header_conformance"


QUERY = "SELECT Id, DeveloperName, (SELECT Id FROM BotVersions) FROM BotDefinition ORDER BY Id LIMIT 2"
RECORDS = """\
[parameters]
"path.run_id" = "{run}"
"path.job_id" = "{job}"
"path.name" = "BotDefinition"
"path.run_path" = "ai-evaluations"
"query.q" = "{query}"
"""


@pytest.mark.parametrize("settings", ["", RECORDS], ids=["anything", "what the org has"])
def test_a_served_org_answers_as_its_openapi_description_says(org: Org, tmp_path: Path, settings: str) -> None:
    org.have(Orders=definition("Orders"))
    config = tmp_path / "schemathesis.toml"
    config.write_text(settings.format(run=org.run("Orders"), job=org.submit("Drafts"), query=QUERY))
    done = subprocess.run(
        [
            *(PYTHON_CLIENTS / "bin" / "schemathesis", "--config-file", config, "--no-color"),
            *("run", f"{org.url}/services/data/openapi.json", "--header", f"Authorization: Bearer {org.token}"),
            *("--exclude-checks", UNCHECKED, "--max-examples", "20", "--continue-on-failure"),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
