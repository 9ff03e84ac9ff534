"""Texts about runs without the folders of the machine that they ran on."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult


class PathFilter:
    """Make the project's files relative to its root, and remove the folders of other files."""

    __slots__ = ("_folders", "_root")

    def __init__(self, root: Path, state_dir: Path) -> None:
        folders = {str(root), str(state_dir), *sys.path}
        if state_dir.is_relative_to(root):
            folders.discard(str(state_dir))
        named = sorted((folder for folder in folders if folder.strip(os.sep)), key=len, reverse=True)
        self._folders = [text.rstrip(os.sep) + os.sep for text in named]
        self._root = str(root)

    def text(self, text: str) -> str:
        """Return a text without folders."""
        for folder in self._folders:
            text = text.replace(folder, "")
        return text.replace(self._root, "the project's folder")

    def optional(self, text: str | None) -> str | None:
        """Return a text without folders; None for None."""
        return None if text is None else self.text(text)

    def case(self, case: CaseResult) -> CaseResult:
        """Return a case result whose errors have no folders."""
        if case.error is None and not any(result.error for result in case.results):
            return case
        results = tuple(
            result._replace(error=self.text(result.error), explanation=self.text(result.explanation))
            if result.error
            else result
            for result in case.results
        )
        return case._replace(error=self.optional(case.error), results=results, traceback=self.text(case.traceback))
