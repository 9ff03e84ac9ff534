"""`evalmeta org start|stop|status|reset|token`: serve the project's own org to other programs."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api, limits
from evalmeta.cli.options import IntRange
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import json_option, note, print_json, print_table, warn
from evalmeta.errors import Suggestion, UsageError
from evalmeta.org.serving.endpoint import Certificate, Endpoint
from evalmeta.package.project import find_project
from evalmeta.protocol.json_fields import host_of, is_loopback, to_timestamp
from evalmeta.report.text import attributes_json, count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.api.servers import ServerStatus
    from evalmeta.org.serving.server_file import Server
    from evalmeta.store.users import StoredToken


_FILE: Final = click.Path(path_type=Path)
_PORT: Final = 8160
# The process that `--detach` starts.
_SERVER: Final = "evalmeta.viewer.server"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address or host name to listen on.")
@click.option("--port", type=IntRange(0, 65535), default=_PORT, show_default=True, help="0 uses any free port.")
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME[:PORT]",
    help="Another host name that clients may use, with any port or only with this one; repeatable.",
)
@click.option("--certfile", type=_FILE, metavar="FILE", help="Speak TLS (https) with this certificate, in PEM format.")
@click.option("--keyfile", type=_FILE, metavar="FILE", help="The certificate's private key, in PEM format.")
@click.option("--detach", is_flag=True, help="Start it in the background, and return when it is ready.")
@json_option
def start(
    host: str,
    port: int,
    *,
    names: tuple[str, ...],
    certfile: Path | None,
    keyfile: Path | None,
    detach: bool,
    as_json: bool,
) -> None:
    """Serve the project's org to other programs, such as the sf CLI.

    Any client of Salesforce's APIs can use it. Ctrl-C or `evalmeta org stop` stops it;
    runs in progress continue, and waiting runs start when it is started again.

    \b
    evalmeta org start
    evalmeta org start --port 9000 --detach
    evalmeta org start --host org.example.com --certfile server.crt --keyfile server.key
    """
    project = find_project(Path.cwd())
    certificate = _certificate(certfile, keyfile)
    endpoint = Endpoint(host, port, names, certificate)
    if not is_loopback(host) and certificate is None:
        warn(f"{host} can be reached from other machines, and connections are not encrypted")
    end = "evalmeta org stop" if detach else "Ctrl-C, or evalmeta org stop"

    def show(server: Server) -> None:
        if as_json:
            print_json({**_json_of(server), "data": str(project.state_dir)})
        else:
            click.echo(_how_to_use(server.url, project.state_dir, end=end))
            if not is_loopback(host):
                note("On other machines, use this machine's name as the host, and start with --allow-host NAME.")
        sys.stdout.flush()
        stored, now = api.servers.list_tokens(project), time.time()
        _warn_of_void(token for token in stored if token.revoked is None and token.expires > now)
        if certificate is not None:
            _explain_trust(certificate, host_of(server.url))

    if detach:
        show(api.servers.start_server(project, _SERVER, endpoint))
        return
    from evalmeta.viewer.server import serve_org

    run_async(serve_org(project, endpoint, on_start=show, logs_to_stderr=True))
    note("Stopped.")


@click.command()
@json_option
def stop(*, as_json: bool) -> None:
    """Stop the server of the project's org.

    Runs in progress continue.

    \b
    evalmeta org stop
    """
    project = find_project(Path.cwd())
    server = api.servers.stop_server(project)
    if as_json:
        print_json({"stopped": server is not None, "url": server.url if server else None})
        return
    click.echo(f"Stopped the server at {server.url}." if server else "No server is running for this project.")


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show whether the project's org is served, where, and what it contains.

    \b
    evalmeta org status
    """
    found = api.servers.server_status(find_project(Path.cwd()))
    if as_json:
        numbers = attributes_json(found, "components", "runs_in_progress", "runs_waiting")
        print_json({**_json_of(found.server), "answers": found.answers, "data": str(found.data), **numbers})
        return
    print_table(["Property", "Value"], _rows(found))


@click.command()
@click.option("-p", "--no-prompt", is_flag=True, help="Do not ask for confirmation.")
@json_option
def reset(*, no_prompt: bool, as_json: bool) -> None:
    """Delete everything in the project's org except users and tokens.

    Deletes what is deployed, and all jobs, runs and results.

    \b
    evalmeta org reset --no-prompt
    """
    project = find_project(Path.cwd())
    if not no_prompt:
        if not sys.stdin.isatty():
            raise UsageError(
                "the reset must be confirmed in a terminal; nothing was deleted",
                actions=["To reset without confirmation, run: evalmeta org reset --no-prompt"],
            )
        click.confirm(f"Delete everything in the org of {project.root.name}?", abort=True, err=True)
    api.servers.reset_org(project)
    if as_json:
        print_json({"data": str(project.state_dir)})
        return
    click.echo("The org is empty.")


