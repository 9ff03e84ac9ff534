"""Finished runs as text, in one of several formats; each format is a module with one function, `render`."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.report.report import Report

__all__ = ["FORMATS", "Format", "file_name", "formats", "render"]


class Format(NamedTuple):
    """A format: the module that writes it, loaded when it is needed, and the suffix of its files."""

    module: str
    suffix: str


FORMATS: Final = {
    "human": Format("evalmeta.report.human", "txt"),
    "json": Format("evalmeta.report.json", "json"),
    "junit": Format("evalmeta.report.junit", "xml"),
    "tap": Format("evalmeta.report.tap", "tap"),
}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


class _Renderer(Protocol):
    def render(self, reports: Sequence[Report]) -> str: ...


def formats() -> tuple[str, ...]:
    """Lists the names of the formats."""
    return tuple(FORMATS)


def render(name: str, reports: Sequence[Report]) -> str:
    """Writes runs in a format; the text ends with a line break.

    Raises:
        UsageError: there is no format of that name.
    """
    return cast("_Renderer", import_module(_format(name).module)).render(reports)


def file_name(name: str, run_id: str) -> str:
    """Gives the name of a run's report file, such as `test-result-4KB000000000001GAA.json`, as sf does.

    A character of the run's id that could lead out of a folder becomes `_`.

    Raises:
        UsageError: there is no format of that name.
    """
    return f"test-result-{_NOT_IN_NAMES.sub('_', run_id)}.{_format(name).suffix}"


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{name!r} is no result format", actions=[f"Choose one of {', '.join(FORMATS)}."])
    return FORMATS[name]
