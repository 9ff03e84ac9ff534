"""Secrets that are planted, orgs that repeat them, and a machine of one's own in which they are looked for."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

import orjson

from client.servers import http_reply
from evalmeta.client.logins import Logins
from evalmeta.model.login import ByRefreshToken, Login, Secrets
from evalmeta.protocol.soap import write_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["CANARIES", "FAILURES", "MARK", "Machine", "Said", "canary", "echo"]

# Each canary has it in the middle, so that pieces are found as well.
MARK = "kq7w2zj9x4vbn5"
_SESSION = "00D000000000001!AQ4."


def canary(kind: str) -> str:
    """Gives a secret of a kind; the kind can be read in it."""
    return f"{kind}{MARK}{kind}"


CANARIES = {
    "access token": _SESSION + canary("access"),
    "refresh token": "5Aep861" + canary("refresh"),
    "client secret": canary("secret"),
    "auth URL": f"force://3MVG9.client:{canary('urlsecret')}:5Aep861{canary('urlrefresh')}@",
    "password": canary("password"),
    "query": _SESSION + canary("query"),
    "environment": _SESSION + canary("environment"),
}
_SECRET = re.compile(
    r"Bearer (\S+)|<sessionId>([^<]+)|(?:assertion|refresh_token|client_secret|code|code_verifier)=([^&\s]+)"
)
# Runs first in every Python process: notes how it was started, logs everything, and does not wait for long.
_WITNESS = """\
import json, logging, os, sys, tempfile
with open(tempfile.mkstemp(dir=os.environ["WITNESS"], suffix=".json")[0], "w") as file:
    json.dump({"parent": os.getppid(), "words": sys.orig_argv, "environment": dict(os.environ)}, file)
logging.basicConfig(level=logging.DEBUG)
from evalmeta import limits
limits.HTTP_TIMEOUT_SECONDS = float(os.environ.get("PATIENCE", "30"))
"""
# A keyring that keeps what it has in a file of its own.
_RING = """\
import json, os, pathlib
from keyring.backend import KeyringBackend
FILE = pathlib.Path(os.environ["RING"])
class Ring(KeyringBackend):
    priority = 9
    def get_password(self, service, username):
        return self._kept().get(service + username)
    def set_password(self, service, username, password):
        FILE.write_text(json.dumps(self._kept() | {service + username: password}))
    def delete_password(self, service, username):
        FILE.write_text(json.dumps({key: kept for key, kept in self._kept().items() if key != service + username}))
    def _kept(self):
        return json.loads(FILE.read_text()) if FILE.exists() else {}
"""


def echo(request: bytes) -> str:
    """Gives the secrets in a request, in one line."""
    return " ".join("".join(found) for found in _SECRET.findall(unquote_plus(request.decode("latin-1"))))


def _json(status: int, content: object) -> bytes:
    return http_reply(status, orjson.dumps(content), "Content-Type: application/json")


def _redirect(address: str) -> bytes:
    return http_reply(302, b"", f"Location: {address}", f"Set-Cookie: sid={address}")


FAILURES: dict[str, Callable[[str], bytes]] = {
    "401": lambda told: _json(401, [{"errorCode": "INVALID_SESSION_ID", "message": f"Bearer {told} has expired"}]),
    "500 for REST": lambda told: _json(500, [{"errorCode": "UNKNOWN_EXCEPTION", "message": f"Authorization: {told}"}]),
    "400 for OAuth": lambda told: _json(400, {"error": "invalid_grant", "error_description": f"not good: {told}"}),
    "SOAP fault": lambda told: http_reply(500, write_fault("UNKNOWN_EXCEPTION", f"no such sessionId: {told}")),
    "busy": lambda told: http_reply(503, write_fault("SERVER_UNAVAILABLE", f"later, {told}")),
    "HTML": lambda told: http_reply(502, f"<html><title>{told}</title></html>".encode()),
    "redirect": lambda told: _redirect(f"https://elsewhere.example/?access_token={told.replace(' ', '&sid=')}"),
    "redirect to nowhere": lambda told: _redirect(f"https://elsewhere.example:{told}/"),
    "redirect with a user": lambda told: _redirect(f"https://sid:{told.split()[-1]}@elsewhere.example/"),
    "half a reply": lambda told: b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + told.encode(),
    "no HTTP": lambda told: told.encode() + b"\r\n\r\n",
    "a bad header": lambda told: b"HTTP/1.1 200 OK\r\n" + told.encode() + b"\r\n\r\n",
    "half a JSON": lambda told: http_reply(200, b'{"refresh_token": "' + told.encode()),
    "another JSON": lambda told: _json(200, {"message": told, "refresh_token": told}),
    "an address": lambda told: _json(200, {"access_token": "x", "instance_url": f"https://me:{told}/x@desk.example"}),
}


@dataclass(frozen=True, slots=True)
class Said:
    """What came of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    words: list[str]
    environment: dict[str, str]


