"""The interface to which a call that runs tests reports; the command line implements it and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.model.problem import Problem
    from evalmeta.package.project import Project
    from evalmeta.report.progress import Progress

_T = TypeVar("_T")


class Observer(Protocol):
    """Follows a call, and carries out what waits for orgs."""

    def run(self, work: Coroutine[None, None, _T], /) -> _T:
        """Carry out a coroutine. Signals may cancel it."""

    def note(self, text: str, /) -> None:
        """Receive a remark; a `Suggestion` also has a command."""

    def warn(self, text: str, /) -> None:
        """Receive a warning."""

    def warn_of(self, problems: Sequence[Problem], paths: Sequence[Path] = (), /) -> None:
        """Receive warnings about files that were read; `paths` are what to check to see all of them."""

    def show_others(self, others: Mapping[Path, str], /) -> None:
        """Receive the files in folders that are not tests, each with the reason."""

    def show_org(self, project: Project, target: Target | None, /) -> None:
        """Learn in which org an earlier run is; None is the embedded one."""

    def show_started(self, what: str, run: RunHandle, /) -> None:
        """Learn that a run was started for which nobody waits."""

    def progress(self, runs: int, /) -> AbstractContextManager[Progress]:
        """Return what shows the progress of runs while the call waits for them, and what their agents print."""
