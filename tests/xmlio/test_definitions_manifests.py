from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.registry import Manifest, ManifestTypes, merge_types
from evalmeta.xmlio.definitions import index_members, read_manifest, write_manifest
from evalmeta.xmlio.reader import read_xml

SAMPLES = Path(__file__).parents[2] / "metadata-samples"
TYPE = "AiEvaluationDefinition"
HEAD = '<Package xmlns="http://soap.sforce.com/2006/04/metadata">'
CANONICAL = f"""<?xml version="1.0" encoding="UTF-8"?>
{HEAD}
    <fullName>All &amp; more</fullName>
    <description>It&apos;s all</description>
    <types>
        <members>*</members>
        <members>My_Tests</members>
        <name>{TYPE}</name>
    </types>
    <types>
        <members>X</members>
        <name>{TYPE}</name>
    </types>
    <version>64.0</version>
</Package>
""".encode()

NAMES = st.from_regex(r"[A-Za-z][\w.-]{0,8}", fullmatch=True)
BLOCKS = st.builds(ManifestTypes, NAMES, st.lists(NAMES | st.just("*"), min_size=1).map(tuple))
MANIFESTS = st.builds(
    Manifest, st.lists(BLOCKS).map(tuple), st.none() | st.sampled_from(["64.0", "64"]), st.none() | NAMES
)


def read(data: bytes) -> Manifest:
    return read_manifest(read_xml(data, label="package.xml"))


def test_a_canonical_file_is_written_as_it_was_read() -> None:
    assert write_manifest(read(CANONICAL)) == CANONICAL


@pytest.mark.parametrize("path", [SAMPLES / "package.xml", SAMPLES / "failing/package.xml"], ids=str)
def test_the_samples_are_canonical(path: Path) -> None:
    assert write_manifest(read(path.read_bytes())) == path.read_bytes()


@given(MANIFESTS)
def test_what_is_written_is_read_back(manifest: Manifest) -> None:
    assert read(write_manifest(manifest)) == manifest


@given(MANIFESTS)
def test_uniting_blocks_keeps_the_meaning(manifest: Manifest) -> None:
    def members(blocks: tuple[ManifestTypes, ...]) -> set[tuple[str, str]]:
        return {(block.name, member) for block in blocks for member in block.members}

    united = merge_types(manifest.types)
    assert members(united) == members(manifest.types)
    assert merge_types(united) == united


def test_another_form_keeps_its_meaning() -> None:
    types = f"<types><name> {TYPE}\n</name><!-- all --><members> * </members></types>"
    other = f"{HEAD}<version> 64 </version>{types}</Package>"
    manifest = read(other.encode())
    assert manifest == Manifest((ManifestTypes(TYPE, ("*",)),), "64")
    assert read(write_manifest(manifest)) == manifest


def test_members_are_placed_in_whatever_block_they_stand() -> None:
    locate = index_members(read_xml(CANONICAL, label="package.xml"))
    assert locate(TYPE, "My_Tests") == (7, 9)
    assert locate(TYPE, "X") == (11, 9)
    assert locate(TYPE, "") == (8, 9)
    assert locate(TYPE, "absent") == (2, 1)
    assert locate("", "") == (2, 1)
