"""The subjects and raters of an org that is served: those that its project's settings bind now."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from evalmeta.model.settings import Settings
from evalmeta.package.markers import SETTINGS_FILE
from evalmeta.package.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.model.settings import RaterSettings, SubjectSettings

__all__ = ["live_raters", "live_subjects"]

_T = TypeVar("_T")


def live_subjects(root: Path) -> Mapping[str, SubjectSettings]:
    """Gives the subjects that `evalmeta.toml` in a folder binds; the file is read again once it has changed.

    Every look at them may raise SettingsError: the file cannot be read, or holds what evalmeta does not know.
    """
    return _Live(root, lambda settings: settings.subjects)


def live_raters(root: Path) -> Mapping[str, RaterSettings]:
    """Gives the raters that `evalmeta.toml` in a folder binds, as `live_subjects` does."""
    return _Live(root, lambda settings: settings.raters)


class _Live(Mapping[str, _T]):
    def __init__(self, root: Path, choose: Callable[[Settings], Mapping[str, _T]]) -> None:
        self._file = root / SETTINGS_FILE
        self._choose = choose
        self._read: Mapping[str, _T] = {}
        self._version: tuple[int, int, int] | None = None

    def __getitem__(self, name: str) -> _T:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> Mapping[str, _T]:
        version = self._version_on_disk()
        if version != self._version:
            self._read = self._choose(Settings() if version is None else load_settings(self._file))
            self._version = version
        return self._read

    def _version_on_disk(self) -> tuple[int, int, int] | None:
        with suppress(FileNotFoundError):
            found = self._file.stat()
            return found.st_mtime_ns, found.st_size, found.st_ino
        return None
