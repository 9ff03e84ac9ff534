"""Manifests (package.xml, destructive changes): XML to the model and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.model.registry import Manifest, ManifestTypes
from evalmeta.xmlio.reader import NAMESPACE, local_name
from evalmeta.xmlio.writer import node, optional, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.etree import _Element as Element

    from evalmeta.xmlio.reader import Document


Locate: TypeAlias = "Callable[[str, str], tuple[int, int]]"

MANIFEST_ROOT: Final = f"{{{NAMESPACE}}}Package"
_TYPES: Final = f"{{{NAMESPACE}}}types"
_NAME: Final = f"{{{NAMESPACE}}}name"
_MEMBERS: Final = f"{{{NAMESPACE}}}members"


def read_manifest(document: Document) -> Manifest:
    """Return a manifest that fits its schema; blanks around names, members and the version are removed."""
    root = document.root
    version = root.findtext(f"{{{NAMESPACE}}}version")
    return Manifest(
        types=tuple(_types(element) for element in root.iterchildren(_TYPES)),
        version=None if version is None else version.strip(),
        full_name=root.findtext(f"{{{NAMESPACE}}}fullName"),
        api_access_level=root.findtext(f"{{{NAMESPACE}}}apiAccessLevel"),
        description=root.findtext(f"{{{NAMESPACE}}}description"),
        namespace_prefix=root.findtext(f"{{{NAMESPACE}}}namespacePrefix"),
    )


def index_members(document: Document) -> Locate:
    """Return a function that returns line and column of a type's member, those of the root if it is not listed.

    An empty member means the type's name, an empty type the manifest.
    """
    places: dict[tuple[str, str], Element] = {}
    for block in document.root:
        if local_name(block) != "types":
            continue
        name = _types(block).name
        for element in block:
            member = (element.text or "").strip() if local_name(element) == "members" else ""
            places.setdefault((name, member), element)

    def locate(type_name: str, member: str) -> tuple[int, int]:
        place = document.location(places.get((type_name, member), document.root))
        return place.line, place.column

    return locate


def write_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as XML, in the order and form that orgs use.

    A manifest that was read from that form returns the same bytes; from any other form, the same meaning.
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
    members = tuple((member.text or "").strip() for member in element.iterchildren(_MEMBERS))
    return ManifestTypes((element.findtext(_NAME) or "").strip(), members)
