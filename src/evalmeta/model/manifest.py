"""A manifest (package.xml) as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["WILDCARD", "Manifest", "ManifestTypes"]

WILDCARD: Final = "*"


@dataclass(frozen=True, slots=True)
class ManifestTypes:
    """One `<types>` block: a metadata type's name and its members, `*` for all."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A package.xml: what to deploy or retrieve, and the API version, kept as text."""

    types: tuple[ManifestTypes, ...]
    version: str | None = None
    full_name: str | None = None
