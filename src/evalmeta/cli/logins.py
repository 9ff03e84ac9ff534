"""The ways to log in, as options of `evalmeta org login`, and where secrets are read from."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import limits
from evalmeta.cli.output import note

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Coroutine

    from evalmeta.model.login import Login


_SESSION: Final = "access token"
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_OPTIONS: Final = (
    click.option("-r", "--instance-url", metavar="URL", help="Where people log in to the org, or its own address."),
    click.option("-f", "--jwt-key-file", type=_FILE, help="An RSA private key; with --client-id and --username."),
    click.option("-i", "--client-id", metavar="ID", help="The consumer key of your connected app."),
    click.option("--username", metavar="NAME", help="As whom to log in with the key."),
    click.option("--sfdx-url-stdin", is_flag=True, help="Read an sfdx auth URL from standard input."),
    click.option("--sfdx-url-file", type=_FILE, help="Read an sfdx auth URL from a file, or from sf's JSON in it."),
    click.option("--web", is_flag=True, help="Log in with a browser."),
    click.option("--no-browser", is_flag=True, help="With --web: print the address and open nothing."),
    click.option("--callback-port", type=click.IntRange(0, 65535), metavar="PORT", help="With --web.  [default: 1717]"),
    click.option("--from-sf", metavar="NAME_OR_ALIAS", help="Take over a session of an installed sf CLI."),
)
# Each way, and the options that go with it; the last one needs no option.
_WAYS: Final = {
    "jwt_key_file": ("instance_url", "client_id", "username"),
    "sfdx_url_stdin": (),
    "sfdx_url_file": (),
    "web": ("instance_url", "client_id", "no_browser", "callback_port"),
    "from_sf": (),
    "": ("instance_url",),
}


# A process of its own, because Python's opener hands its whole environment on.
_OPENER: Final = (sys.executable, "-P", "-c", "import sys, webbrowser; webbrowser.open(sys.argv[1])")
# Held so that nobody takes a browser that stays open for a process that was forgotten.
_BROWSERS: Final[list[subprocess.Popen[bytes]]] = []


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """What was given to `org login`; `way` is the option that chose the way, empty for an access token."""

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
        """Gives the address, from the environment if it was not given; empty when there is none."""
        return self.instance_url or os.environ.get("SF_ORG_INSTANCE_URL", "")

    def way(self) -> str:
        """Gives the way to log in.

        Raises:
            click.UsageError: there are several, or options that do not go with it.
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = [name for name, value in values.items() if value is not None and value is not False]
        chosen = [name for name in given if name in _WAYS]
        if len(chosen) > 1:
            raise click.UsageError(f"{' and '.join(map(_flag, chosen))} exclude each other.")
        way = chosen[0] if chosen else ""
        for stray in (name for name in given if name not in {way, *_WAYS[way]}):
            raise click.UsageError(f"{_flag(stray)} does not go with {_flag(way) if way else 'an access token'}.")
        return way


def login_options(command: Callable[..., None]) -> Callable[..., None]:  # type: ignore[explicit-any]
    """Adds the options, and gives the command what they say as its `options`."""

    @wraps(command)
    def run(*, alias: str, set_default: bool, as_json: bool, **given: object) -> None:
        options = LoginOptions(**given)  # type: ignore[arg-type] # click has checked them
        command(options, alias=alias, set_default=set_default, as_json=as_json)

    decorated: Callable[..., None] = run  # type: ignore[explicit-any]
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def log_in(options: LoginOptions, *, alias: str) -> Coroutine[None, None, Login]:
    """Gives the work of logging in as the options say; secrets are read before it begins.

    Raises:
        click.UsageError: options contradict each other, or something is missing.
    """
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help

    match options.way():
        case "jwt_key_file":
            return _with_key(options, alias)
        case "sfdx_url_stdin" | "sfdx_url_file":
            return logins.log_in_with_auth_url(_auth_url(options.sfdx_url_file), alias=alias)
        case "web":
            return _with_web(options, alias)
        case "from_sf":
            return logins.log_in_with_sf(options.from_sf or "", alias=alias)
        case _:
            if not options.url:
                raise click.UsageError("An access token needs --instance-url, or SF_ORG_INSTANCE_URL.")
            token = os.environ.get("SF_ACCESS_TOKEN", "").strip() or _read_secret(_SESSION)
            return logins.log_in_with_token(options.url, token, alias=alias)


def _with_key(options: LoginOptions, alias: str) -> Coroutine[None, None, Login]:
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help

    if not (options.jwt_key_file and options.client_id and options.username):
        raise click.UsageError("--jwt-key-file needs --client-id and --username.")
    return logins.log_in_with_key(
        options.jwt_key_file.absolute(),
        options.client_id,
        options.username,
        url=options.url,
        audience=os.environ.get("SF_AUDIENCE_URL", ""),
        alias=alias,
    )


def _with_web(options: LoginOptions, alias: str) -> Coroutine[None, None, Login]:
    from evalmeta.api import logins  # noqa: PLC0415 - not needed for --help
    from evalmeta.client.auth import CALLBACK_PORT  # noqa: PLC0415 - likewise

    return logins.log_in_with_web(
        show=_print_address if options.no_browser else _open_address,
        url=options.url,
        client_id=options.client_id or "",
        client_secret=os.environ.get("EVALMETA_CLIENT_SECRET", ""),
        port=CALLBACK_PORT if options.callback_port is None else options.callback_port,
        alias=alias,
    )


def _print_address(address: str) -> None:
    note(f"Open this address to log in, within {limits.WEB_LOGIN_SECONDS:g} seconds:\n{address}")


def _open_address(address: str) -> None:
    import subprocess  # noqa: PLC0415 - not needed for --help

    from evalmeta.model.redaction import child_environment  # noqa: PLC0415 - likewise

    _print_address(address)
    # Some browsers run in the terminal and come back only when they are left.
    _BROWSERS.append(subprocess.Popen([*_OPENER, address], env=child_environment()))  # noqa: S603 - our own words


def _auth_url(file: Path | None) -> str:
    from evalmeta.api.logins import auth_url_in  # noqa: PLC0415 - not needed for --help
    from evalmeta.errors import UsageError  # noqa: PLC0415 - likewise
    from evalmeta.package.config_file import read_text  # noqa: PLC0415 - likewise

    return auth_url_in(read_text(file, raises=UsageError) if file else _read_secret("sfdx auth URL"))


def _read_secret(what: str) -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt(what[0].upper() + what[1:], hide_input=True, err=True)
        return typed.strip()
    secret = sys.stdin.read(limits.MAX_LOGIN_BYTES).strip()
    if not secret:
        otherwise = ", when SF_ACCESS_TOKEN does not" if what == _SESSION else ""
        raise click.UsageError(f"Standard input is empty; it should hold the {what}{otherwise}.")
    return secret


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
