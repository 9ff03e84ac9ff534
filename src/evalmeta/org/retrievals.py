"""Retrieves: what a manifest selects, as a zip of the bytes that were deployed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from evalmeta.model.manifest import WILDCARD, Manifest, ManifestTypes
from evalmeta.model.registry import NEWEST_API_VERSION, metadata_type
from evalmeta.model.user import ADMIN
from evalmeta.package.archive import build_zip
from evalmeta.wire.messages import FileProperties, RetrieveMessage, RetrieveResult
from evalmeta.wire.soap import write_results
from evalmeta.wire.timestamps import to_timestamp
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.registry import MetadataType
    from evalmeta.org.organization import Organization
    from evalmeta.store.components import StoredComponent

__all__ = ["list_components", "retrieve"]

_FOLDER: Final = "unpackaged/"


def list_components(org: Organization, kind: MetadataType, *, folder: str = "") -> list[FileProperties]:
    """Lists an org's components of a type as the API does."""
    return [_properties(kind, each, folder) for each in org.components.list(kind.name)]


def retrieve(org: Organization, manifest: Manifest, *, single_package: bool) -> str:
    """Carries out a retrieve and gives its job id; members that do not exist become messages."""
    now = time.time()
    folder = "" if single_package else _FOLDER
    with org.database.transaction():
        found, messages = _find(org, manifest, folder)
        entries = [(each.file_name, _content(org, kind, each)) for kind, each in found]
    entries.append((f"{folder}package.xml", write_manifest(_manifest_of(found, manifest.version))))
    zip_file = build_zip(entries)
    with org.database.transaction():
        job_id = org.jobs.new_id("retrieve")
        properties = (*(each for _, each in found), _manifest_properties(folder, now))
        result = RetrieveResult(
            job_id,
            "Succeeded",
            done=True,
            success=True,
            file_properties=properties,
            messages=(*messages, *_unknown(manifest, folder)),
            zip_file=zip_file,
        )
        org.jobs.save("retrieve", job_id, write_results("checkRetrieveStatus", [result]), now=now)
    return job_id


def _find(
    org: Organization, manifest: Manifest, folder: str
) -> tuple[list[tuple[MetadataType, FileProperties]], list[RetrieveMessage]]:
    found: list[tuple[MetadataType, FileProperties]] = []
    messages: list[RetrieveMessage] = []
    for kind, members in _selected(manifest):
        there = {each.full_name: each for each in list_components(org, kind, folder=folder)}
        names = there if WILDCARD in members else [name for name in members if name in there]
        found += [(kind, there[name]) for name in names]
        absent = [name for name in members if name != WILDCARD and name not in there]
        messages += [_absent(kind, name, folder) for name in absent]
    return found, messages


def _unknown(manifest: Manifest, folder: str) -> Iterator[RetrieveMessage]:
    for types in manifest.types:
        if metadata_type(types.name) is None:
            problem = f"Unknown type name '{types.name}' specified in package.xml"
            yield RetrieveMessage(f"{folder}package.xml", problem)


def _selected(manifest: Manifest) -> Iterator[tuple[MetadataType, list[str]]]:
    united: dict[MetadataType, dict[str, None]] = {}
    for types in manifest.types:
        if kind := metadata_type(types.name):
            united.setdefault(kind, {}).update(dict.fromkeys(types.members))
    for kind, members in united.items():
        yield kind, list(members)


def _content(org: Organization, kind: MetadataType, properties: FileProperties) -> bytes:
    return org.components.content(kind.name, properties.full_name) or b""


def _manifest_of(found: list[tuple[MetadataType, FileProperties]], version: str | None) -> Manifest:
    members: dict[str, list[str]] = {}
    for kind, properties in found:
        members.setdefault(kind.name, []).append(properties.full_name)
    types = tuple(ManifestTypes(name, tuple(sorted(names))) for name, names in sorted(members.items()))
    return Manifest(types, version or str(NEWEST_API_VERSION))


def _properties(kind: MetadataType, stored: StoredComponent, folder: str) -> FileProperties:
    return FileProperties(
        type=kind.name,
        full_name=stored.full_name,
        file_name=f"{folder}{kind.directory}/{stored.full_name}.{kind.suffix}",
        id=stored.id,
        created_by_id=ADMIN.id,
        created_by_name=ADMIN.name,
        created_date=to_timestamp(stored.created),
        last_modified_by_id=ADMIN.id,
        last_modified_by_name=ADMIN.name,
        last_modified_date=to_timestamp(stored.modified),
    )


def _manifest_properties(folder: str, now: float) -> FileProperties:
    name, moment = f"{folder}package.xml", to_timestamp(now)
    return FileProperties("Package", name, name, created_date=moment, last_modified_date=moment)


def _absent(kind: MetadataType, name: str, folder: str) -> RetrieveMessage:
    return RetrieveMessage(f"{folder}package.xml", f"Entity of type '{kind.name}' named '{name}' cannot be found")
