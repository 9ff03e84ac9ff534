"""The methods of logging in, as options of `evalmeta org login`, and reading secrets for them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api, limits
from evalmeta.cli.options import FILE, IntRange, option_group
from evalmeta.cli.output import note
from evalmeta.client.auth import CALLBACK_PORT
from evalmeta.errors import UsageError
from evalmeta.model.redaction import child_environment
from evalmeta.package.config_file import read_text

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from evalmeta.cli.options import Decorator
    from evalmeta.model.login import Login


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
            return _with_key(options, alias)
        case "sfdx_url_stdin" | "sfdx_url_file":
            file = options.sfdx_url_file
            text = read_text(file, raises=UsageError) if file else _read_secret("sfdx auth URL")
            return api.logins.log_in_with_auth_url(api.logins.auth_url_in(text), alias=alias)
        case "web":
            return _with_web(options, alias)
        case "from_sf":
            return api.logins.log_in_with_sf(options.from_sf or "", alias=alias)
        case _:
            if not options.url:
                raise click.UsageError("An access token needs --instance-url, or SF_ORG_INSTANCE_URL.")
            token = os.environ.get("SF_ACCESS_TOKEN", "").strip() or _read_secret(_SESSION)
            return api.logins.log_in_with_token(options.url, token, alias=alias)


def _with_key(options: LoginOptions, alias: str) -> Coroutine[None, None, Login]:
    if not (options.jwt_key_file and options.client_id and options.username):
        raise click.UsageError("--jwt-key-file needs --client-id and --username.")
    return api.logins.log_in_with_key(
        options.jwt_key_file.absolute(),
        options.client_id,
        options.username,
        url=options.url,
        audience=os.environ.get("SF_AUDIENCE_URL", ""),
        alias=alias,
    )


def _with_web(options: LoginOptions, alias: str) -> Coroutine[None, None, Login]:
    return api.logins.log_in_with_web(
        show=_print_address if options.no_browser else _open_address,
        url=options.url,
        client_id=options.client_id or "",
        client_secret=os.environ.get("EVALMETA_CLIENT_SECRET", ""),
        port=CALLBACK_PORT if options.callback_port is None else options.callback_port,
        alias=alias,
    )


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
