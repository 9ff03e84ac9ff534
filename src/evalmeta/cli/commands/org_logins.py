"""`evalmeta org login|list|display|logout|default`: log in to orgs other than the project's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.logins import log_in, login_options
from evalmeta.cli.orgs import run_async, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_table, warn
from evalmeta.errors import EXIT_ORG, EXIT_PASSED, ProjectError, Suggestion
from evalmeta.model.login import EMBEDDED, ByKey, BySf
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.cli.logins import LoginOptions
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import Login


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
