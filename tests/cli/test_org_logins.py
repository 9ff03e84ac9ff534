from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from client.fake_sf import install
from client.oauth_server import CLIENT, SECRET, USERNAME, OAuthServer, key_pair, running
from evalmeta.cli.main import cli
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome
    from cli.team import Team

    Program = Callable[..., Outcome]


@pytest.fixture
def org() -> Iterator[OAuthServer]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a text on standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def auth_url(org: OAuthServer) -> str:
    return f"force://{CLIENT}:{SECRET}:{org.new_refresh_token()}@{org.url.removeprefix('http://')}"


def test_a_token_is_read_from_standard_input(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]) -> None:
    typed(org.new_session() + "\n")
    done = evalmeta("org", "login", "--instance-url", org.url + "/", "--alias", "dev")
    assert done.out == f"Logged in as {USERNAME} to {org.url} (org 00D000000000001, API version 66.0).\n"
    assert done.err == "Use it: evalmeta deploy --target-org dev\n"


def test_a_token_is_read_from_the_environment(
    evalmeta: Program, org: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_ACCESS_TOKEN", org.new_session())
    monkeypatch.setenv("SF_ORG_INSTANCE_URL", org.url)
    assert json.loads(evalmeta("org", "login", "--json").out)["result"] == {
        "username": USERNAME,
        "alias": None,
        "orgId": "00D000000000001",
        "instanceUrl": org.url,
        "apiVersion": "66.0",
        "canRenew": False,
    }


@pytest.mark.slow
def test_a_token_that_is_typed_is_not_shown(program: list[str], org: OAuthServer) -> None:
    keyboard, terminal = pty.openpty()
    words = [*program, "org", "login", "-r", org.url]
    with subprocess.Popen(
        words, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stderr is not None
        shown = b""
        # The space comes when what is typed is hidden; what was typed before is dropped.
        while not shown.endswith(b": ") and (char := process.stderr.read(1)):
            shown += char
        os.write(keyboard, org.new_session().encode() + b"\n")
        out, _ = process.communicate(timeout=120)
    os.set_blocking(keyboard, False)
    with pytest.raises(BlockingIOError):
        os.read(keyboard, 1)
    os.close(keyboard)
    os.close(terminal)
    assert out.startswith(b"Logged in as")


def test_a_token_that_is_wrong_keeps_nothing(
    evalmeta: Program, org: OAuthServer, typed: Callable[[str], None], tmp_path: Path
) -> None:
    typed("00D!canary")
    done = evalmeta("org", "login", "-r", org.url)
    assert done.code == 4
    assert "Error (LoginFailed)" in done.err
    assert "canary" not in done.err
    assert not (tmp_path / "config").exists()


def test_a_key_logs_in(evalmeta: Program, org: OAuthServer, tmp_path: Path) -> None:
    (tmp_path / "server.key").write_bytes(key_pair().as_pem(private=True))
    words = ("--jwt-key-file", "server.key", "--client-id", CLIENT, "--username", USERNAME, "-r", org.url)
    assert evalmeta("org", "login", *words).code == 0
    shown = evalmeta("org", "display", "-o", USERNAME).out
    assert f"renewed with the key {tmp_path / 'server.key'}" in shown


@pytest.mark.parametrize(
    "content", ["{}", '{{"status": 0, "result": {{"sfdxAuthUrl": "{}"}}}}', '{{"sfdxAuthUrl": "{}"}}']
)
def test_an_auth_url_is_read_from_a_file(evalmeta: Program, org: OAuthServer, tmp_path: Path, content: str) -> None:
    (tmp_path / "auth.txt").write_text(content.format(auth_url(org)))
    assert evalmeta("org", "login", "--sfdx-url-file", "auth.txt").code == 0
    assert "renewed with a refresh token" in evalmeta("org", "display", "-o", USERNAME).out


def test_an_auth_url_is_read_from_standard_input(
    evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]
) -> None:
    typed(auth_url(org))
    assert evalmeta("org", "login", "--sfdx-url-stdin").code == 0
    typed("")
    assert "Standard input is empty; expected the sfdx auth URL." in evalmeta("org", "login", "--sfdx-url-stdin").err


def test_a_session_is_taken_over_from_sf_and_renewed_by_it(
    evalmeta: Program, org: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = {"display": {"accessToken": org.new_session(), "instanceUrl": org.url}}
    asked = install(tmp_path, monkeypatch, replies)
    assert evalmeta("org", "login", "--from-sf", "theirs", "--alias", "mine").code == 0
    org.access_tokens.clear()
    shown = json.loads(evalmeta("org", "display", "-o", "mine", "--json").out)["result"]
    assert shown["connectedStatus"].startswith(f"{org.url} refuses this access token")
    assert len(asked()) == 2


@pytest.mark.slow
def test_a_browser_is_opened_and_logs_in(
    program: list[str], org: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    visit = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n"
    browser.write_text(f"#!{sys.executable}\n{visit}")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    words = ("org", "login", "--web", "--client-id", CLIENT, "-r", org.url, "--callback-port", "0")
    done = subprocess.run([*program, *words], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout[:12]) == (0, "Logged in as"), done.stderr
    assert "To log in, open this URL within 300 seconds:\nhttp" in done.stderr


@pytest.mark.slow
def test_without_a_browser_the_address_is_printed(program: list[str], org: OAuthServer) -> None:
    words = ("org", "login", "--web", "--no-browser", "-i", CLIENT, "-r", org.url, "--callback-port", "0")
    with subprocess.Popen([*program, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()
        visit = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n"
        subprocess.run([sys.executable, "-c", visit, process.stderr.readline().strip()], check=True, timeout=120)
        out, _ = process.communicate(timeout=120)
    assert out.startswith(f"Logged in as {USERNAME}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--web", "--from-sf", "x"), "--web and --from-sf cannot be combined."),
        (("--web", "--username", "x"), "--username cannot be combined with --web."),
        (("--from-sf", "x", "--instance-url", "y"), "--instance-url cannot be combined with --from-sf."),
        (("--no-browser",), "--no-browser cannot be combined with an access token."),
        (("--jwt-key-file", "x"), "--jwt-key-file needs --client-id and --username."),
        ((), "An access token needs --instance-url, or SF_ORG_INSTANCE_URL."),
        (("--alias", "embedded"), "'embedded' cannot be an alias"),
        (("--alias", "me@desk"), "'me@desk' cannot be an alias"),
        (("--sfdx-url-file", "gone.txt"), "gone.txt: the file does not exist."),
        (("--set-default", "--web"), "There is no project in"),
        (("--nonsense",), "No such option"),
    ],
)
def test_options_that_contradict_each_other_are_refused(evalmeta: Program, words: tuple[str, ...], said: str) -> None:
    done = evalmeta("org", "login", *words)
    assert done.code == 2
    assert said in done.err


def logged_in(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None], *words: str) -> None:
    typed(auth_url(org))
    assert evalmeta("org", "login", "--sfdx-url-stdin", *words).code == 0


@pytest.mark.usefixtures("team")
def test_logins_are_listed_with_the_default(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]) -> None:
    logged_in(evalmeta, org, typed, "--alias", "dev", "--set-default")
    assert re.search(rf"^\*  dev    {USERNAME}  00D000000000001  {org.url}$", evalmeta("org", "list").out, re.MULTILINE)
    assert json.loads(evalmeta("org", "list", "--json").out)["result"][0]["isDefault"]
    assert evalmeta("org", "display").out.endswith("Connected Status  Connected\n")


