"""What shells complete besides commands and options: logins, and tests, runs and metadata of the current project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.model.login import EMBEDDED
from evalmeta.package.project import find_project
from evalmeta.package.resolver import find_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from evalmeta.model.component import Component

    Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_RUNS: Final = 50


def _components() -> tuple[Component, ...]:
    return find_components(find_project(Path.cwd(), with_settings=False))


def _test_names() -> Iterable[str]:
    return dict.fromkeys(component.full_name for component in _components())


def _metadata_names() -> Iterable[str]:
    components = _components()
    yield from dict.fromkeys(component.type.name for component in components)
    yield from (f"{component.type.name}:{component.full_name}" for component in components)


def _run_names() -> Iterable[str]:
    from evalmeta.store.database import open_database
    from evalmeta.store.run_lists import list_runs

    yield from ("latest", "previous")
    project = find_project(Path.cwd(), or_folder=True, with_settings=False)
    if project.state_dir.is_dir():
        with open_database(project.state_dir) as database:
            yield from (run.id for run in reversed(list_runs(database, limit=_RUNS)))


def _login_names() -> Iterable[str]:
    from evalmeta.client.logins import user_logins

    yield from (login.name for login in user_logins().list_logins())
    yield EMBEDDED


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
complete_logins = _completer(_login_names)