@click.command()
@click.option(
    "--user", metavar="NAME", help="The user, created if needed. With --list: whose tokens.  [default: the admin]"
)
@click.option(
    "--expires-in",
    "days",
    type=IntRange(1, limits.MAX_TOKEN_DAYS),
    help=f"Days until it expires.  [default: {limits.TOKEN_DAYS}]",
)
@click.option("--list", "lists", is_flag=True, help="List the tokens, without their secrets.")
@click.option("--revoke", "token_id", metavar="ID", help="Revoke a token by the id that --list shows.")
@json_option
def token(*, user: str | None, days: int | None, lists: bool, token_id: str | None, as_json: bool) -> None:
    """Create an access token for the project's org.

    Only the token is printed to stdout. It is valid only for that org: create it in the
    project that serves the org.

    \b
    export SF_ACCESS_TOKEN="$(evalmeta org token)"
    evalmeta org token --user ci --expires-in 7
    evalmeta org token --list
    evalmeta org token --revoke 1f0c2ab34d56
    """
    _check_token_options(user=user, days=days, lists=lists, token_id=token_id)
    project = find_project(Path.cwd())
    if lists:
        _print_tokens(api.servers.list_tokens(project, username=user), as_json=as_json)
    elif token_id is not None:
        api.servers.revoke_token(project, token_id)
        if as_json:
            print_json({"id": token_id, "revoked": True})
        else:
            click.echo(f"Token {token_id} is revoked.")
    else:
        days = days or limits.TOKEN_DAYS
        server, where = api.servers.server_of(project), "which is not served (to serve it, run: evalmeta org start)"
        if server:
            where = f"served at {server.url}"
        note(f"For the org of {project.root}, {where}.")
        made = api.servers.make_token(project, username=user, days=days)
        if as_json:
            print_json({"accessToken": made, "expiresInDays": days})
            return
        note(f"Expires in {count(days, 'day')}. It cannot be shown again: only its hash is stored.")
        click.echo(made)


def _certificate(certfile: Path | None, keyfile: Path | None) -> Certificate | None:
    if (certfile is None) != (keyfile is None):
        raise click.UsageError("TLS needs both --certfile and --keyfile.")
    return None if certfile is None or keyfile is None else Certificate(_resolved(certfile), _resolved(keyfile))


def _resolved(path: Path) -> Path:
    """Return the absolute path of a file without `..`; a link stays, because certificates are renewed behind it."""
    return path.parent.resolve() / path.name


def _explain_trust(certificate: Certificate, host: str) -> None:
    """Say why clients will refuse the certificate, or how they accept it."""
    if reason := certificate.refusal(host):
        warn(f"clients will refuse the certificate at this address: {reason}")
        if "mismatch" in reason:
            note("Start with --host NAME or --allow-host NAME, and use that name: one that is in the certificate.")
    elif not certificate.is_trusted(host):
        names = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
        variables = " ".join(f"{name}={shlex.quote(str(certificate.certfile))}" for name in names)
        note("This machine does not trust the certificate. evalmeta, sf and Python's requests accept it after:")
        note(f"  export {variables}")


def _check_token_options(*, user: str | None, days: int | None, lists: bool, token_id: str | None) -> None:
    if lists and token_id is not None:
        raise click.UsageError("--list and --revoke cannot be combined.")
    if token_id is not None and user is not None:
        raise click.UsageError("--revoke and --user cannot be combined.")
    if days is not None and (lists or token_id is not None):
        raise click.UsageError("--expires-in is for a new token.")


def _how_to_use(url: str, data: Path, *, end: str) -> str:
    make = '"$(evalmeta org token)"'
    return f"""\
The org of this project is served at {url}
Data  {data}
Log   {data / "logs" / "server.log"}

Look at tests and runs in a browser: {url}/view (log in with a token: evalmeta org token)

Log in with evalmeta:
  SF_ACCESS_TOKEN={make} evalmeta org login --instance-url {url}

Log in with sf:
  SF_ACCESS_TOKEN={make} sf org login access-token --instance-url {url} --no-prompt

Or use it without a login:
  export SF_ORG_INSTANCE_URL={url} SF_TARGET_ORG={make}
  export FORCE_SFDC_LOGIN_URL=https://login.salesforce.com
  sf project deploy start

Stop it: {end}"""


def _json_of(server: Server | None) -> dict[str, str | int | bool | None]:
    if server is None:
        return {"running": False, "url": None, "pid": None, "started": None}
    return {"running": True, "url": server.url, "pid": server.pid, "started": to_timestamp(server.started)}


def _rows(found: ServerStatus) -> list[tuple[str, str]]:
    rows = [("Server", "not running")]
    if found.server is not None:
        state = "running" if found.answers else "running, but does not respond"
        started = to_timestamp(found.server.started)
        rows = [("Server", state), ("URL", found.server.url), ("Process", str(found.server.pid)), ("Started", started)]
    return [
        *rows,
        ("Data", str(found.data)),
        ("Components", str(found.components)),
        ("Runs in progress", str(found.runs_in_progress)),
        ("Runs waiting", str(found.runs_waiting)),
    ]


def _print_tokens(tokens: list[StoredToken], *, as_json: bool) -> None:
    if as_json:
        names = ("id", "username", "created", "expires", "lastUsed", "revoked", "void")
        print_json(
            [
                dict(zip(names, (token.id, token.username, *_times(token), token.is_void), strict=True))
                for token in tokens
            ]
        )
        return
    if not tokens:
        click.echo("There are no tokens. To create one, run: evalmeta org token")
    rows = [
        (
            *(token.id, token.username),
            *((text or "")[:16].replace("T", " ") for text in _times(token)),
            "void" * token.is_void,
        )
        for token in tokens
    ]
    print_table(["Id", "User", "Created (UTC)", "Expires", "Last used", "Revoked", ""], rows)
    _warn_of_void(tokens)


def _times(token: StoredToken) -> list[str | None]:
    times = (token.created, token.expires, token.used, token.revoked)
    return [None if time is None else to_timestamp(time) for time in times]


def _warn_of_void(tokens: Iterable[StoredToken]) -> None:
    if void := sum(token.is_void for token in tokens):
        what = "1 token is void: it was" if void == 1 else f"{void} tokens are void: they were"
        note(Suggestion(f"{what} created for another folder or by another user. Create a new one", "org", "token"))
