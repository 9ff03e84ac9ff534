"""Formats that installed packages add, by entry points of the group `evalmeta.reporters`.

An entry point names a function `render(reports: Sequence[Report]) -> str`. The function may have
an attribute `suffix`, the suffix of its files; without one they end in `.txt`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.errors import SettingsError
from evalmeta.plugins import load_plugin, plugin_names, unknown_plugin
from evalmeta.report import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.report.report import Report


_SUFFIX: Final = re.compile(r"[A-Za-z0-9]+(\.[A-Za-z0-9]+)*")


class _Render(Protocol):
    def __call__(self, reports: Sequence[Report], /) -> object: ...


class Reporter:
    """A format that a package adds; what goes wrong in it is told as an error of that package."""

    def __init__(self, name: str, function: _Render, suffix: str) -> None:
        self._name = name
        self._function = function
        self.suffix = suffix

    def render(self, reports: Sequence[Report]) -> str:
        """Writes runs in the format.

        Raises:
            SettingsError: the package's function broke, or gave no text.
        """
        try:
            text = self._function(reports)
        except Exception as error:
            raise _fault(self._name, f"broke: {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise _fault(self._name, f"gave {type(text).__name__} instead of str")
        return text


def load_reporter(name: str) -> Reporter:
    """Loads the format of that name.

    Raises:
        SettingsError: no package adds it, it does not load, or it is no function.
    """
    if name not in plugin_names("reporters"):
        raise unknown_plugin("reporters", name, known=FORMATS)
    function = load_plugin("reporters", name)
    if not callable(function):
        raise _fault(name, "cannot be called")
    suffix: object = getattr(function, "suffix", "txt")
    if not isinstance(suffix, str) or not _SUFFIX.fullmatch(suffix):
        raise _fault(name, f"has no usable suffix of files: {suffix!r}")
    return Reporter(name, cast("_Render", function), suffix)


def _fault(name: str, fault: str) -> SettingsError:
    return SettingsError(
        f"the reporter {name!r} {fault}",
        actions=("Correct the package that brings it; a reporter is a function render(reports) -> str.",),
    )
