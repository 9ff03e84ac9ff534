"""Manifests (package.xml): XML to the model and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.manifest import Manifest, ManifestTypes
from evalmeta.xmlio.parts import Parts
from evalmeta.xmlio.reader import NAMESPACE, local_name
from evalmeta.xmlio.writer import node, optional, render

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from evalmeta.xmlio.reader import Document

__all__ = ["MANIFEST_ROOT", "locate_member", "read_manifest", "write_manifest"]

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
    )


def locate_member(document: Document, type_name: str, member: str) -> tuple[int, int]:
    """Gives line and column of a member of a type; of the type when there is no such member, or of the manifest."""
    for types in document.root:
        found = _types(types)
        if local_name(types) != "types" or found.name != type_name:
            continue
        names = [each for each in types if (each.text or "").strip() in {member, type_name}]
        place = document.location(names[0] if member in found.members or not member else types)
        return place.line, place.column
    place = document.location()
    return place.line, place.column


def write_manifest(manifest: Manifest) -> bytes:
    """Writes a manifest in the order and form in which an org hands it out."""
    children = [*optional("fullName", manifest.full_name)]
    for types in manifest.types:
        members = [node("members", member) for member in types.members]
        children.append(node("types", [*members, node("name", types.name)]))
    children += optional("version", manifest.version)
    return render(node("Package", children, xmlns=NAMESPACE), indent=4)


def _types(element: Element) -> ManifestTypes:
    parts = Parts(element, _TYPES, strict=False)
    members = tuple((member.text or "").strip() for member in parts.many("members"))
    return ManifestTypes(parts.required("name").strip(), members)
