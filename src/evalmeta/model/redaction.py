"""Redaction of secrets in messages and logs, and in the environment of child processes."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from evalmeta import limits
from evalmeta.errors import EvalmetaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


HIDDEN: Final = "[secret]"
# Shorter texts may be ordinary words; the shortest secrets of orgs have more than 20 characters.
_MIN_CHARS: Final = 12
# A value that is no word of a sentence and no code: it has a digit, or capitals after small letters, or is long.
_RANDOM: Final = r"(?=[\w.~+/=!%-]{0,64}(?:\d|[a-z][A-Z])|[\w.~+/=!%-]{32})[\w.~+/=!%-]"
_NAMES: Final = r"(?:pass(?:word|wd|phrase)|pwd(?![:=]\s?/)|secret|token|(?:api|access|secret|private)[_-]?key)"
_KEYS: Final = tuple(f"{kind}{sign}key" for kind in ("api", "access", "private") for sign in ("", "_", "-"))
# Code that sets a keyword, as tracebacks show it, or the absence of a value.
_CODE: Final = (
    r"(?!(?:None|True|False|null|true|false|\[secret\])\b|\[secret\]|(?:self|os|args|config|settings|options)\.|\w+\()"
)
# What follows a name in a sentence or a command: no code, no count, no name of a type or an algorithm, no address.
_VALUE: Final = (
    r"""CODE(?![\d.:%/]{1,7}(?:[\s"'<>,;&)]|\Z)|(?:u?int|float|bytes|utf-?|base|sha-?|md)\d+\b|https?://|[$-])"""
    r"""(?=[^\s"'<>,;&)]{4})(?:[^\s"'<>,;&)\\]|\\+(?!["'\\]))+"""
)
# A text without any of the signs, which are in lower case, has no secret of the shape; to look for them takes much less
# time than the pattern. Each pattern takes linear time. Its group, if it has one, stays in the text.
_SHAPES: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("private key-----",), r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    # Headers.
    (
        ("authorization", "api-key", "api_key", "auth-token", "private-token"),
        r"""(?ix) (\b(?:(?:proxy-)?authorization|x-api[-_]key|x-auth-token|private-token)
            \\{0,8}["']?\s*[:=]\s*\\{0,8}["']?)
            (?:(?:bearer|basic|token|oauth|digest|apikey)\s+ (?-i:RANDOM{4,}) | (?-i:RANDOM{8,}))""",
    ),
    (
        ("cookie",),
        r"""(?ix) (\b(?:set-)?cookie\\{0,8}["']?\s*:\s*\\{0,8}["']?)
            [^\s=;"'<>]{1,200}=[^\s;"'<>\\]*(?:;[ ]?[^\s=;"'<>]{1,200}=[^\s;"'<>\\]*)*""",
    ),
    (("bearer", "basic", "oauth"), r"\b(?i:Bearer|Basic|OAuth)\s+(?:RANDOM{16,}|[\w.~+/=!%-]{24,})"),
    # Session ids of orgs, sfdx auth URLs, refresh tokens.
    (("00d",), r"(?i:00D)\w{12,15}(?:!|%21)[\w.%-]*"),
    (("force:/",), r"(?i)\bforce:/(?!/?CLIENT:)\S+"),
    (("5aep",), r"\b5Aep[\w.%-]{8,}"),
    # JSON Web Tokens.
    (("eyj",), r"\beyJ[\w-]{1,2000}\.[\w-]{1,20000}\.[\w-]*"),
    # Language models: words with hyphens have no digit next to a letter.
    (("sk-",), r"\bsk-(?:(?=[\w-]{0,64}(?:[A-Za-z]\d|\d[A-Za-z]))[\w-]{20,}|\w{20,}\b(?!-))"),
    # Google, GitHub, GitLab, Slack, AWS.
    (("aiza", "ya29.", "gocspx-"), r"\b(?:AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"),
    (("glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-"), r"\bgl(?:pat|dt|rt|ptt|soat|cbt)-[\w.-]{16,}"),
    (("xox", "xapp-"), r"\b(?:xox[a-z]|xapp)-[\w-]{10,}"),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    # Databricks, Hugging Face, npm, Azure, webhooks of Slack.
    (("dapi", "hf_", "npm_"), r"\b(?:dapi[0-9a-f]{32}(?:-\d)?|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36,})"),
    (("accountkey",), r"""((?i:\bAccountKey)\\{0,8}["']?\s?[:=]\s?\\{0,8}["']?)RANDOM{8,}"""),
    (("sig=",), r"([?&;]sig=)RANDOM{8,}"),
    (("hooks.slack.com",), r"(?i)(\bhooks\.slack\.com\\?/services\\?/)\w+\\?/\w+\\?/\w+"),
    # URLs with a password, assignments, also in URLs inside of URLs and in JSON inside of JSON, elements, options and
    # sentences. In a sentence, a word without a digit is no secret.
    (("://",), r"((?<!\bforce)://[^\s/:@\"'<>?#]{0,200}:)[^\s/@\"'<>]{1,500}(?=@)"),
    (
        ("password", "passwd", "passphrase", "pwd", "secret", "token", *_KEYS),
        r"""(?ix) ((?:\b|_)NAMES(?:\\{0,8}["']\s*:\s*\\{0,8}["']
            |\\{0,8}["']?\s?=\s?\\{0,8}["']?(?=[^\s"',;&)]{4})))CODE(?:[^\s"'<>,;&)\\]|\\+(?!["'\\]))+""",
    ),
    (
        ("%3d", "%253d"),
        r"""(?i)((?:\b|_|%[0-9a-f]{2})NAMES%(?:25)?3D)CODE(?=[^\s"',;&)]{4})(?:(?!%(?:25)?26)[^\s"'<>,;&)])+""",
    ),
    (("</",), r"(?i)(<[\w:.-]{0,40}NAMES(?:\s[^<>]{0,200})?>)CODE[^<]{1,500}(?=</)"),
    (
        ("--",),
        r"""(?x) ((?<![\w-])--(?=\w)(?i:(?:[\w-]{0,40}[-_])?NAMES)["']?,?\s["']?)
            (?=[^\s"'<>,;&)]{0,64}(?:\d|[a-z][A-Z]))VALUE""",
    ),
    (
        ("word:", "wd:", "phrase:", "secret:", "token:", "key:"),
        r"""(?i)((?<![:/])(?<!unexpected[ ])(?:\b|_)NAMES:[ \t]{0,4}\\{0,8}["']?)(?=[^\s"'<>,;&)]{0,64}\d)VALUE""",
    ),
)
_VARIABLES: Final = frozenset({"EVALMETA_CLIENT_SECRET", "EVALMETA_STORE", "SF_ACCESS_TOKEN"})
# Variables such as OPENAI_API_KEY, GITHUB_TOKEN and DB_PASSWORD. PWD is the shell's current folder.
_SECRET_NAME: Final = re.compile(
    r"(?:^(?!pwd$)|_)(?:api_?key|key|pat|token|secret|password|passwd|pwd|credentials?)(?:_|$)", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Return whether a variable or a parameter with this name probably has a secret as its value."""
    return _SECRET_NAME.search(name.replace("-", "_")) is not None


def redacted(text: str) -> str:
    """Return a text with `[secret]` instead of everything that looks like a secret."""
    lower = text.lower()
    for signs, pattern in _SHAPES:
        for sign in signs:
            if sign in lower:
                text = _compiled(pattern).sub(_hide, text)
                break
    return text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Compiled when it is needed: that takes longer than most commands need to load.
    for name, part in (("VALUE", _VALUE), ("RANDOM", _RANDOM), ("NAMES", _NAMES), ("CODE", _CODE)):
        pattern = pattern.replace(name, part)
    return re.compile(pattern)


def _hide(match: re.Match[str]) -> str:
    return (match[1] or "") + HIDDEN if match.re.groups else HIDDEN


def redacted_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """Return bytes with `[secret]` instead of these secrets, plain or percent-encoded."""
    for secret in secrets:
        if len(secret) >= _MIN_CHARS:
            for spelling in {secret, quote(secret, safe="")}:
                data = data.replace(spelling.encode(), HIDDEN.encode())
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
