"""What a zip for the Metadata API holds: a manifest, components, and what is to be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.manifest import PACKAGE_FILE, Manifest, ManifestTypes, unite
from evalmeta.package.convert import entry_name
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.component import Component, ComponentSet
    from evalmeta.model.registry import ApiVersion

__all__ = ["manifest_of", "near_limits", "package_entries"]

# The share of a limit from which on the sf CLI warns too.
_NEAR: Final = 0.8


def manifest_of(components: Iterable[Component], api_version: ApiVersion) -> Manifest:
    """Gives the manifest that names each of the components, in the form that `unite` gives."""
    names: dict[str, list[str]] = {}
    for component in components:
        names.setdefault(component.type.name, []).append(component.full_name)
    blocks = tuple(ManifestTypes(name, tuple(members)) for name, members in names.items())
    return Manifest(unite(blocks), str(api_version))


def package_entries(
    components: ComponentSet, destructive: Mapping[str, bytes] | None = None
) -> Iterator[tuple[str, bytes | Path]]:
    """Yields names and contents for `archive.build_zip`: package.xml in the root, a file for each component.

    Args:
        components: what is deployed.
        destructive: manifests of what is deleted, by their names in the root.
    """
    yield PACKAGE_FILE, write_manifest(manifest_of(components.components, components.api_version))
    yield from (destructive or {}).items()
    yield from ((entry_name(each), each.path) for each in components.components)


def near_limits(*, zipped: int, entries: int) -> tuple[str, ...]:
    """Warns of a zip that takes 80 percent or more of what the Metadata API allows, in bytes or in files."""
    used = ((zipped, limits.MAX_ZIP_BYTES, "bytes zipped"), (entries, limits.MAX_ZIP_ENTRIES, "files"))
    return tuple(
        f"the package has {count:,} {unit}, {count / most:.0%} of the {most:,} that an org takes"
        for count, most, unit in used
        if count >= _NEAR * most
    )
