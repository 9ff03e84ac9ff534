"""What shells complete besides commands and options: tests, runs and metadata of the current folder's project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.package.project import find_project
from evalmeta.package.resolver import find_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_RUNS: Final = 50


def _test_names() -> Iterable[str]:
    return dict.fromkeys(each.full_name for each in find_components(find_project(Path.cwd())))


def _metadata_names() -> Iterable[str]:
    components = find_components(find_project(Path.cwd()))
    yield from dict.fromkeys(each.type.name for each in components)
    yield from (f"{each.type.name}:{each.full_name}" for each in components)


def _run_names() -> Iterable[str]:
    from evalmeta import api  # noqa: PLC0415 - the database, which only these completions need

    yield from ("latest", "previous")
    project = find_project(Path.cwd(), or_folder=True)
    if project.state_dir.is_dir():
        yield from (each.id for each in reversed(api.runs.history(project, limit=_RUNS)))


def _completer(names: Callable[[], Iterable[str]]) -> Completer:
    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        found: list[str] = []
        try:
            found.extend(name for name in names() if name.startswith(begun))
        except Exception:  # noqa: BLE001 - whatever is wrong, a message would disturb the line that the user types
            return found
        return found

    return complete


complete_tests = _completer(_test_names)
complete_metadata = _completer(_metadata_names)
complete_runs = _completer(_run_names)
