"""`evalmeta org login|list|display|logout|default`: log in to orgs other than the project's own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api, limits
from evalmeta.cli.options import FILE, Decorator, IntRange, option_group, target_org_option
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import json_option, note, print_json, print_table, warn
from evalmeta.errors import EXIT_ORG, EXIT_PASSED, ProjectError, Suggestion, UsageError
from evalmeta.model.login import EMBEDDED, ByKey, BySf, Login
from evalmeta.model.redaction import child_environment
from evalmeta.package.files import read_text
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from evalmeta.model.json_value import JsonObject


_SESSION: Final = "access token"
_OPTIONS: tuple[Decorator, ...] = (
    click.option("-r", "--instance-url", metavar="URL", help="The org's login URL or instance URL."),
    click.option("-f", "--jwt-key-file", type=FILE, help="An RSA private key; with --client-id and --username."),
    click.option("-i", "--client-id", metavar="ID", help="The consumer key of your connected app."),
    click.option("--username", metavar="NAME", help="The user to log in with the key."),
    click.option("--sfdx-url-stdin", is_flag=True, help="Read an sfdx auth URL from standard input."),
    click.option("--sfdx-url-file", type=FILE, help="Read an sfdx auth URL from a file, also from sf's JSON."),
    click.option("--web", is_flag=True, help="Log in with a browser."),
    click.option("--no-browser", is_flag=True, help="With --web: print the URL instead of opening a browser."),
    click.option("--callback-port", type=IntRange(0, 65535), metavar="PORT", help="With --web.  [default: 1717]"),
    click.option("--from-sf", metavar="NAME_OR_ALIAS", help="Reuse a session of the sf CLI."),
)
# The option that selects each method, and the options that it allows; an access token needs no option.
_METHODS: Final = {
    "jwt_key_file": ("instance_url", "client_id", "username"),
    "sfdx_url_stdin": (),
    "sfdx_url_file": (),
    "web": ("instance_url", "client_id", "no_browser", "callback_port"),
    "from_sf": (),
    "": ("instance_url",),
}


# A separate process, because Python's own opener passes on the whole environment.
_OPENER: Final = (sys.executable, "-P", "-c", "import sys, webbrowser; webbrowser.open(sys.argv[1])")
# Kept so that Python does not warn about a browser that is still running.
_BROWSERS: Final[list[subprocess.Popen[bytes]]] = []


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """The values of the options of `org login`."""

    instance_url: str | None
    jwt_key_file: Path | None
    client_id: str | None
    username: str | None
    sfdx_url_stdin: bool
    sfdx_url_file: Path | None
    web: bool
    no_browser: bool
    callback_port: int | None
    from_sf: str | None

    @property
    def url(self) -> str:
        """The URL, by default that of the environment; empty if there is none."""
        return self.instance_url or os.environ.get("SF_ORG_INSTANCE_URL", "")

    def method(self) -> str:
        """Return the option that selects the method, empty for an access token; refuse all that do not belong to it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        given = [name for name, value in values.items() if value is not None and value is not False]
        chosen = [name for name in given if name in _METHODS]
        if len(chosen) > 1:
            raise click.UsageError(f"{' and '.join(map(_flag, chosen))} cannot be combined.")
        method = chosen[0] if chosen else ""
        for other in given:
            if other not in {method, *_METHODS[method]}:
                what = _flag(method) if method else "an access token"
                raise click.UsageError(f"{_flag(other)} cannot be combined with {what}.")
        return method


login_options = option_group("options", LoginOptions, _OPTIONS)


