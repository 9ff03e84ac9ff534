"""The subjects of an org that is served: those that its project's settings bind now."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from evalmeta.model.settings import Settings
from evalmeta.package.markers import SETTINGS_FILE
from evalmeta.package.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.settings import SubjectSettings

__all__ = ["LiveSubjects"]


class LiveSubjects(Mapping[str, "SubjectSettings"]):
    """The subjects that `evalmeta.toml` in a folder binds; the file is read again once it has changed.

    Every look at them may raise SettingsError: the file cannot be read, or holds what evalmeta does not know.
    """

    def __init__(self, root: Path) -> None:
        self._file = root / SETTINGS_FILE
        self._read: Mapping[str, SubjectSettings] = {}
        self._version: tuple[int, int, int] | None = None

    def __getitem__(self, name: str) -> SubjectSettings:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> Mapping[str, SubjectSettings]:
        version = self._version_on_disk()
        if version != self._version:
            self._read = (Settings() if version is None else load_settings(self._file)).subjects
            self._version = version
        return self._read

    def _version_on_disk(self) -> tuple[int, int, int] | None:
        with suppress(FileNotFoundError):
            found = self._file.stat()
            return found.st_mtime_ns, found.st_size, found.st_ino
        return None
