"""Tests in files, as `evalmeta test run PATH` takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from evalmeta.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.documents import FileTest
    from evalmeta.package.project import Project

__all__ = ["read_files", "subject_option"]

subject_option = click.option(
    "--subject",
    metavar="NAME_OR_MODULE:NAME",
    help="Whom files ask: an agent of evalmeta.toml, or a Python function.  [default: whom the file names]",
)


def read_files(
    project: Project, paths: Sequence[Path], *, subject: str | None, said: Mapping[str, object], is_asked: bool
) -> tuple[FileTest, ...]:
    """Reads the tests in files and folders, and shows what is to be known of them.

    What was `said` of iterations and of the pass rate counts for more than what files say.
    Raises like `find_tests` and `read_test`; nothing was run then.
    """
    if not paths:
        return ()
    from evalmeta.api.documents import find_tests, read_test  # noqa: PLC0415 - not needed for --help

    tests = [read_test(project, path, subject=subject, is_asked=is_asked) for path in find_tests(paths)]
    for each in tests:
        for problem in each.document.notes:
            note(f"{problem}\n  → {problem.hint}" if problem.hint else str(problem))
    return tuple(_by_what_was_said(each, said) for each in tests)


def _by_what_was_said(test: FileTest, said: Mapping[str, object]) -> FileTest:
    document = test.document
    if said.get("iterations") is not None:
        document = replace(document, iterations=None)
    if said.get("min_pass_rate") is not None:
        document = replace(document, min_pass_rate=None)
    return replace(test, document=document)
