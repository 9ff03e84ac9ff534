"""Checking a rater of the project against labelled pairs in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters import bind_rater
from evalmeta.engine.raters.calibration import calibrate
from evalmeta.engine.raters.labels import read_pairs
from evalmeta.errors import ProjectError
from evalmeta.org.subjects import rater_settings
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from evalmeta.engine.raters.calibration import RatedPair
    from evalmeta.model.settings import RaterSettings


_RULES: Final = "rules"


async def check_rater(file: Path, *, rater: str = _RULES, start: Path | None = None) -> tuple[RatedPair, ...]:
    """Rate the labelled pairs of a file, and return each pair with its rating.

    Args:
        file: see `read_pairs`.
        rater: a name under [raters] in evalmeta.toml, or `rules`, which is always available.
        start: where to look for the project; the current folder if None.

    Raises:
        UsageError: the file cannot be read, or a line is not a labelled pair.
        SettingsError: there is no rater with this name, or it cannot be used.
    """
    pairs = read_pairs(file)
    settings, root = _settings(rater, start or Path())
    bound = bind_rater(settings, root=root)
    try:
        return await calibrate(pairs, bound)
    finally:
        await bound.close()


def _settings(name: str, start: Path) -> tuple[RaterSettings, Path]:
    try:
        project = find_project(start)
    except ProjectError:
        if name != _RULES:
            raise
        return rater_settings({}, name), start
    return rater_settings(project.settings.raters, name), project.root
