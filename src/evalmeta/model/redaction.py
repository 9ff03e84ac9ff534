"""Redaction of secrets in messages and logs, and in the environment of child processes."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from evalmeta import limits
from evalmeta.errors import EvalmetaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_HIDDEN: Final = "[secret]"
# Shorter texts may be ordinary words; the shortest secrets of orgs have more than 20 characters.
_MIN_CHARS: Final = 12
# Session ids, JWTs, refresh tokens, sfdx auth URLs, keys of language models, and values of Authorization headers.
_SHAPES: Final = re.compile(
    r"""
    00D\w{12,15}(?:!|%21)[\w.%-]*
    | \beyJ[\w-]+\.[\w-]+\.[\w-]*
    | \b5Aep[\w.%-]{8,}
    | \bforce:/(?!/?CLIENT:)\S+
    | \bsk-[\w-]{20,}
    | \b(?:Bearer|Basic|OAuth)\s+[\w.~+/=!%-]{16,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_VARIABLES: Final = frozenset({"EVALMETA_CLIENT_SECRET", "SF_ACCESS_TOKEN"})
# Variables such as OPENAI_API_KEY, GITHUB_TOKEN and DB_PASSWORD. PWD is the shell's current folder.
_SECRET_NAME: Final = re.compile(
    r"(?:^(?!pwd$)|_)(?:api_?key|key|pat|token|secret|password|passwd|pwd|credentials?)(?:_|$)", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Return whether a variable or a parameter with this name probably has a secret as its value."""
    return _SECRET_NAME.search(name.replace("-", "_")) is not None


def redacted(text: str) -> str:
    """Return a text with `[secret]` instead of everything that looks like a secret."""
    return _SHAPES.sub(_HIDDEN, text)


def redacted_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """Return bytes with `[secret]` instead of these secrets, plain or percent-encoded."""
    for secret in secrets:
        if len(secret) >= _MIN_CHARS:
            for spelling in {secret, quote(secret, safe="")}:
                data = data.replace(spelling.encode(), _HIDDEN.encode())
    return data


def hide_secrets(text: str) -> str:
    """Return a text without what looks like a secret, and without the values of variables whose names say secret."""
    values = [value for name, value in os.environ.items() if is_secret_name(name) and value in text]
    if values:
        text = redacted_bytes(text.encode(errors="replace"), sorted(values, key=len, reverse=True)).decode()
    return redacted(text)


def error_text(error: BaseException) -> str:
    """Return the message of an exception, redacted, in at most `MAX_ERROR_CHARS` characters of valid Unicode.

    Errors of evalmeta are written for readers; of all others, the class is part of the message.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception without a message must not stop a run
        text = "the error cannot be shown"
    if not text or not isinstance(error, EvalmetaError):
        name = type(error).__name__
        text = f"{name}: {text}" if text else name
    text = hide_secrets(text.encode(errors="replace").decode())
    return text if len(text) <= limits.MAX_ERROR_CHARS else text[: limits.MAX_ERROR_CHARS - 1] + "…"


def child_environment(**more: str) -> dict[str, str]:
    """Return this process's environment without tokens, plus more variables, for a program that needs no session."""
    secrets = _secret_variables()
    return {name: value for name, value in os.environ.items() if name not in secrets} | more


@contextmanager
def tokens_hidden() -> Iterator[None]:
    """Remove tokens from this process's environment in the block, for agents that it imports."""
    removed = {name: os.environ.pop(name) for name in _secret_variables() & {*os.environ}}
    try:
        yield
    finally:
        os.environ.update(removed)


def _secret_variables() -> set[str]:
    # SF_TARGET_ORG may hold a token for the sf CLI, and CI systems name auth URLs SFDX_...
    secrets = {name for name, value in os.environ.items() if name.startswith("SF") and redacted(value) != value}
    return secrets | _VARIABLES


def path_in_words(word: str, root: Path) -> str:
    """Return a word of a command: a path inside the project relative to it, and others without their folders."""
    inside = word.removeprefix(f"{root}/")
    return PurePath(inside).name if PurePath(inside).is_absolute() else inside


def address_in_words(url: str) -> str:
    """Return a URL without a name, a password and a query, which may have secrets."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
