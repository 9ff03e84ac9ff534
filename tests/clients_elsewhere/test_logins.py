from __future__ import annotations

from typing import TYPE_CHECKING

from clients_elsewhere.node import Sf
from clients_elsewhere.orgs import served_org
from org.certificates import make_certificate

if TYPE_CHECKING:
    from pathlib import Path

    from clients_elsewhere.orgs import Org
    from clients_elsewhere.workspace import Workspace

LOGIN = ("org", "login", "access-token", "--no-prompt", "--instance-url")


def test_a_login_returns_the_user_and_the_org(org: Org, tmp_path: Path) -> None:
    done = Sf(tmp_path, org)(*LOGIN, org.url, env={"SF_ACCESS_TOKEN": org.token})

    assert (done.code, done.out) == (0, "Successfully authorized admin@evalmeta.local with org ID 00D000000000001EAA\n")


def test_a_login_with_an_unknown_token_is_refused(org: Org, tmp_path: Path) -> None:
    done = Sf(tmp_path, org)(*LOGIN, org.url, "--json", env={"SF_ACCESS_TOKEN": "00D000000000001!no.bodys_token"})

    assert (done.code, done.reply.name) == (1, "AuthCodeUsernameRetrievalError")


def test_an_org_with_tls_is_used_if_its_certificate_is_trusted(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    files = ("--certfile", str(certificate.certfile), "--keyfile", str(certificate.keyfile))
    with served_org(tmp_path / "project", *files) as org:
        sf, env = Sf(tmp_path, org), {"SF_ACCESS_TOKEN": org.token}
        stranger = sf(*LOGIN, org.url, env=env)
        trust = {"NODE_EXTRA_CA_CERTS": str(certificate.certfile)}
        login = sf(*LOGIN, org.url, "--alias", "tls", env=env | trust)
        opened = sf("org", "open", "--url-only", "--target-org", "tls", "--json", env=trust)

    assert (stranger.code, login.code) == (1, 0)
    assert opened.reply.result.url.startswith(f"{org.url}/secur/frontdoor.jsp?otp=")


def test_an_org_is_displayed_as_connected(sf: Sf) -> None:
    result = sf("org", "display", "--target-org", "desk", "--json").reply.result

    assert (result.connectedStatus, result.apiVersion, result.alias) == ("Connected", "68.0", "desk")


def test_an_org_is_listed_as_connected_and_no_dev_hub(sf: Sf) -> None:
    result = sf("org", "list", "--json").reply.result

    assert [each.connectedStatus for each in result.other] == ["Connected"]
    assert result.devHubs == []


def test_no_login_is_needed_if_the_environment_names_the_org(org: Org, workspace: Workspace) -> None:
    done = workspace.sf("org list metadata-types --json", org=org)

    assert "AiEvaluationDefinition" in [thing.xmlName for thing in done.reply.result.metadataObjects]


def test_records_are_shown_with_their_columns(workspace: Workspace) -> None:
    shown = workspace.sf(
        "data query", "--query", "SELECT Id, Username FROM User WHERE Username = 'admin@evalmeta.local'"
    )

    assert shown.code == 0, shown
    assert "admin@evalmeta.local" in shown.out
