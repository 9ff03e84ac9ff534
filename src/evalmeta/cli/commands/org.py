"""`evalmeta org`: logins to orgs, and an org of one's own."""

from __future__ import annotations

from typing import Final

import click

from evalmeta.cli.groups import LazyGroup

_LOGINS: Final = "evalmeta.cli.commands.org_logins"
_SERVER: Final = "evalmeta.cli.commands.org_server"


@click.group(
    cls=LazyGroup,
    rows={
        "default": f"{_LOGINS}:default",
        "display": f"{_LOGINS}:display",
        "list": f"{_LOGINS}:list_",
        "login": f"{_LOGINS}:login",
        "logout": f"{_LOGINS}:logout",
        "reset": f"{_SERVER}:reset",
        "start": f"{_SERVER}:start",
        "status": f"{_SERVER}:status",
        "stop": f"{_SERVER}:stop",
        "token": f"{_SERVER}:token",
    },
)
def org() -> None:
    """Log in to orgs and choose one; serve an org of your own."""
