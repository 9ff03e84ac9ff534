"""`evalmeta org login|list|display|logout|default`: logins to orgs that are not the project's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.jobs import run_async
from evalmeta.cli.logins import log_in, login_options
from evalmeta.cli.options import target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_table
from evalmeta.errors import EXIT_ORG, EXIT_PASSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.cli.logins import LoginOptions
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import Login
    from evalmeta.package.project import Project


@click.command()
@login_options
@click.option("-a", "--alias", default="", help="A name of your own for the login.")
@click.option("-s", "--set-default", is_flag=True, help="Make it the project's default org.")
@json_option
def login(options: LoginOptions, *, alias: str, set_default: bool, as_json: bool) -> None:
    """Log in to an org and keep the login, for --target-org of other commands.

    Without a method the access token is read from SF_ACCESS_TOKEN, or else from standard
    input. No option takes a token: others could read it. Secrets are kept in the
    system's keyring (extra `keyring`), or in a file that only you may read.

    \b
    evalmeta org login --instance-url https://mycompany.my.salesforce.com --alias dev
    evalmeta org login --jwt-key-file server.key --client-id 3MVG9... --username ci@example.com
    evalmeta org login --sfdx-url-file auth.txt --alias ci
    evalmeta org login --web --alias dev --set-default
    evalmeta org login --from-sf dev
    """
    from evalmeta.api import logins, org_targets  # noqa: PLC0415 - not needed for --help

    logins.check_alias(alias)
    project = _project() if set_default else None
    known = logins.list_logins()
    done = run_async(log_in(options, alias=alias))
    _follow_names(known, done)
    if project:
        org_targets.set_default(project, done.name)
    if as_json:
        print_json(_login_json(done))
        return
    click.echo(f"Logged in as {done.username} to {done.url} (org {done.org_id}, API version {done.api_version}).")
    note(f"Use it: evalmeta deploy{'' if project else f' --target-org {done.name}'}")


def _follow_names(known: Sequence[Login], done: Login) -> None:
    """Says whose alias went to a login, and lets the project's default follow a login that has a new one."""
    from evalmeta.api import org_targets  # noqa: PLC0415 - not needed for --help

    for before in known:
        if (before.username.casefold(), before.url) == (done.username.casefold(), done.url):
            if before.alias in {"", done.alias}:
                continue
            note(f"This login was known as {before.alias}; its alias is {done.alias} now.")
            if _default_here() == before.alias:
                org_targets.set_default(_project(), done.name)
                note(f"It stays the project's default: evalmeta org default {done.name}")
        elif before.alias and before.alias == done.alias:
            note(f"Warning: {before.alias} was the alias of {before.username} at {before.url}, which has none now.")


@click.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the logins that are kept, without their secrets; * marks the project's default.

    \b
    evalmeta org list
    """
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help

    found = logins.list_logins()
    chosen = _default_here()
    if as_json:
        print_json([{**_login_json(each), "isDefault": chosen in _names(each)} for each in found])
        return
    if not found:
        note("No logins; the project's own org needs none. Log in: evalmeta org login --help")
    rows = [("*" if chosen in _names(each) else "", each.alias, each.username, each.org_id, each.url) for each in found]
    print_table(["", "Alias", "Username", "Org Id", "Instance URL"], rows)


@click.command()
@target_org_option
@json_option
def display(*, target_org: str | None, as_json: bool) -> int:
    """Show a login and whether the org still takes it; no secret is shown.

    \b
    evalmeta org display --target-org dev
    """
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help

    found = logins.find_login(_named(target_org))
    status = run_async(logins.status_of(found))
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
@click.option("-o", "--target-org", metavar="NAME_OR_ALIAS", help="The login to forget.")
@click.option("--all", "everything", is_flag=True, help="Forget all logins.")
@json_option
def logout(*, target_org: str | None, everything: bool, as_json: bool) -> None:
    """Forget a login and its secrets. The org is not told: revoke the session there if it may be known to others.

    \b
    evalmeta org logout --target-org dev
    evalmeta org logout --all
    """
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help

    if everything == bool(target_org):
        raise click.UsageError("Name a login with --target-org, or take --all.")
    gone = logins.list_logins() if everything else [logins.find_login(target_org or "")]
    chosen = _default_here()
    for each in gone:
        logins.log_out(each)
        if chosen in _names(each):
            note(f"Warning: {chosen} is still this project's default. Take that back: evalmeta org default --unset")
    if as_json:
        print_json([each.username for each in gone])
        return
    for each in gone:
        click.echo(f"Forgot {each.username} at {each.url}.")


@click.command()
@click.argument("name", required=False, metavar="[NAME_OR_ALIAS]")
@click.option("--unset", is_flag=True, help="Take the choice back; evalmeta.toml decides then.")
@json_option
def default(*, name: str | None, unset: bool, as_json: bool) -> None:
    """Choose the org that this project's commands talk to, or show it; 'embedded' is the project's own.

    The choice is yours alone (it is kept in .evalmeta). A team's stands in evalmeta.toml:
    [org] default = "dev".

    \b
    evalmeta org default dev
    evalmeta org default embedded
    evalmeta org default
    """
    from evalmeta.api import org_targets  # noqa: PLC0415 - not needed for --help

    if name and unset:
        raise click.UsageError("NAME and --unset exclude each other.")
    project = _project()
    if name or unset:
        org_targets.set_default(project, name or "")
    chosen = org_targets.default_of(project) or org_targets.EMBEDDED
    environment = org_targets.org_of_environment()
    if as_json:
        print_json({"default": chosen, "environment": environment or None})
        return
    click.echo(f"Commands in {project.root.name} talk to: {environment or chosen}")
    if environment:
        note(f"The environment says so; without it they talk to {chosen}.")
    if chosen != org_targets.EMBEDDED and not _is_known(chosen):
        note(f"Warning: no login {chosen} is known here. Choose another: evalmeta org default --help")


def _is_known(name: str) -> bool:
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help

    return any(name == each.alias or name.casefold() == each.username.casefold() for each in logins.list_logins())


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
    from evalmeta.model.login import ByKey, BySf  # noqa: PLC0415 - not needed for --help

    match found.renewal:
        case None:
            return "an access token; log in again when it ends"
        case ByKey():
            return f"renewed with the key {found.renewal.key_file}"
        case BySf():
            return f"renewed by sf ({found.renewal.org})"
        case _:
            return "renewed with a refresh token"


def _names(found: Login) -> set[str]:
    return {found.alias, found.username} - {""}


def _named(target_org: str | None) -> str:
    from evalmeta.api import org_targets  # noqa: PLC0415 - not needed for --help

    chosen = org_targets.is_named(target_org) or _default_here()
    if not chosen or chosen == "embedded":
        raise click.UsageError("Name a login with --target-org; the project's own org needs none.")
    return chosen


def _default_here() -> str:
    from evalmeta.api import org_targets  # noqa: PLC0415 - not needed for --help
    from evalmeta.errors import ProjectError  # noqa: PLC0415 - likewise

    try:
        return org_targets.default_of(_project())
    except ProjectError:
        return ""


def _project() -> Project:
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    return find_project(Path.cwd())
