"""`evalmeta org start|stop|status|reset|token`: an org of one's own, served to others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import limits
from evalmeta.cli.jobs import run_async
from evalmeta.cli.output import json_option, note, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.api.servers import ServerStatus
    from evalmeta.org.server import Server
    from evalmeta.package.project import Project
    from evalmeta.store.users import StoredToken


_PORT: Final = 8160
_ALLOW: Final = "start with --allow-host NAME so that it is let in"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address or name to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 takes any port that is free."
)
@click.option(
    "--allow-host", "names", multiple=True, metavar="NAME", help="Another name that callers may use; repeatable."
)
@click.option("--detach", is_flag=True, help="Leave it running and come back as soon as it answers.")
@json_option
def start(host: str, port: int, *, names: tuple[str, ...], detach: bool, as_json: bool) -> None:
    """Serve the project's org to other programs: this one, the sf CLI, whatever speaks Salesforce's APIs.

    Ctrl-C ends it, and so does `evalmeta org stop`; runs in progress go on by themselves,
    and what waited is taken up at the next start.

    \b
    evalmeta org start
    evalmeta org start --port 9000 --detach
    """
    from evalmeta.api import servers  # noqa: PLC0415 - not needed for --help

    project = _project()
    if not servers.is_loopback(host):
        note(f"Warning: {host} can be reached from other machines, and what they send is not encrypted.")
    end = "evalmeta org stop" if detach else "Ctrl-C, or evalmeta org stop"
    show = _shower(project, as_json=as_json, end=end, is_here=servers.is_loopback(host))
    if detach:
        show(servers.start_server(project, host=host, port=port, names=names))
        return
    run_async(servers.serve_org(project, host=host, port=port, names=names, on_start=show))
    note("Stopped.")


@click.command()
@json_option
def stop(*, as_json: bool) -> None:
    """End the server of the project's org; runs in progress go on by themselves."""
    from evalmeta.api import servers  # noqa: PLC0415 - not needed for --help

    project = _project()
    server = servers.stop_server(project)
    if as_json:
        print_json({"stopped": server is not None, "url": server.url if server else None})
        return
    click.echo(f"Stopped the server at {server.url}." if server else "No server runs for this project.")


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Tell whether the project's org is served, where, and what it has."""
    from evalmeta.api import servers  # noqa: PLC0415 - not needed for --help

    found = servers.look_at_server(_project())
    if as_json:
        print_json(
            {
                **_json_of(found.server),
                "answers": found.answers,
                "data": str(found.data),
                "components": found.components,
                "runsInProgress": found.runs_in_progress,
                "runsWaiting": found.runs_waiting,
            }
        )
        return
    print_table(["Property", "Value"], _rows(found))


@click.command()
@click.option("-p", "--no-prompt", is_flag=True, help="Do not ask.")
@json_option
def reset(*, no_prompt: bool, as_json: bool) -> None:
    """Empty the project's org: all that is deployed, all jobs, runs and results; users and tokens stay."""
    from evalmeta.api import servers  # noqa: PLC0415 - not needed for --help
    from evalmeta.errors import UsageError  # noqa: PLC0415 - likewise

    project = _project()
    if not no_prompt:
        if not sys.stdin.isatty():
            raise UsageError(
                "emptying the org is confirmed at a terminal only; nothing was deleted",
                actions=["Do it without being asked: evalmeta org reset --no-prompt"],
            )
        click.confirm(f"Delete everything in the org of {project.root.name}?", abort=True, err=True)
    servers.reset_org(project)
    if as_json:
        print_json({"data": str(project.state_dir)})
        return
    click.echo("The org is empty.")


@click.command()
@click.option(
    "--user",
    metavar="NAME",
    help="For whom; made when there is no such user. The admin without it. With --list: whose.",
)
@click.option(
    "--expires-in",
    "days",
    type=click.IntRange(1, limits.MAX_TOKEN_DAYS),
    help=f"Days that it is good for.  [default: {limits.TOKEN_DAYS}]",
)
@click.option("--list", "lists", is_flag=True, help="List the tokens there are; none of them is shown.")
@click.option("--revoke", "token_id", metavar="ID", help="End a token, by the id that --list shows.")
@json_option
def token(*, user: str | None, days: int | None, lists: bool, token_id: str | None, as_json: bool) -> None:
    """Make an access token for the project's org and print it, alone on the last line.

    It is good for that org only: make it in the project that serves the org.

    \b
    export SF_ACCESS_TOKEN="$(evalmeta org token)"
    evalmeta org token --user ci --expires-in 7
    evalmeta org token --list
    evalmeta org token --revoke 1f0c2ab34d56
    """
    from evalmeta.api import servers  # noqa: PLC0415 - not needed for --help

    _check_token_options(user=user, days=days, lists=lists, token_id=token_id)
    project = _project()
    if lists:
        _print_tokens(servers.list_tokens(project, username=user), as_json=as_json)
    elif token_id is not None:
        servers.revoke_token(project, token_id)
        if as_json:
            print_json({"id": token_id, "revoked": True})
        else:
            click.echo(f"Token {token_id} is revoked.")
    else:
        days = days or limits.TOKEN_DAYS
        note(f"For the org of {project.root}, {_where(servers.server_of(project))}.")
        _print_token(servers.make_token(project, username=user, days=days), days, as_json=as_json)