@dataclass(slots=True)
class Machine:
    """A project, a home, a state folder and a folder for temporary files, and what is said and started there.

    Attributes:
        root: all that is searched.
        given: what the user keeps elsewhere: keys, auth URLs, programs.
    """

    root: Path
    given: Path
    program: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def logins(self) -> Path:
        return self.root / "home/.config/evalmeta/logins"

    def prepare(self) -> None:
        for folder in ("home", "state", "tmp"):
            (self.root / folder).mkdir(parents=True)
        for folder in ("python", "witness", "bin"):
            (self.given / folder).mkdir(parents=True)
        (self.given / "python/sitecustomize.py").write_text(_WITNESS)
        (self.given / "python/ring.py").write_text(_RING)
        self.environment |= {
            **os.environ,
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "EVALMETA_HOME": str(self.root / "state"),
            "PYTHONPATH": str(self.given / "python"),
            "PYTHONDEVMODE": "1",
            # Compiled code may have any bytes in it.
            "PYTHONDONTWRITEBYTECODE": "1",
            "WITNESS": str(self.given / "witness"),
            "RING": str(self.given / "ring.json"),
            "PATH": f"{self.given / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def run(self, *words: str, stdin: str = "", **environment: str) -> Said:
        """Runs a command to its end, as a program of its own."""
        done = subprocess.run(
            [*self.program, *words],
            cwd=self.project,
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        self.said.append(Said(done.returncode, done.stdout, done.stderr))
        return self.said[-1]

    def keep_login(self, url: str) -> None:
        """Keeps a login called dev, with every secret that a login has."""
        login = Login("ci@example.com", url, "00D000000000001", "66.0", "dev", ByRefreshToken("3MVG9.client", url))
        kept = Secrets(CANARIES["access token"], CANARIES["refresh token"], CANARIES["client secret"])
        Logins(self.logins).save(login, kept)

    def install(self, name: str, code: str) -> Path:
        """Puts a Python program on the path."""
        path = self.given / "bin" / name
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(0o755)
        return path

    def processes(self) -> Iterator[_Process]:
        """Gives every Python process that was started."""
        for path in (self.given / "witness").iterdir():
            yield _Process(**json.loads(path.read_text()))

    def leaks(self, *more: str) -> list[str]:
        """Tells where a canary, or another secret, was found outside the files of logins."""
        return [place for place, text in self._places() if _holds(text, (MARK, *more))]

    def kept(self, *more: str) -> list[Path]:
        """Gives the files of logins that have a canary, or another secret; only their owner may open them."""
        found = [path for path in self.logins.glob("*") if _holds(_text(path), (MARK, *more))]
        assert {stat.S_IMODE(path.stat().st_mode) for path in found} <= {0o600}
        assert not found or stat.S_IMODE(self.logins.stat().st_mode) == 0o700
        return found

    def _places(self) -> Iterator[tuple[str, str]]:
        for number, said in enumerate(self.said):
            yield f"stdout {number}: {said.out}", said.out
            yield f"stderr {number}: {said.err}", said.err
        for path in self.root.rglob("*"):
            yield str(path), path.name
            if path.is_file() and path.parent != self.logins:
                yield str(path), _text(path)
        for process in self.processes():
            yield f"command line {process.words}", " ".join(process.words)
            # The command itself was given the environment by the test.
            if process.parent != os.getpid():
                yield f"environment of {process.words}", " ".join(process.environment.values())


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


def _holds(text: str, secrets: Iterable[str]) -> bool:
    plain = text.casefold()
    return any(spelling.casefold() in plain for secret in secrets for spelling in _spellings(secret))


def _spellings(text: str) -> list[str]:
    """Gives a text as it is, and as base64 shows it, wherever it begins there."""
    shifted = (b64encode(b"x" * shift + text.encode()).decode().rstrip("=") for shift in range(3))
    return [text, *(each[4:-1] for each in shifted)]
