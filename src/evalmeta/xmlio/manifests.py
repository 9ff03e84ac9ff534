"""Manifests (package.xml, destructive changes): XML to the model and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.model.component import Manifest, ManifestTypes
from evalmeta.xmlio.fields import Parts
from evalmeta.xmlio.reader import NAMESPACE, local_name
from evalmeta.xmlio.writer import node, optional, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.etree import _Element as Element

    from evalmeta.xmlio.reader import Document


Locate: TypeAlias = "Callable[[str, str], tuple[int, int]]"

MANIFEST_ROOT: Final = f"{{{NAMESPACE}}}Package"

_PACKAGE: Final = frozenset({"apiAccessLevel", "description", "fullName", "namespacePrefix", "types", "version"})
_TYPES: Final = frozenset({"members", "name"})


def read_manifest(document: Document) -> Manifest:
    """Reads a manifest that passed its schema; blanks around names, members and the version are dropped."""
    parts = Parts(document.root, _PACKAGE, strict=False)
    version = parts.text("version")
    return Manifest(
        types=tuple(_types(each) for each in parts.many("types")),
        version=None if version is None else version.strip(),
        full_name=parts.text("fullName"),
        api_access_level=parts.text("apiAccessLevel"),
        description=parts.text("description"),
        namespace_prefix=parts.text("namespacePrefix"),
    )


def index_members(document: Document) -> Locate:
    """Gives a function that tells line and column of a type's member.

    An empty member stands for the type's name, an empty type for the manifest, which
    also answers for what it does not have.
    """
    places: dict[tuple[str, str], Element] = {}
    for block in document.root:
        if local_name(block) != "types":
            continue
        name = _types(block).name
        for each in block:
            member = (each.text or "").strip() if local_name(each) == "members" else ""
            places.setdefault((name, member), each)

    def locate(type_name: str, member: str) -> tuple[int, int]:
        place = document.location(places.get((type_name, member), document.root))
        return place.line, place.column

    return locate


def write_manifest(manifest: Manifest) -> bytes:
    """Writes a manifest in the order and form in which an org hands it out.

    A manifest that was read from that form gives the same bytes; from any other form, the same meaning.
    """
    children = [
        *optional("fullName", manifest.full_name),
        *optional("apiAccessLevel", manifest.api_access_level),
        *optional("description", manifest.description),
        *optional("namespacePrefix", manifest.namespace_prefix),
    ]
    for types in manifest.types:
        members = [node("members", member) for member in types.members]
        children.append(node("types", [*members, node("name", types.name)]))
    children += optional("version", manifest.version)
    return render(node("Package", children, xmlns=NAMESPACE), indent=4)


def _types(element: Element) -> ManifestTypes:
    parts = Parts(element, _TYPES, strict=False)
    members = tuple((member.text or "").strip() for member in parts.many("members"))
    return ManifestTypes(parts.required("name").strip(), members)
