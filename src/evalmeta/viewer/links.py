"""The addresses of pages: below `/view` on a server, and names of files in a folder."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = "/view"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")
_MAX_NAME_CHARS: Final = 80
_HASH_CHARS: Final = 12


class Links(Protocol):
    """Make the addresses that a page contains."""

    def __call__(self, page: str, **parameters: object) -> str:
        """Return the address of a page; empty if it cannot be reached from here."""
        ...

    def static(self, name: str) -> str:
        """Return the address of a static file."""
        ...


class ServedLinks:
    """Addresses on a server; `paths` are the patterns of the pages' paths by name."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def __call__(self, page: str, **parameters: object) -> str:
        """Return `/view/PATH?PARAMETERS`; parameters that are empty or None are left out."""
        values = given(parameters)
        if page not in self._paths:
            return ""
        path = _PARAMETER.sub(lambda found: quote(values.pop(found[1]), safe=""), self._paths[page])
        return ROOT + path + (f"?{urlencode(values)}" if values else "")

    def static(self, name: str) -> str:
        """Return `/view/static/NAME`."""
        return f"{ROOT}/static/{name}"


def given(parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters that have a value, as texts."""
    return {name: str(value) for name, value in parameters.items() if value is not None and value != ""}


def file_name(page: str, parameters: Mapping[str, object]) -> str:
    """Return the name of the file with a page: readable, and different for different parameters in any case."""
    values = given(parameters)
    if not values:
        return "index.html" if page == "tests" else f"{page}.html"
    words = _UNSAFE.sub("-", "-".join((page, *values.values()))).strip("-")[:_MAX_NAME_CHARS]
    key = hashlib.sha256(repr((page, sorted(values.items()))).encode()).hexdigest()[:_HASH_CHARS]
    return f"{words}-{key}.html"
