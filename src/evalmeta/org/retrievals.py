"""Retrieves: what a manifest selects, as a zip of the bytes that were deployed."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.errors import ArchiveError
from evalmeta.model.component import WILDCARD, Manifest, ManifestTypes
from evalmeta.model.registry import NEWEST_API_VERSION, metadata_type
from evalmeta.package.archive import build_zip
from evalmeta.protocol.json_fields import list_of_objects, optional_text, read_object, text, texts, to_timestamp
from evalmeta.protocol.metadata_api import FileProperties, RetrieveMessage, RetrieveResult
from evalmeta.protocol.soap import write_results
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.registry import MetadataType
    from evalmeta.org.organization import Organization
    from evalmeta.store.components import StoredComponent
    from evalmeta.store.jobs import Job


_FOLDER: Final = "unpackaged/"
_MANIFEST: Final = "package.xml"


def list_components(org: Organization, kind: MetadataType, *, folder: str = "") -> list[FileProperties]:
    """Lists an org's components of a type as the API does."""
    names = {user.id: user.name for user in org.users.all_users()}
    return [_properties(kind, each, folder, names) for each in org.components.list(kind.name)]


def write_request(manifest: Manifest, *, single_package: bool) -> tuple[bytes, bytes]:
    """Writes what a retrieve selects, and how it wants it, as a job keeps them."""
    types = [{"name": each.name, "members": list(each.members)} for each in manifest.types]
    request = {"types": types, "version": manifest.version}
    return orjson.dumps(request), orjson.dumps({"singlePackage": single_package})


def run_retrieve(org: Organization, job: Job) -> None:
    """Carries out a retrieve and keeps its outcome; members that do not exist become messages.

    What does not go into one zip fails it with LIMIT_EXCEEDED.
    """
    manifest = _read_request(org.jobs.request(job.id) or b"{}")
    now = time.time()
    folder = "" if read_object(job.options).get("singlePackage") else _FOLDER
    with org.database.transaction():
        found, messages = _find(org, manifest, folder)
        entries = [(each.file_name, _content(org, kind, each)) for kind, each in found]
    entries.append((f"{folder}{_MANIFEST}", write_manifest(_manifest_of(found, manifest.version))))
    try:
        zip_file = build_zip(entries)
    except ArchiveError as error:
        fail_retrieve(org, job, f"{error} {' '.join(error.actions)}", code="LIMIT_EXCEEDED")
        return
    properties = (*(each for _, each in found), _manifest_properties(folder, now))
    result = replace(
        retrieve_status(job),
        status="Succeeded",
        done=True,
        success=True,
        file_properties=properties,
        messages=(*messages, *_unknown(manifest, folder)),
        zip_file=zip_file,
    )
    _finish(org, result)


def retrieve_status(job: Job) -> RetrieveResult:
    """Tells how far a retrieve is that has not ended."""
    return RetrieveResult(job.id, job.status, done=job.is_over, success=False)


def fail_retrieve(org: Organization, job: Job, error: str, *, code: str) -> None:
    """Ends a retrieve that cannot be carried out."""
    failed = replace(retrieve_status(job), status="Failed", done=True, error_message=error, error_status_code=code)
    _finish(org, failed)


def _finish(org: Organization, result: RetrieveResult) -> None:
    reply = write_results("checkRetrieveStatus", [result])
    with org.database.transaction():
        job = org.jobs.get("retrieve", result.id)
        if job is not None and not job.is_over:
            org.jobs.finish(result.id, result.status, reply, now=time.time())


def _read_request(request: bytes) -> Manifest:
    content = read_object(request)
    types = tuple(
        ManifestTypes(text(each, "name"), tuple(texts(each, "members"))) for each in list_of_objects(content, "types")
    )
    return Manifest(types, optional_text(content, "version"))


def _find(
    org: Organization, manifest: Manifest, folder: str
) -> tuple[list[tuple[MetadataType, FileProperties]], list[RetrieveMessage]]:
    found: list[tuple[MetadataType, FileProperties]] = []
    messages: list[RetrieveMessage] = []
    for kind, members in _selected(manifest):
        there = {each.full_name.casefold(): each for each in list_components(org, kind, folder=folder)}
        asked = {name.casefold(): name for name in members if name != WILDCARD}
        keys = there if WILDCARD in members else [key for key in asked if key in there]
        found += [(kind, there[key]) for key in keys]
        messages += [_absent(kind, name, folder) for key, name in asked.items() if key not in there]
    return found, messages


def _unknown(manifest: Manifest, folder: str) -> Iterator[RetrieveMessage]:
    for types in manifest.types:
        if metadata_type(types.name) is None:
            problem = f"Unknown type name '{types.name}' specified in package.xml"
            yield RetrieveMessage(f"{folder}{_MANIFEST}", problem)


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


def _properties(kind: MetadataType, stored: StoredComponent, folder: str, names: Mapping[str, str]) -> FileProperties:
    return FileProperties(
        type=kind.name,
        full_name=stored.full_name,
        file_name=f"{folder}{kind.directory}/{stored.full_name}.{kind.suffix}",
        id=stored.id,
        created_by_id=stored.created_by,
        created_by_name=names[stored.created_by],
        created_date=to_timestamp(stored.created),
        last_modified_by_id=stored.modified_by,
        last_modified_by_name=names[stored.modified_by],
        last_modified_date=to_timestamp(stored.modified),
    )


def _manifest_properties(folder: str, now: float) -> FileProperties:
    name, moment = f"{folder}{_MANIFEST}", to_timestamp(now)
    return FileProperties("Package", name, name, created_date=moment, last_modified_date=moment)


def _absent(kind: MetadataType, name: str, folder: str) -> RetrieveMessage:
    return RetrieveMessage(f"{folder}{_MANIFEST}", f"Entity of type '{kind.name}' named '{name}' cannot be found")
