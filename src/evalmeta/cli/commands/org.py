"""`evalmeta org`: log in to orgs, and serve the project's own org to other programs."""

from __future__ import annotations

from typing import Final

import click

from evalmeta.cli.groups import LazyGroup

_COMMANDS: Final = {
    "default": ("org_logins:default", "Choose or show the org that the project's commands use."),
    "display": ("org_logins:display", "Show a login, and whether the org still accepts it."),
    "list": ("org_logins:list_", "List the saved logins, without their secrets."),
    "login": ("org_logins:login", "Log in to an org and save the login for use with --target-org."),
    "logout": ("org_logins:logout", "Delete a login and its secrets."),
    "reset": ("org_server:reset", "Delete everything in the project's org except users and tokens."),
    "start": ("org_server:start", "Serve the project's org to other programs, such as the sf CLI."),
    "status": ("org_server:status", "Show whether the project's org is served, where, and what it contains."),
    "stop": ("org_server:stop", "Stop the server of the project's org."),
    "token": ("org_server:token", "Create an access token for the project's org."),
}


@click.group(cls=LazyGroup, module="evalmeta.cli.commands", rows=_COMMANDS)
def org() -> None:
    """Log in to orgs and choose one, or serve the project's own org."""