@pytest.mark.usefixtures("team")
def test_a_default_is_chosen_shown_and_unset(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]) -> None:
    logged_in(evalmeta, org, typed, "--alias", "dev")
    assert evalmeta("org", "default").out == "Commands in mine use: embedded\n"
    assert evalmeta("org", "default", "dev").out == "Commands in mine use: dev\n"
    assert json.loads(evalmeta("org", "default", "--unset", "--json").out)["result"]["default"] == "embedded"
    assert evalmeta("org", "default", "other").code == 2
    assert evalmeta("org", "default", "dev", "--unset").code == 2


def test_a_login_is_deleted(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]) -> None:
    logged_in(evalmeta, org, typed, "--alias", "dev")
    assert evalmeta("org", "logout").code == 2
    assert evalmeta("org", "logout", "-o", "dev").out == f"Deleted the login {USERNAME} at {org.url}.\n"
    assert evalmeta("org", "logout", "-o", "dev").code == 2
    assert json.loads(evalmeta("org", "logout", "--all", "--json").out)["result"] == []
    assert "No logins" in evalmeta("org", "list").err


def test_an_unknown_command_of_the_group_is_a_usage_error(evalmeta: Program) -> None:
    assert "No such command 'nonsense'" in evalmeta("org", "nonsense").err


def test_without_a_login_there_is_nothing_to_show(evalmeta: Program) -> None:
    assert "Name a login with --target-org" in evalmeta("org", "display").err


@pytest.mark.usefixtures("team")
def test_commands_talk_to_the_org_that_is_named(
    evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]
) -> None:
    logged_in(evalmeta, org, typed, "--alias", "dev")
    org.access_tokens.clear()
    done = evalmeta("test", "list", "-o", "dev")
    assert done.err == f"Target: dev, {USERNAME} at {org.url}\n"
    assert "Orders" in done.out
    assert evalmeta("manifest", "generate", "--from-org", "-o", "dev", "-n", "all.xml").code == 0


@pytest.mark.parametrize(
    "words", [("deploy",), ("retrieve",), ("status",), ("diff",), ("test", "run"), ("test", "list")]
)
def test_every_command_that_talks_to_an_org_takes_one(evalmeta: Program, team: Team, words: tuple[str, ...]) -> None:
    team.write("Orders")
    done = evalmeta(*words, "--target-org", "nowhere")
    assert (done.code, "the login 'nowhere' cannot be found" in done.err) == (2, True)


