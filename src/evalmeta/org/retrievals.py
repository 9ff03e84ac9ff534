"""Retrieves: the components of a manifest as a zip of the deployed bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.errors import ArchiveError
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    WILDCARD,
    Manifest,
    ManifestTypes,
    is_other_type,
    metadata_type,
    nearest_type_name,
)
from evalmeta.package.archive import build_zip
from evalmeta.package.components import entries_in, entry_name
from evalmeta.protocol.json_fields import read_object, to_timestamp
from evalmeta.protocol.metadata_api import FileProperties, RetrieveMessage, RetrieveResult
from evalmeta.protocol.soap import from_json, to_json, write_results
from evalmeta.xmlio.definitions import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.registry import MetadataType
    from evalmeta.org.organization import Organization
    from evalmeta.store.components import StoredComponent
    from evalmeta.store.jobs import Job


_FOLDER: Final = "unpackaged/"
_MANIFEST: Final = "package.xml"


def iterate_components(org: Organization, kind: MetadataType, *, folder: str = "") -> Iterator[FileProperties]:
    """Return an iterator over the org's components of a type, as the API lists them; it needs the database no more."""
    names = {user.id: user.name for user in org.users.all_users()}
    stored = org.components.list(kind.name)
    return (_properties(kind, component, folder, names) for component in stored)


def write_request(manifest: Manifest, *, single_package: bool) -> tuple[bytes, bytes]:
    """Return the stored form of a retrieve's manifest and options."""
    return orjson.dumps(to_json(manifest)), orjson.dumps({"singlePackage": single_package})


def run_retrieve(org: Organization, job: Job) -> None:
    """Run a retrieve and store its result; members that do not exist become messages."""
    manifest = from_json(Manifest, read_object(org.jobs.request(job.id) or b'{"types":[]}'))
    now = org.database.now()
    folder = "" if read_object(job.options).get("singlePackage") else _FOLDER
    with org.database.transaction():
        selected, messages = _find(org, manifest, folder)
        entries = [
            (f"{folder}{name}", content)
            for kind, properties in selected
            if (stored := org.components.content(kind.name, properties.full_name)) is not None
            for name, content in entries_in(kind, properties.full_name, stored)
        ]
    entries.append((f"{folder}{_MANIFEST}", write_manifest(_manifest_of(selected, manifest.version))))
    try:
        zip_file = build_zip(entries)
    except ArchiveError as error:
        fail_retrieve(org, job, f"{error} {' '.join(error.actions)}", code="LIMIT_EXCEEDED")
        return
    name, moment = f"{folder}{_MANIFEST}", to_timestamp(now)
    listed = FileProperties("Package", name, name, created_date=moment, last_modified_date=moment)
    result = replace(
        retrieve_status(job),
        status="Succeeded",
        done=True,
        success=True,
        file_properties=(*(properties for _, properties in selected), listed),
        messages=(*messages, *_unknown(manifest, folder)),
        zip_file=zip_file,
    )
    _finish(org, result)


def retrieve_status(job: Job) -> RetrieveResult:
    """Return the status of an unfinished retrieve."""
    return RetrieveResult(job.id, job.status, done=job.is_over, success=False)


def fail_retrieve(org: Organization, job: Job, error: str, *, code: str) -> None:
    """End a retrieve that cannot run."""
    failed = replace(retrieve_status(job), status="Failed", done=True, error_message=error, error_status_code=code)
    _finish(org, failed)


def _finish(org: Organization, result: RetrieveResult) -> None:
    reply = write_results("checkRetrieveStatus", [result])
    with org.database.transaction():
        job = org.jobs.get("retrieve", result.id)
        if job is not None and not job.is_over:
            org.jobs.finish(result.id, result.status, reply, now=org.database.now())


def _find(
    org: Organization, manifest: Manifest, folder: str
) -> tuple[list[tuple[MetadataType, FileProperties]], list[RetrieveMessage]]:
    selected: list[tuple[MetadataType, FileProperties]] = []
    messages: list[RetrieveMessage] = []
    for kind, members in _selected(manifest):
        existing = {
            component.full_name.casefold(): component for component in iterate_components(org, kind, folder=folder)
        }
        names = {name.casefold(): name for name in members if name != WILDCARD}
        keys = existing if WILDCARD in members else [key for key in names if key in existing]
        selected += [(kind, existing[key]) for key in keys]
        messages += [_not_found(kind.name, name, folder) for key, name in names.items() if key not in existing]
    return selected, messages


def _unknown(manifest: Manifest, folder: str) -> Iterator[RetrieveMessage]:
    for types in manifest.types:
        if metadata_type(types.name) is not None:
            continue
        if is_other_type(types.name):
            # As an org answers that has no component of the type.
            names = (member for member in types.members if member != WILDCARD)
            yield from (_not_found(types.name, name, folder) for name in names)
            continue
        near = nearest_type_name(types.name)
        hint = f"; did you mean {near}?" if near else ""
        problem = f"Unknown type name '{types.name}' specified in package.xml{hint}"
        yield RetrieveMessage(f"{folder}{_MANIFEST}", problem)


def _selected(manifest: Manifest) -> Iterator[tuple[MetadataType, list[str]]]:
    united: dict[MetadataType, dict[str, None]] = {}
    for types in manifest.types:
        if kind := metadata_type(types.name):
            united.setdefault(kind, {}).update(dict.fromkeys(types.members))
    for kind, members in united.items():
        yield kind, list(members)


def _manifest_of(selected: list[tuple[MetadataType, FileProperties]], version: str | None) -> Manifest:
    members: dict[str, list[str]] = {}
    for kind, properties in selected:
        members.setdefault(kind.name, []).append(properties.full_name)
    types = tuple(ManifestTypes(name, tuple(sorted(names))) for name, names in sorted(members.items()))
    return Manifest(types, version or str(NEWEST_API_VERSION))


def _properties(kind: MetadataType, stored: StoredComponent, folder: str, names: Mapping[str, str]) -> FileProperties:
    return FileProperties(
        type=kind.name,
        full_name=stored.full_name,
        file_name=f"{folder}{entry_name(kind, stored.full_name)}",
        id=stored.id,
        created_by_id=stored.created_by,
        created_by_name=names[stored.created_by],
        created_date=to_timestamp(stored.created),
        last_modified_by_id=stored.modified_by,
        last_modified_by_name=names[stored.modified_by],
        last_modified_date=to_timestamp(stored.modified),
    )


def _not_found(type_name: str, name: str, folder: str) -> RetrieveMessage:
    return RetrieveMessage(f"{folder}{_MANIFEST}", f"Entity of type '{type_name}' named '{name}' cannot be found")
