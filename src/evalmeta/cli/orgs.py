"""The org that a command talks to: the line that names it on stderr, and its connection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evalmeta import api
from evalmeta.cli.output import note, warn
from evalmeta.cli.signals import cancelled_by_signals
from evalmeta.engine.event_loop import run_to_end
from evalmeta.package.project import Project, find_project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from evalmeta.api.org_targets import Target
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import ApiVersion

_T = TypeVar("_T")


def run_in_org(target_org: str | None, work: Callable[[Connection, Project], Awaitable[_T]]) -> _T:
    """Run a coroutine that talks to the org of --target-org for the project of the current folder."""
    project = find_project(Path.cwd())
    return run_in_target(project, choose_target(project, target_org), lambda connection: work(connection, project))


def run_in_target(
    project: Project,
    target: Target | None,
    work: Callable[[Connection], Awaitable[_T]],
    *,
    api_version: ApiVersion | None = None,
) -> _T:
    """Run a coroutine that talks to an org; None is the project's embedded one."""

    async def run() -> _T:
        async with connected(project, target, api_version=api_version) as connection:
            return await work(connection)

    return run_async(run())


def choose_target(project: Project, target_org: str | None) -> Target | None:
    """Return the org to talk to, None for the embedded one, and print which it is."""
    target = api.org_targets.choose_target(project, target_org)
    print_target(project, target)
    return target


def print_target(project: Project, target: Target | None) -> None:
    """Print to stderr which org a command works with; None is the embedded one. An archive has none."""
    if project.is_archive:
        return
    if target is None:
        state = project.state_dir
        is_inside = state.is_relative_to(project.root)
        folder = state.relative_to(project.root).as_posix() if is_inside else str(state)
        note(f"Target: the embedded org of {project.root.name} ({project.store.url or folder})")
    elif target.login.name == target.login.url:
        note(f"Target: {target.login.url}, with {api.org_targets.token_variable()}")
    else:
        note(f"Target: {target.login.name}, {target.login.username} at {target.login.url}")


def connected(
    project: Project, target: Target | None, *, api_version: ApiVersion | None = None, detached: bool = False
) -> AbstractAsyncContextManager[Connection]:
    """Open a connection to an org as `api.org_targets.connect` does, and print its warnings to stderr."""
    return api.org_targets.connect(project, target, api_version=api_version, detached=detached, remark=warn)


def run_async(work: Coroutine[None, None, _T]) -> _T:
    """Run a coroutine to its end; a signal cancels it, lets it clean up, and raises KeyboardInterrupt."""
    try:
        return run_to_end(_interruptible(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except KeyboardInterrupt:
        work.close()
        raise


async def _interruptible(work: Coroutine[None, None, _T]) -> _T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        return await work
    with cancelled_by_signals(lambda: loop.call_soon_threadsafe(task.cancel)):
        return await work