def options(group: click.Group) -> Iterator[click.Option]:
    context = click.Context(group)
    yield from (param for param in group.params if isinstance(param, click.Option))
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from options(command)
        else:
            yield from (param for param in command.params if isinstance(param, click.Option))


def test_no_option_takes_a_secret() -> None:
    taking = [name for option in options(cli) if not option.is_flag for name in option.opts]
    assert len(taking) > 50
    assert [name for name in taking if re.search("token|passw|secret|pat$|jwt$|auth-url$", name)] == []


@pytest.mark.slow
@pytest.mark.usefixtures("team")
def test_no_secret_is_shown_anywhere(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]) -> None:
    typed(auth_url(org))
    said = [evalmeta("org", "login", "--sfdx-url-stdin", "--alias", "dev", "--set-default")]
    org.access_tokens.clear()
    said += [evalmeta("test", "list"), evalmeta("test", "list", "--json"), evalmeta("org", "list", "--json")]
    org.access_tokens.clear()
    revoked, org.refresh_tokens = org.refresh_tokens, set()
    said += [evalmeta("status"), evalmeta("org", "display"), evalmeta("org", "display", "--json")]
    spoken = "".join(done.out + done.err for done in said)
    told = "\n".join(body for _, _, body in org.requests)
    secrets = {*revoked, SECRET, *re.findall(r"00D\w+![\w.]+", told)}
    assert len(secrets) > 2
    assert [secret for secret in secrets if secret in spoken] == []


def test_a_changed_alias_is_reported_and_the_default_follows(
    evalmeta: Program, org: OAuthServer, typed: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "evalmeta.toml").touch()
    typed(org.new_session())
    evalmeta("org", "login", "--instance-url", org.url, "--alias", "srv", "--set-default")
    typed(org.new_session())
    again = evalmeta("org", "login", "--instance-url", org.url, "--alias", "other")
    assert "The alias of this login was srv; now it is other.\n" in again.err
    assert json.loads(evalmeta("org", "default", "--json").out)["result"]["default"] == "other"


def test_a_login_that_loses_its_alias_is_reported(
    evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]
) -> None:
    user_logins().save(Login("me@desk.example", "https://desk.example", alias="srv"), Secrets("x"))
    typed(org.new_session())
    told = evalmeta("org", "login", "--instance-url", org.url, "--alias", "srv").err
    assert "Warning: srv was the alias of me@desk.example at https://desk.example" in told


def test_the_default_shows_the_org_of_the_environment(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "evalmeta.toml").touch()
    monkeypatch.setenv("SF_TARGET_ORG", "srv")
    shown = evalmeta("org", "default")
    assert shown.out.endswith("use: srv\n")
    assert shown.err == "This is set in the environment; otherwise they use embedded.\n"


def test_a_default_without_a_login_is_reported(evalmeta: Program, tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").touch()
    user_logins().save(Login("me@desk.example", "https://desk.example", alias="srv"), Secrets("x"))
    evalmeta("org", "default", "srv")
    assert "Warning: srv is still this project's default." in evalmeta("org", "logout", "-o", "srv").err
    assert "Warning: the login 'srv' cannot be found here." in evalmeta("org", "default").err


def test_an_expired_session_is_reported_in_words_and_by_the_exit_code(
    evalmeta: Program, org: OAuthServer, typed: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "evalmeta.toml").touch()
    typed(org.new_session())
    evalmeta("org", "login", "--instance-url", org.url, "--alias", "dev")
    org.access_tokens.clear()
    assert "the session of dev: it is wrong, has expired or was revoked" in evalmeta("status", "-o", "dev").err
    assert evalmeta("org", "display", "-o", "dev").code == 4
    assert json.loads(evalmeta("org", "display", "-o", "dev", "--json").out)["status"] == 4


def test_the_projects_own_org_cannot_be_logged_out_of(evalmeta: Program) -> None:
    refused = evalmeta("org", "logout", "-o", "embedded")
    assert (refused.code, "needs no login" in refused.err) == (2, True)


def test_a_login_without_a_token_says_where_it_is_read_from(evalmeta: Program, typed: Callable[[str], None]) -> None:
    typed("")
    refused = evalmeta("org", "login", "--instance-url", "http://127.0.0.1:9")
    assert "expected the access token, because SF_ACCESS_TOKEN is not set." in refused.err


def test_a_server_of_ones_own_that_is_not_there_can_be_started(evalmeta: Program, typed: Callable[[str], None]) -> None:
    typed("x")
    refused = evalmeta("org", "login", "--instance-url", "http://127.0.0.1:9")
    assert "To serve the org of a project on this machine: evalmeta org start" in refused.err


def test_https_to_an_http_server_is_reported(evalmeta: Program, org: OAuthServer, typed: Callable[[str], None]) -> None:
    typed("x")
    refused = evalmeta("org", "login", "--instance-url", org.url.replace("http:", "https:"))
    assert f"Did you mean {org.url}?" in refused.err
