"""The org that a command talks to: its option, its line on stderr, its connection."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from evalmeta.cli.calls import remember_target
from evalmeta.cli.output import note, say_target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evalmeta.api.targets import Target
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project

__all__ = ["choose_target", "connected", "target_org_option"]


def _complete_login(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from evalmeta.api.logins import list_logins  # noqa: PLC0415 - not needed for --help
    from evalmeta.api.targets import EMBEDDED  # noqa: PLC0415 - likewise

    return [name for name in (*(each.name for each in list_logins()), EMBEDDED) if name.startswith(begun)]


target_org_option = click.option(
    "-o",
    "--target-org",
    metavar="NAME_OR_ALIAS",
    callback=remember_target,
    shell_complete=_complete_login,
    help="The login to use, or 'embedded'.  [default: SF_TARGET_ORG, the project's default, the embedded org]",
)


def choose_target(project: Project, target_org: str | None) -> Target | None:
    """Gives the org to talk to, None for the embedded one, and says which it is."""
    from evalmeta.api import targets  # noqa: PLC0415 - not needed for --help

    target = targets.choose_target(project, target_org)
    say_target(project, target)
    return target


@asynccontextmanager
async def connected(
    project: Project, target: Target | None, *, api_version: ApiVersion | None = None, detached: bool = False
) -> AsyncIterator[Connection]:
    """Opens the connection; remarks on it go to stderr."""
    from evalmeta.api import orgs  # noqa: PLC0415 - not needed for --help

    async with orgs.connect(
        project, target, api_version=api_version, detached=detached, remark=lambda text: note(f"Warning: {text}")
    ) as connection:
        yield connection
