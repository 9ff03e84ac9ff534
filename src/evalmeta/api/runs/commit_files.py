"""The files of a commit, compared with those of the project; git itself is not started."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Final

from evalmeta.api.runs.git_commits import read_blob, read_tree
from evalmeta.errors import NotFound
from evalmeta.formats.document import chunks_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ALGORITHMS: Final = {40: "sha1", 64: "sha256"}


class CommitFiles:
    """The files of a commit, as the names of their objects."""

    def __init__(self, root: Path, git: Path, tree: str) -> None:
        """Take the root of the repository, its git folder, and the name of the commit's tree."""
        self._root, self._git, self._tree = root, git, tree
        self._read = cache(lambda name: read_tree(git, name))

    def has_changed(self, path: Path) -> bool:
        """Return whether a file is not the one of the commit, also if it is new, deleted or cannot be read."""
        if not path.is_relative_to(self._root):
            return True
        before = self._object(path)
        try:
            size = path.stat().st_size
            # One byte more, so that a file that grows is not taken for its beginning.
            return before != _object_name(chunks_of(path, size + 1), size, len(self._tree))
        except (NotFound, OSError):
            return before is not None or path.exists()

    def content(self, path: Path) -> bytes | None:
        """Return a file as it is in the commit; None if the commit does not have it, or it cannot be read."""
        name = self._object(path) if path.is_relative_to(self._root) else None
        content = read_blob(self._git, name) if name else None
        # The rest of a large file is not read.
        is_whole = content is not None and _object_name([content], len(content), len(self._tree)) == name
        return content if is_whole else None

    def lost_files(self, folder: Path) -> frozenset[str] | None:
        """Return the names that a folder of the commit has and the folder lacks now; None if that cannot be read."""
        tree = self._object(folder) if folder.is_relative_to(self._root) else None
        if tree is None:
            return frozenset()
        before = self._read(tree)
        if before is None:
            return None
        return frozenset(before.keys() - ({path.name for path in folder.iterdir()} if folder.is_dir() else set()))

    def _object(self, path: Path) -> str | None:
        known: str | None = self._tree
        for name in path.relative_to(self._root).parts:
            known = (self._read(known) or {}).get(name) if known else None
        return known


def _object_name(chunks: Iterable[bytes], size: int, digits: int) -> str:
    """Return the name that git gives to the content of a file."""
    digest = hashlib.new(_ALGORITHMS[digits], b"blob %d\0" % size, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
