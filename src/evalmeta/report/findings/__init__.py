"""Problems as text, in one of several formats; each format is a module with one function, `render`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.problem import Problem

__all__ = ["FORMATS", "render"]

FORMATS: Final = ("human", "json", "sarif", "github", "junit")


class _Renderer(Protocol):
    def render(self, problems: Sequence[Problem], *, files: int) -> str: ...


def render(name: str, problems: Sequence[Problem], *, files: int) -> str:
    """Writes problems in one of `FORMATS`; the text ends with a line break unless it is empty.

    Args:
        name: the format's name.
        problems: the problems of all files.
        files: how many files were checked.
    """
    return cast("_Renderer", import_module(f"{__name__}.{name}")).render(problems, files=files)
