"""HTTP headers as settings give them, with what the environment keeps secret filled in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Headers", "filled_headers"]

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
# RFC 9110, 5.1 and 5.5.
_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VALUE: Final = re.compile(r"[ -~\t]*")
_TELLING: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers that can be sent, and what of them must show up nowhere."""

    values: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def filled_headers(headers: Mapping[str, str], *, api_key_env: str = "") -> Headers:
    """Gives headers with the environment's value for each `${NAME}`, and with the key as a bearer token (RFC 6750).

    Secret is what comes from the environment, and what a header such as Authorization holds.

    Raises:
        SettingsError: a variable is not set, or no header can carry its value.
    """
    given = {"Authorization": f"Bearer ${{{api_key_env}}}"} if api_key_env else {}
    values = {name: _filled(name, text) for name, text in (given | dict(headers)).items()}
    secrets = {
        secret for name, text in (given | dict(headers)).items() for secret in _secrets(name, text, values[name])
    }
    return Headers(values, tuple(sorted(secrets)))


def _filled(name: str, text: str) -> str:
    value = _VARIABLE.sub(lambda found: _variable(found[1]), text)
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise SettingsError(
            f"the header {name!r} cannot be sent: its name or its value has characters that no header has",
            actions=("Correct it in evalmeta.toml, or the environment variable that it names.",),
        )
    return value


def _secrets(name: str, text: str, value: str) -> Iterator[str]:
    yield from (_variable(found) for found in _VARIABLE.findall(text))
    if _TELLING.search(name):
        yield value
        yield value.rpartition(" ")[2]


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise SettingsError(
            f"the environment variable {name} is not set, and evalmeta.toml takes a key or a header from it",
            actions=(f"Set {name}, or correct its name in evalmeta.toml.",),
        )
    return value
