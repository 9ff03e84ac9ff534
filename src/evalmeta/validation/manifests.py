"""Validation of manifests (package.xml, destructive changes), as problems with their locations."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Problem, Severity, quote
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    TYPES,
    WILDCARD,
    is_other_type,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.validation.validator import first_problems, read_rooted
from evalmeta.xmlio.manifests import MANIFEST_ROOT, read_manifest
from evalmeta.xmlio.structure import check_structure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.registry import Manifest
    from evalmeta.xmlio.reader import Document, Step


def validate_manifest(
    data: bytes, *, label: str, destructive: bool = False, mixed: bool = False
) -> tuple[Manifest | None, list[Problem]]:
    """Return a manifest and its problems; the manifest is None if it cannot be read.

    A `destructive` manifest names every component to delete and needs no version. A `mixed` one may name Salesforce
    types that evalmeta does not support, with a warning.
    """
    try:
        document = read_rooted(data, label, MANIFEST_ROOT)
    except InvalidMetadata as error:
        return None, list(error.problems)
    structure = check_structure(document, "package.xsd")
    if structure:
        return None, [problem.problem for problem in structure]
    manifest = read_manifest(document)
    check_rest = _check_wildcards if destructive else _check_version
    problems = chain(_check_types(manifest, document, mixed=mixed), check_rest(manifest, document))
    return manifest, first_problems(problems)


def _check_types(manifest: Manifest, document: Document, *, mixed: bool) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        if metadata_type(types.name) is None:
            step = ("name", 0)
            if mixed and is_other_type(types.name):
                message = f"the type {quote(types.name)} is not supported by evalmeta and is skipped"
                hint = "Use the sf CLI for it."
                yield _problem(document, place, step, "manifest-type-other", message, hint, Severity.WARNING)
            else:
                near = nearest_type_name(types.name)
                supported = ", ".join(row.name for row in TYPES)
                hint = f"Did you mean {near}?" if near else f"Use a separate manifest for {supported}."
                message = f"the metadata type {quote(types.name)} is not supported by evalmeta"
                yield _problem(document, place, step, "manifest-type-unknown", message, hint)
        for index, member in enumerate(types.members):
            if not member:
                hint = "Name a component, or write * for all components of the type."
                yield _problem(document, place, ("members", index), "manifest-member-empty", "a member is empty", hint)


def _check_wildcards(manifest: Manifest, document: Document) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        for index, member in enumerate(types.members):
            if WILDCARD in member:
                message = f"destructive changes cannot use wildcards, such as {quote(member)}"
                hint = "Name each component to delete."
                yield _problem(document, place, ("members", index), "destructive-wildcard", message, hint)


def _check_version(manifest: Manifest, document: Document) -> Iterator[Problem]:
    if manifest.version is None:
        hint = f"Add <version>{NEWEST_API_VERSION}</version>."
        location = document.location()
        yield Problem("manifest-version-missing", Severity.ERROR, location, "the manifest has no <version>", hint)
        return
    location = document.location(document.find([("version", 0)]))
    version = parse_api_version(manifest.version)
    if version is None:
        message = f"{quote(manifest.version)} is not a valid API version"
        yield Problem("manifest-version-invalid", Severity.ERROR, location, message, f"Write {NEWEST_API_VERSION}.")
        return
    known = [row for types in manifest.types if (row := metadata_type(types.name))]
    newest = max(known, key=lambda row: row.since, default=None if manifest.types else TYPES[0])
    if newest and version < newest.since:
        message = f"{newest.name} requires API version {newest.since} or later; the manifest has {version}"
        hint = f"Write <version>{newest.since}</version>."
        yield Problem("manifest-version-old", Severity.ERROR, location, message, hint)


def _problem(
    document: Document, place: int, step: Step, code: str, message: str, hint: str, severity: Severity = Severity.ERROR
) -> Problem:
    """Return a problem at an element of the manifest's nth `<types>`."""
    return Problem(code, severity, document.location(document.find([("types", place), step])), message, hint)
