"""CumulusCI's own API classes use an org. Prints what each returned or raised, as JSON.

The arguments are the org's address, its token, and the zips of a good, a bad and a mixed package.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cumulusci.core.config import OrgConfig
from cumulusci.salesforce_api.exceptions import MetadataApiError, MetadataParseError
from cumulusci.salesforce_api.metadata import (
    ApiDeploy,
    ApiListMetadata,
    ApiListMetadataTypes,
    ApiRetrieveInstalledPackages,
    ApiRetrievePackaged,
    ApiRetrieveUnpackaged,
)
from cumulusci.salesforce_api.rest_deploy import RestDeploy

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = "66.0"
TYPE = "AiEvaluationDefinition"
MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Package xmlns="http://soap.sforce.com/2006/04/metadata">\n'
    f"<types><members>*</members><members>Never_There</members><name>{TYPE}</name></types>\n"
    f"<types><members>*</members><name>ApexClass</name></types><version>{VERSION}</version></Package>"
)


def main(url: str, token: str, *zip_files: str) -> None:
    good, bad, mixed = (base64.b64encode(Path(file).read_bytes()).decode() for file in zip_files)
    task = _task(url, token)
    stranger, returning = _task(url, "00D000000000001!x"), _task(url, "00D000000000001!x", renewed=token)
    found = {
        "deploy": ApiDeploy(task, good)(),
        "check": ApiDeploy(task, good, check_only=True, purge_on_delete=False)(),
        "bad": _error(ApiDeploy(task, bad)),
        "mixed": _error(ApiDeploy(task, mixed)),
        "rest": RestDeploy(task, good, "true", check_only=False, test_level=None, run_tests=[])(),
        "list": ApiListMetadata(task, TYPE)()[TYPE],
        "renewed": ApiListMetadata(returning, TYPE)()[TYPE],
        "stranger": _error(ApiListMetadata(stranger, TYPE)),
        "apex": _error(ApiListMetadata(task, "ApexClass")),
        "types": ApiListMetadataTypes(task)(),
        "retrieve": sorted(ApiRetrieveUnpackaged(task, MANIFEST, VERSION)().namelist()),
        "installed": ApiRetrieveInstalledPackages(task)(),
        "packaged": _error(ApiRetrievePackaged(task, "Orders", VERSION)),
        "org": _connected(url, token),
    }
    sys.stdout.write(json.dumps(found, default=str))


def _task(url: str, token: str, *, renewed: str = "") -> SimpleNamespace:
    """Return what the classes use of a task; an org with a `renewed` token can log in again."""
    org = SimpleNamespace(
        org_id="00D000000000001AAA",
        instance_url=url,
        access_token=token,
        refresh_token=renewed,
        org_type="Developer Edition",
        is_sandbox=False,
    )
    org.refresh_oauth_token = lambda _: setattr(org, "access_token", renewed)
    project = SimpleNamespace(project__package__api_version=VERSION, keychain=None)
    return SimpleNamespace(logger=logging.getLogger("task"), org_config=org, project_config=project)


def _connected(url: str, token: str) -> dict[str, object]:
    """Return what `cci org connect` stores, which `cci org info` prints."""
    config = {"instance_url": url, "access_token": token, "id": f"{url}/id/00D000000000001AAA/005000000000001AAA"}
    org = OrgConfig(config, "local")
    # `refresh_oauth_token` calls the first two after it has renewed the session.
    org.load_userinfo()
    org._load_orginfo()  # noqa: SLF001
    org.populate_expiration_date()
    return {
        **org.config,
        "username": org.username,
        "version": org.latest_api_version,
        "record": org.organization_sobject,
    }


def _error(call: Callable[[], object]) -> str:
    try:
        return f"no error, but {call()}"
    except (MetadataApiError, MetadataParseError) as error:
        return str(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