def log_in(options: LoginOptions, *, alias: str) -> Coroutine[None, None, Login]:
    """Return the coroutine that logs in as the options say; they are checked, and secrets read, before it starts."""
    match options.method():
        case "jwt_key_file":
            if not (options.jwt_key_file and options.client_id and options.username):
                raise click.UsageError("--jwt-key-file needs --client-id and --username.")
            key, audience = options.jwt_key_file.absolute(), os.environ.get("SF_AUDIENCE_URL", "")
            return api.logins.log_in_with_key(
                key, options.client_id, options.username, url=options.url, audience=audience, alias=alias
            )
        case "sfdx_url_stdin" | "sfdx_url_file":
            file = options.sfdx_url_file
            text = read_text(file, raises=UsageError) if file else _read_secret("sfdx auth URL")
            return api.logins.log_in_with_auth_url(api.logins.auth_url_in(text), alias=alias)
        case "web":
            from evalmeta.client.auth import CALLBACK_PORT

            return api.logins.log_in_with_web(
                show=_print_address if options.no_browser else _open_address,
                url=options.url,
                client_id=options.client_id or "",
                client_secret=os.environ.get("EVALMETA_CLIENT_SECRET", ""),
                port=CALLBACK_PORT if options.callback_port is None else options.callback_port,
                alias=alias,
            )
        case "from_sf":
            return api.logins.log_in_with_sf(options.from_sf or "", alias=alias)
        case _:
            if not options.url:
                raise click.UsageError("An access token needs --instance-url, or SF_ORG_INSTANCE_URL.")
            token = os.environ.get("SF_ACCESS_TOKEN", "").strip() or _read_secret(_SESSION)
            return api.logins.log_in_with_token(options.url, token, alias=alias)


def _print_address(address: str) -> None:
    note(f"To log in, open this URL within {limits.WEB_LOGIN_SECONDS:g} seconds:\n{address}")


def _open_address(address: str) -> None:
    _print_address(address)
    # Not waited for: some browsers run in the terminal and return only when the user quits them.
    _BROWSERS.append(subprocess.Popen([*_OPENER, address], env=child_environment()))


def _read_secret(what: str) -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt(what[0].upper() + what[1:], hide_input=True, err=True)
        return typed.strip()
    secret = sys.stdin.read(limits.MAX_LOGIN_BYTES).strip()
    if not secret:
        otherwise = ", because SF_ACCESS_TOKEN is not set" if what == _SESSION else ""
        raise click.UsageError(f"Standard input is empty; expected the {what}{otherwise}.")
    return secret


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@click.command()
@login_options
@click.option("-a", "--alias", default="", help="A name for the login.")
@click.option("-s", "--set-default", is_flag=True, help="Make it the project's default org.")
@json_option
def login(options: LoginOptions, *, alias: str, set_default: bool, as_json: bool) -> None:
    """Log in to an org and save the login for use with --target-org.

    By default, the access token is read from SF_ACCESS_TOKEN or from standard input.
    There is no option for a token, because other users could read it. Secrets are saved
    in the system's keyring (extra `keyring`), or in a file that only you can read.

    \b
    evalmeta org login --instance-url https://mycompany.my.salesforce.com --alias dev
    evalmeta org login --jwt-key-file server.key --client-id 3MVG9... --username ci@example.com
    evalmeta org login --sfdx-url-file auth.txt --alias ci
    evalmeta org login --web --alias dev --set-default
    evalmeta org login --from-sf dev
    """
    api.logins.check_alias(alias)
    project = find_project(Path.cwd()) if set_default else None
    known = api.logins.list_logins()
    done = run_async(log_in(options, alias=alias))
    _update_aliases(known, done)
    if project:
        api.org_targets.set_default(project, done.name)
    if as_json:
        print_json(_login_json(done))
        return
    click.echo(f"Logged in as {done.username} to {done.url} (org {done.org_id}, API version {done.api_version}).")
    note(Suggestion("Use it", "deploy", *(() if project else ("--target-org", done.name))))


def _update_aliases(known: Sequence[Login], done: Login) -> None:
    """Report logins that lost their alias; a project's default keeps its login when the alias changes."""
    for before in known:
        if (before.username.casefold(), before.url) == (done.username.casefold(), done.url):
            if before.alias in {"", done.alias}:
                continue
            note(f"The alias of this login was {before.alias}; now it is {done.alias}.")
            if _default_here() == before.alias:
                api.org_targets.set_default(find_project(Path.cwd()), done.name)
                note(f"It is still the project's default: evalmeta org default {done.name}")
        elif before.alias and before.alias == done.alias:
            warn(f"{before.alias} was the alias of {before.username} at {before.url}, which has no alias now")


