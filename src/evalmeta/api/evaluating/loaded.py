"""Evaluations with their origin, and the folders that they come from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.engine.scorers.functions import GivenFunctions
from evalmeta.errors import ProjectError, UsageError
from evalmeta.model.evaluation import Evaluation, Quarantines, Workload, day_of, workload
from evalmeta.model.run_options import RunOptions
from evalmeta.package.project import Project, find_project, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.engine.project_code import Function
    from evalmeta.formats.document import Document
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.settings import Settings
    from evalmeta.model.store import Store


class LoadedEvaluation(NamedTuple):
    """An evaluation with the project around it, and the file that it was read from, if there are any.

    `content` are the bytes of a definition of the type `kind`, `document` is the content of another file. Python
    subjects are imported from the folder `root`. `functions` are the checks that are given as objects.
    """

    evaluation: Evaluation
    content: bytes | None
    kind: MetadataType
    root: Path
    project: Project | None = None
    file: Path | None = None
    document: Document | None = None
    functions: Mapping[str, Function] = MappingProxyType({})

    @property
    def settings(self) -> Settings:
        """Return the settings of the project around it, or the defaults."""
        return settings_of(self.project)

    @property
    def store(self) -> Store | None:
        """Return where the project's runs are stored; None without a project."""
        return self.project.store if self.project else None

    @property
    def options(self) -> RunOptions:
        """Return the options that the file says, and [run] and [score] of the project's settings."""
        # Without evalmeta.toml, the options are the defaults, and no settings need to be loaded.
        has_settings = self.project is not None and self.project.declared is not None
        options = self.settings.run_options() if has_settings else RunOptions()
        return options if self.document is None else self.document.applied_to(options)

    def with_listed(self, *, started: float) -> Evaluation:
        """Return its evaluation with the quarantines and tags that settings list, for a run that started at a time."""
        own = self.evaluation
        if self.project is None or self.project.declared is None:
            # No settings need to be loaded, as in `options`.
            return replace(own, quarantines=Quarantines(day_of(started)))
        settings = self.project.declared
        quarantines = settings.quarantines_of(own.name, self.kind.name, started=started)
        return replace(own, quarantines=quarantines, listed_tags=settings.tags_of(own.name, self.kind.name))

    def workload(self, options: RunOptions) -> Workload:
        """Return what a complete run does, which iterates over the cases."""
        return workload(self.evaluation, options)

    def nothing_to_run(self) -> UsageError:
        """Return the error of a run without cases, which must not count as a success."""
        name = self.evaluation.name
        return UsageError(f"there is nothing to run: {name} has no cases, or the options select none of them")


class Root(NamedTuple):
    """A folder with the project around it, if any, and the functions that a call was given."""

    folder: Path
    project: Project | None
    functions: Mapping[str, Function]

    @property
    def settings(self) -> Settings:
        """Return the settings of the project, or the defaults."""
        return settings_of(self.project)

    def loaded(self, evaluation: Evaluation, content: bytes | None, kind: MetadataType) -> LoadedEvaluation:
        """Return an evaluation of this folder."""
        return LoadedEvaluation(evaluation, content, kind, self.folder, self.project, functions=self.functions)


class Roots:
    """The folders with projects that the things to evaluate belong to.

    `subject_name` is the subject's name for cases that have none; None if a project must bind it. `columns` are
    keys of test cases, each with its column of tables and JSON Lines.
    """

    def __init__(
        self, root: Path | None, subject_name: str | None, columns: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.subject_name = subject_name
        self.columns = columns
        self.functions = GivenFunctions()
        self._root = root
        self._find = cache(self._find_root)

    def root_of(self, folder: Path | None = None, *, may_be_none: bool = False) -> Root:
        """Return the given root, or the project around a folder; raises like `find_project`."""
        needs_project = self.subject_name is None and not may_be_none
        return self._find(self._root or folder or Path.cwd(), needs_project=needs_project)

    def _find_root(self, start: Path, *, needs_project: bool) -> Root:
        try:
            project = find_project(start)
        except ProjectError:
            if needs_project:
                raise
            return Root(start.resolve(), None, self.functions.by_name)
        return Root(project.root, project, self.functions.by_name)
