"""Bundles of agents in Agent Script, as files of a project and as entries of a zip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.registry import AUTHORING_BUNDLE, Manifest, ManifestTypes
from evalmeta.package.archive import build_zip
from evalmeta.xmlio.definitions import write_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["BROKEN", "METADATA", "SCRIPT", "bundle_package", "bundle_parts", "write_bundle"]

METADATA = b"""<?xml version="1.0" encoding="UTF-8"?>
<AiAuthoringBundle xmlns="http://soap.sforce.com/2006/04/metadata">
    <bundleType>AGENT</bundleType>
</AiAuthoringBundle>
"""
SCRIPT = b"""start_agent reception:
    description: "Answers visitors"
    reasoning:
        instructions: ->
            | Greet the visitor.
"""
BROKEN = SCRIPT + b"            | The plan is {!@variables.plan}.\n"
"""A script with an error in line 6, column 29."""


def bundle_parts(name: str, script: bytes = SCRIPT, metadata: bytes = METADATA) -> dict[str, bytes]:
    """Return the files of a bundle by their names in its folder."""
    return {f"{name}.agent": script, f"{name}.bundle-meta.xml": metadata}


def write_bundle(root: Path, name: str, script: bytes = SCRIPT, metadata: bytes = METADATA) -> Path:
    """Write a bundle into `aiAuthoringBundles` of a folder, and return its own folder."""
    folder = root / AUTHORING_BUNDLE.directory / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in bundle_parts(name, script, metadata).items():
        (folder / file).write_bytes(content)
    return folder


def bundle_package(files: Mapping[str, bytes], *members: str, version: str = "66.0") -> bytes:
    """Return a zip of files by their paths below `aiAuthoringBundles`; by default, its manifest names all bundles."""
    manifest = write_manifest(Manifest((ManifestTypes(AUTHORING_BUNDLE.name, members or ("*",)),), version))
    entries = ((f"{AUTHORING_BUNDLE.directory}/{path}", content) for path, content in files.items())
    return build_zip([("package.xml", manifest), *entries])