@click.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the saved logins, without their secrets.

    The project's default is marked with *.

    \b
    evalmeta org list
    """
    found = api.logins.list_logins()
    chosen = _default_here()
    if as_json:
        print_json([{**_login_json(stored), "isDefault": chosen in _names(stored)} for stored in found])
        return
    if not found:
        note("No logins are saved; the project's own org needs none. To log in, see: evalmeta org login --help")
    rows = [
        ("*" if chosen in _names(stored) else "", stored.alias, stored.username, stored.org_id, stored.url)
        for stored in found
    ]
    print_table(["", "Alias", "Username", "Org Id", "Instance URL"], rows)


@click.command()
@target_org_option
@json_option
def display(*, target_org: str | None, as_json: bool) -> int:
    """Show a login, and whether the org still accepts it.

    Secrets are not shown.

    \b
    evalmeta org display --target-org dev
    """
    chosen = api.org_targets.is_named(target_org) or _default_here()
    if not chosen or chosen == "embedded":
        raise click.UsageError("Name a login with --target-org; the project's own org needs none.")
    found = api.logins.find_login(chosen)
    status = run_async(api.logins.status_of(found))
    code = EXIT_PASSED if status == "Connected" else EXIT_ORG
    if as_json:
        print_json({**_login_json(found), "connectedStatus": status}, status=code)
        return code
    rows = [
        ("Alias", found.alias),
        ("Username", found.username),
        ("Org Id", found.org_id),
        ("Instance URL", found.url),
        ("Api Version", found.api_version),
        ("Session", _renewal_words(found)),
        ("Connected Status", status),
    ]
    print_table(["Key", "Value"], [row for row in rows if row[1]])
    return code


@click.command()
@click.option("-o", "--target-org", metavar="NAME_OR_ALIAS", help="The login to delete.")
@click.option("--all", "everything", is_flag=True, help="Delete all logins.")
@json_option
def logout(*, target_org: str | None, everything: bool, as_json: bool) -> None:
    """Delete a login and its secrets.

    The session in the org stays valid: revoke it there if others may know it.

    \b
    evalmeta org logout --target-org dev
    evalmeta org logout --all
    """
    if everything == bool(target_org):
        raise click.UsageError("Name a login with --target-org, or use --all.")
    gone = api.logins.list_logins() if everything else [api.logins.find_login(target_org or "")]
    chosen = _default_here()
    for login in gone:
        api.logins.log_out(login)
        if chosen in _names(login):
            warn(f"{chosen} is still this project's default. To unset it, run: evalmeta org default --unset")
    if as_json:
        print_json([removed.username for removed in gone])
        return
    for removed in gone:
        click.echo(f"Deleted the login {removed.username} at {removed.url}.")


@click.command()
@click.argument("name", required=False, metavar="[NAME_OR_ALIAS]")
@click.option("--unset", is_flag=True, help="Remove the choice, so that evalmeta.toml decides.")
@json_option
def default(*, name: str | None, unset: bool, as_json: bool) -> None:
    """Choose or show the org that the project's commands use.

    'embedded' is the project's own org. The choice is saved in .evalmeta, for you alone.
    A team's default is set in evalmeta.toml: [org] default = "dev".

    \b
    evalmeta org default dev
    evalmeta org default embedded
    evalmeta org default
    """
    if name and unset:
        raise click.UsageError("NAME and --unset cannot be combined.")
    project = find_project(Path.cwd())
    if name or unset:
        api.org_targets.set_default(project, name or "")
    chosen = api.org_targets.default_of(project) or EMBEDDED
    environment = api.org_targets.org_of_environment()
    if as_json:
        print_json({"default": chosen, "environment": environment or None})
        return
    click.echo(f"Commands in {project.root.name} use: {environment or chosen}")
    if environment:
        note(f"This is set in the environment; otherwise they use {chosen}.")
    is_known = chosen == EMBEDDED or any(
        chosen == stored.alias or chosen.casefold() == stored.username.casefold() for stored in api.logins.list_logins()
    )
    if not is_known:
        warn(f"the login {chosen!r} cannot be found here. To choose another, see: evalmeta org default --help")


def _login_json(found: Login) -> JsonObject:
    return {
        "username": found.username,
        "alias": found.alias or None,
        "orgId": found.org_id,
        "instanceUrl": found.url,
        "apiVersion": found.api_version,
        "canRenew": found.renewal is not None,
    }


def _renewal_words(found: Login) -> str:
    match found.renewal:
        case None:
            return "an access token; log in again when it expires"
        case ByKey():
            return f"renewed with the key {found.renewal.key_file}"
        case BySf():
            return f"renewed by sf ({found.renewal.org})"
        case _:
            return "renewed with a refresh token"


def _names(found: Login) -> set[str]:
    return {found.alias, found.username} - {""}


def _default_here() -> str:
    try:
        return api.org_targets.default_of(find_project(Path.cwd()))
    except ProjectError:
        return ""
