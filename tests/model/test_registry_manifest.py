from __future__ import annotations

from evalmeta.model.registry import ManifestTypes, merge_types

TYPE = "AiEvaluationDefinition"


def test_blocks_of_one_type_and_repeated_members_are_united_and_sorted() -> None:
    blocks = (ManifestTypes("Flow", ("F",)), ManifestTypes(TYPE, ("b", "a", "b")), ManifestTypes(TYPE, ("c", "a")))
    assert merge_types(blocks) == (ManifestTypes(TYPE, ("a", "b", "c")), ManifestTypes("Flow", ("F",)))


def test_a_handled_type_gets_its_own_spelling() -> None:
    assert merge_types((ManifestTypes(TYPE.lower(), ("a",)), ManifestTypes(TYPE, ("b",)))) == (
        ManifestTypes(TYPE, ("a", "b")),
    )


def test_the_wildcard_stays_beside_members() -> None:
    assert merge_types((ManifestTypes(TYPE, ("a", "*")),)) == (ManifestTypes(TYPE, ("*", "a")),)
