"""Reports of finished runs as text, in several formats.

Each format is a function `stream(reports: Sequence[Report]) -> Iterator[str]`, which yields the text in pieces and
holds only one case result at a time. What it must know first, such as the number of cases, is in `Report.facts`,
`Report.summary` and `Report.statistics`.

Installed packages add formats by entry points of the group `evalmeta.reporters`: functions that return the text or its
pieces. The optional attribute `suffix` of such a function is the suffix of its files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.plugins import load_plugin, plugin_names, unknown_plugin

if TYPE_CHECKING:
    from evalmeta.report.report import Report

    _Renderer = Callable[[Sequence[Report]], object]

__all__ = ["FORMATS", "Format", "file_name", "format_names", "format_of", "render", "stream"]


class Format(NamedTuple):
    """A built-in format: its module, which is imported on first use, the suffix of its files, and its function."""

    module: str
    suffix: str
    function: str = "stream"


FORMATS: Final = {
    "human": Format("evalmeta.report.human", "txt"),
    "json": Format("evalmeta.report.json", "json"),
    "jsonl": Format("evalmeta.report.json", "jsonl", "stream_lines"),
    "junit": Format("evalmeta.report.junit", "xml"),
    "tap": Format("evalmeta.report.tap", "tap"),
    "ctrf": Format("evalmeta.report.json", "ctrf.json", "stream_ctrf"),
    "csv": Format("evalmeta.report.csv", "csv"),
    "markdown": Format("evalmeta.report.github", "md", "stream_markdown"),
    "html": Format("evalmeta.report.html", "html"),
    "github": Format("evalmeta.report.github", "github.txt"),
    "otlp": Format("evalmeta.report.otlp", "otlp.jsonl"),
}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_SUFFIX: Final = re.compile(r"[A-Za-z0-9]+(\.[A-Za-z0-9]+)*")


def format_names() -> tuple[str, ...]:
    """Return the names of all formats: the built-in ones, those of wings, and those of installed packages."""
    return tuple(dict.fromkeys([*FORMATS, *_added()]))


def _added() -> list[str]:
    return [*ENTRY_POINTS["reporters"], *plugin_names("reporters")]


def render(name: str, reports: Sequence[Report]) -> str:
    """Return the runs in a format as one text; see `stream`."""
    return "".join(stream(name, reports))


def stream(name: str, reports: Sequence[Report]) -> Iterator[str]:
    """Yield the runs in a format, in pieces; the text of a built-in format ends with a line break, unless it is empty.

    Raise SettingsError if no format has this name, or the package that adds it is broken.
    """
    if built_in := FORMATS.get(name):
        function: Callable[[Sequence[Report]], Iterator[str]] = getattr(
            import_module(built_in.module), built_in.function
        )
        return function(reports)
    return _plugin_pieces(name, _load_plugin(name)[0], reports)


def _plugin_pieces(name: str, function: _Renderer, reports: Sequence[Report]) -> Iterator[str]:
    try:
        text = function(reports)
        is_whole = isinstance(text, str | bytes) or not isinstance(text, Iterable)
        for piece in [text] if is_whole else cast("Iterable[object]", text):
            yield _checked(name, piece)
    except EvalmetaError:
        raise
    except Exception as error:
        raise _plugin_error(name, f"failed: {type(error).__name__}: {error}") from error


def _checked(name: str, piece: object) -> str:
    if not isinstance(piece, str):
        raise _plugin_error(name, f"returned {type(piece).__name__} instead of str")
    return piece


def file_name(name: str, run_id: str) -> str:
    """Return the name of a run's report file, such as `test-result-4KB000000000001GAA.json`, as sf does.

    Characters of the run's id that are not safe in file names become `_`. The errors are those of `render`.
    """
    suffix = FORMATS[name].suffix if name in FORMATS else _load_plugin(name)[1]
    return f"test-result-{_NOT_IN_NAMES.sub('_', run_id)}.{suffix}"


def format_of(name: str) -> str:
    """Return the built-in format that a file's extension stands for; raise SettingsError if there is none."""
    matching = [(len(row.suffix), key) for key, row in FORMATS.items() if name.endswith(f".{row.suffix}")]
    if not matching:
        extensions = ", ".join(f".{row.suffix}" for row in FORMATS.values())
        raise SettingsError(
            f"the format of {name!r} is unknown", actions=(f"Name the format, or use an extension: {extensions}.",)
        )
    return max(matching)[1]


def _load_plugin(name: str) -> tuple[_Renderer, str]:
    """Return the function and the file suffix of a format that a wing or a package adds."""
    if name not in _added():
        raise unknown_plugin("reporters", name, known=[*FORMATS, *ENTRY_POINTS["reporters"]])
    function = load_plugin("reporters", name)
    if not callable(function):
        raise _plugin_error(name, "cannot be called")
    suffix: object = getattr(function, "suffix", "txt")
    if not isinstance(suffix, str) or not _SUFFIX.fullmatch(suffix):
        raise _plugin_error(name, f"has an invalid file suffix: {suffix!r}")
    return cast("_Renderer", function), suffix


def _plugin_error(name: str, reason: str) -> SettingsError:
    return SettingsError(
        f"the reporter {name!r} {reason}",
        actions=("Correct the package that adds it; a reporter is a function render(reports) -> str.",),
    )
