"""Finished runs as text, in one of several formats; each format is a module with one function, `render`.

Installed packages add formats by entry points of the group `evalmeta.reporters`: see `evalmeta.report.plugins`.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.report.report import Report

__all__ = ["FORMATS", "Format", "file_name", "format_names", "render"]


class Format(NamedTuple):
    """A format: the module that writes it, loaded when it is needed, and the suffix of its files."""

    module: str
    suffix: str


FORMATS: Final = {
    "human": Format("evalmeta.report.human", "txt"),
    "json": Format("evalmeta.report.json", "json"),
    "jsonl": Format("evalmeta.report.jsonl", "jsonl"),
    "junit": Format("evalmeta.report.junit", "xml"),
    "tap": Format("evalmeta.report.tap", "tap"),
    "ctrf": Format("evalmeta.report.ctrf", "ctrf.json"),
    "csv": Format("evalmeta.report.csv", "csv"),
    "markdown": Format("evalmeta.report.markdown", "md"),
    "html": Format("evalmeta.report.html", "html"),
    "github": Format("evalmeta.report.github", "github.txt"),
}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


class _Renderer(Protocol):
    def render(self, reports: Sequence[Report]) -> str: ...


def format_names() -> tuple[str, ...]:
    """Lists the names of the formats: the built-in ones, then those that installed packages add."""
    # Looking at what is installed takes longer than all of the rest here.
    from evalmeta.plugins import plugin_names  # noqa: PLC0415

    return (*FORMATS, *(name for name in plugin_names("reporters") if name not in FORMATS))


def render(name: str, reports: Sequence[Report]) -> str:
    """Writes runs in a format; the text of a built-in one ends with a line break, unless it is empty.

    Raises:
        SettingsError: there is no format of that name, or the package that adds it is broken.
    """
    if name in FORMATS:
        return cast("_Renderer", import_module(FORMATS[name].module)).render(reports)
    from evalmeta.report.plugins import load_reporter  # noqa: PLC0415 - only for what packages add

    return load_reporter(name).render(reports)


def file_name(name: str, run_id: str) -> str:
    """Gives the name of a run's report file, such as `test-result-4KB000000000001GAA.json`, as sf does.

    A character of the run's id that could lead out of a folder becomes `_`.

    Raises:
        SettingsError: there is no format of that name, or the package that adds it is broken.
    """
    return f"test-result-{_NOT_IN_NAMES.sub('_', run_id)}.{_suffix(name)}"


def _suffix(name: str) -> str:
    if name in FORMATS:
        return FORMATS[name].suffix
    from evalmeta.report.plugins import load_reporter  # noqa: PLC0415 - only for what packages add

    return load_reporter(name).suffix
