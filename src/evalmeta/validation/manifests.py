"""Manifests in, problems out, every one with its place."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from evalmeta.errors import InvalidMetadata
from evalmeta.model.component import WILDCARD
from evalmeta.model.problem import Problem, Severity
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    TYPES,
    is_other_type,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.validation.finding import quote
from evalmeta.validation.structure import check_schema
from evalmeta.validation.validator import first_problems, read_rooted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.component import Manifest
    from evalmeta.model.problem import Location
    from evalmeta.xmlio.reader import Document


_MANIFEST_XSD: Final = "package.xsd"


def validate_manifest(
    data: bytes, *, label: str, destructive: bool = False, mixed: bool = False
) -> tuple[Manifest | None, list[Problem]]:
    """Reads a manifest and lists its problems; the manifest is None when it cannot be read.

    Args:
        data: the file's bytes.
        label: the file's name as messages show it.
        destructive: whether it says what to delete: every component by its name, and no version is needed.
        mixed: whether it may name types of Salesforce's own that evalmeta does not handle, with a warning.
    """
    from evalmeta.xmlio.manifests import MANIFEST_ROOT, read_manifest  # noqa: PLC0415 - definitions do without

    try:
        document = read_rooted(data, label, MANIFEST_ROOT)
    except InvalidMetadata as error:
        return None, list(error.problems)
    complaints = check_schema(document, _MANIFEST_XSD)
    if complaints:
        return None, [complaint.problem for complaint in complaints]
    manifest = read_manifest(document)
    check_rest = _check_wildcards if destructive else _check_version
    found = chain(_check_types(manifest, document, mixed=mixed), check_rest(manifest, document))
    return manifest, first_problems(found)


def _check_types(manifest: Manifest, document: Document, *, mixed: bool) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        if metadata_type(types.name) is None:
            location = document.location(document.find([("types", place), ("name", 0)]))
            tell = _other_type if mixed and is_other_type(types.name) else _unknown_type
            yield tell(types.name, location)
        for index, member in enumerate(types.members):
            if not member:
                location = document.location(document.find([("types", place), ("members", index)]))
                hint = "Name a component, or write * for all of the type."
                yield Problem("manifest-member-empty", Severity.ERROR, location, "a member is empty", hint)


def _other_type(name: str, location: Location) -> Problem:
    message = f"the type {quote(name)} is left out: it is none that evalmeta handles"
    return Problem("manifest-type-other", Severity.WARNING, location, message, "Leave it to the sf CLI.")


def _unknown_type(name: str, location: Location) -> Problem:
    near = nearest_type_name(name)
    handled = ", ".join(row.name for row in TYPES)
    hint = f"Did you mean {near}?" if near else f"Keep a manifest of its own for {handled}."
    message = f"the metadata type {quote(name)} is not one that evalmeta handles"
    return Problem("manifest-type-unknown", Severity.ERROR, location, message, hint)


def _check_wildcards(manifest: Manifest, document: Document) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        for index, member in enumerate(types.members):
            if WILDCARD in member:
                location = document.location(document.find([("types", place), ("members", index)]))
                message = f"destructive changes take no wildcard, and {quote(member)} is one"
                hint = "Name each component that is to be deleted."
                yield Problem("destructive-wildcard", Severity.ERROR, location, message, hint)


def _check_version(manifest: Manifest, document: Document) -> Iterator[Problem]:
    if manifest.version is None:
        hint = f"Add <version>{NEWEST_API_VERSION}</version>."
        location = document.location()
        yield Problem("manifest-version-missing", Severity.ERROR, location, "the manifest has no <version>", hint)
        return
    location = document.location(document.find([("version", 0)]))
    version = parse_api_version(manifest.version)
    if version is None:
        message = f"{quote(manifest.version)} is no API version"
        hint = f"Write it as {NEWEST_API_VERSION}."
        yield Problem("manifest-version-invalid", Severity.ERROR, location, message, hint)
        return
    known = [row for types in manifest.types if (row := metadata_type(types.name))]
    newest = max(known, key=lambda row: row.since, default=None if manifest.types else TYPES[0])
    if newest and version < newest.since:
        message = f"{newest.name} needs API version {newest.since} or later; the manifest says {version}"
        hint = f"Write <version>{newest.since}</version>."
        yield Problem("manifest-version-old", Severity.ERROR, location, message, hint)