def _check_token_options(*, user: str | None, days: int | None, lists: bool, token_id: str | None) -> None:
    if lists and token_id is not None:
        raise click.UsageError("--list and --revoke exclude each other.")
    if token_id is not None and user is not None:
        raise click.UsageError("--revoke takes a token's id, and no --user.")
    if days is not None and (lists or token_id is not None):
        raise click.UsageError("--expires-in is for a new token.")


def _where(server: Server | None) -> str:
    return f"served at {server.url}" if server else "which is not served (evalmeta org start serves it)"


def _project() -> Project:
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    return find_project(Path.cwd())


def _shower(project: Project, *, as_json: bool, end: str, is_here: bool) -> Callable[[Server], None]:
    def show(server: Server) -> None:
        if as_json:
            print_json({**_json_of(server), "data": str(project.state_dir)})
        else:
            click.echo(_how_to_use(server.url, project.state_dir, end=end))
            if not is_here:
                note(f"For callers on other machines: put this one's name in place of the host, and {_ALLOW}.")
        sys.stdout.flush()

    return show


def _how_to_use(url: str, data: Path, *, end: str) -> str:
    make = '"$(evalmeta org token)"'
    return f"""\
The org of this project answers at {url}
Data  {data}
Log   {data / "logs" / "server.log"}

Log in with evalmeta:
  SF_ACCESS_TOKEN={make} evalmeta org login --instance-url {url}

Log in with sf:
  SF_ACCESS_TOKEN={make} sf org login access-token --instance-url {url} --no-prompt

Or call it without a login:
  export SF_ORG_INSTANCE_URL={url} SF_TARGET_ORG={make}
  export FORCE_SFDC_LOGIN_URL=https://login.salesforce.com
  sf project deploy start

End it: {end}"""


def _json_of(server: Server | None) -> dict[str, str | int | bool | None]:
    from evalmeta.protocol.json_fields import to_timestamp  # noqa: PLC0415 - not needed for --help

    if server is None:
        return {"running": False, "url": None, "pid": None, "started": None}
    return {"running": True, "url": server.url, "pid": server.pid, "started": to_timestamp(server.started)}


def _rows(found: ServerStatus) -> list[tuple[str, str]]:
    from evalmeta.protocol.json_fields import to_timestamp  # noqa: PLC0415 - not needed for --help

    rows = [("Server", "does not run")]
    if found.server is not None:
        state = "answers" if found.answers else "runs, but does not answer"
        started = to_timestamp(found.server.started)
        rows = [("Server", state), ("URL", found.server.url), ("Process", str(found.server.pid)), ("Started", started)]
    return [
        *rows,
        ("Data", str(found.data)),
        ("Components", str(found.components)),
        ("Runs in progress", str(found.runs_in_progress)),
        ("Runs waiting", str(found.runs_waiting)),
    ]


def _print_token(text: str, days: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"accessToken": text, "expiresInDays": days})
        return
    note(f"Good for {days} {'day' if days == 1 else 'days'}. It is shown this once: only its hash is kept.")
    click.echo(text)


def _print_tokens(tokens: list[StoredToken], *, as_json: bool) -> None:
    from evalmeta.protocol.json_fields import to_timestamp  # noqa: PLC0415 - not needed for --help

    def moment(seconds: float | None) -> str | None:
        return None if seconds is None else to_timestamp(seconds)

    if as_json:
        print_json(
            [
                {
                    "id": each.id,
                    "username": each.username,
                    "created": moment(each.created),
                    "expires": moment(each.expires),
                    "lastUsed": moment(each.used),
                    "revoked": moment(each.revoked),
                }
                for each in tokens
            ]
        )
        return
    if not tokens:
        click.echo("There are no tokens. Make one: evalmeta org token")
    times = [(each, map(moment, (each.created, each.expires, each.used, each.revoked))) for each in tokens]
    rows = [(each.id, each.username, *((text or "")[:16].replace("T", " ") for text in four)) for each, four in times]
    print_table(["Id", "User", "Created (UTC)", "Expires", "Last used", "Revoked"], rows)
