"""The workers of pytest-xdist, which is not imported: whoever does not use it need not have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    import pytest

__all__ = ["WorkerNode", "gets_whole_files", "is_worker"]

_WHOLE_FILES: Final = ("each", "loadfile", "loadscope")


class WorkerNode(Protocol):
    """A worker as the process that gives it tests sees it."""

    config: pytest.Config
    workerinput: dict[str, str]


def is_worker(config: pytest.Config) -> bool:
    """Tells whether the process runs tests for another one, which reports them."""
    return hasattr(config, "workerinput")


def gets_whole_files(config: pytest.Config) -> bool:
    """Tells whether whoever runs the first test of a definition runs all of them."""
    given = cast("dict[str, str]", getattr(config, "workerinput", {}))
    return given.get("evalmeta_dist", "each") in _WHOLE_FILES
