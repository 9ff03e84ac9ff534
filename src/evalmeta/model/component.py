"""Components: typed, named pieces of metadata and the files they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion, MetadataType

__all__ = ["Component", "ComponentSet"]


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a project: its type, its full name and the file that holds it."""

    type: MetadataType
    full_name: str
    path: Path

    @property
    def key(self) -> str:
        """Gives `Type:FullName`, unique in an org."""
        return f"{self.type.name}:{self.full_name}"


@dataclass(frozen=True, slots=True)
class ComponentSet:
    """What a deployment takes: components in order of type and name, and the API version in force.

    Attributes:
        warnings: about what was asked for and is left out.
    """

    components: tuple[Component, ...]
    api_version: ApiVersion
    warnings: tuple[Problem, ...] = ()
