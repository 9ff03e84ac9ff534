"""The rules about the folders of bundles: what is reported, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bundles import BROKEN, METADATA, SCRIPT, bundle_parts, write_bundle
from evalmeta import limits
from evalmeta.api.files import validate
from evalmeta.model.bundle_content import join_files
from evalmeta.model.registry import AUTHORING_BUNDLE
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.validator import validate_component

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.problem import Problem

NAMESPACE = b'xmlns="http://soap.sforce.com/2006/04/metadata"'


def problems(files: dict[str, bytes], policy: RulePolicy = RulePolicy()) -> list[Problem]:  # noqa: B008 - immutable
    return validate_component(AUTHORING_BUNDLE, join_files(files), label="b/Desk", full_name="Desk", policy=policy)


def places(found: list[Problem]) -> list[tuple[str, str]]:
    return [(str(problem.location), problem.code) for problem in found]


def test_a_bundle_with_script_and_metadata_has_no_problem() -> None:
    assert problems(bundle_parts("Desk")) == []


@pytest.mark.parametrize("name", ["Desk.agent", "Desk.bundle-meta.xml"])
def test_a_bundle_lacks_its_script_or_its_metadata(name: str) -> None:
    files = bundle_parts("Desk")
    del files[name]
    [problem] = problems(files)
    assert (str(problem.location), problem.code, problem.is_error) == ("b/Desk", "bundle-file-missing", True)
    assert (name in problem.message, problem.component) == (True, "AiAuthoringBundle:Desk")
    assert ".forceignore" in problem.hint


def test_a_file_with_another_name_than_the_folder_is_missing_and_unknown() -> None:
    found = problems({"desk.agent": SCRIPT, "Desk.bundle-meta.xml": METADATA})
    assert places(found) == [("b/Desk", "bundle-file-missing"), ("b/Desk/desk.agent", "bundle-file-unknown")]
    assert found[0].hint == "Rename desk.agent."


def test_any_other_file_is_a_warning_by_default_and_an_error_by_the_reference() -> None:
    files = {**bundle_parts("Desk"), "notes.txt": b""}
    for profile, is_error in (("orgs", False), ("documented", True)):
        [problem] = problems(files, RulePolicy(profile=profile))
        assert (str(problem.location), problem.is_error) == ("b/Desk/notes.txt", is_error)
    assert problems(files, RulePolicy(rules={"bundle-file-unknown": "off"})) == []


def test_the_problems_of_a_script_have_line_and_column() -> None:
    assert places(problems(bundle_parts("Desk", BROKEN))) == [("b/Desk/Desk.agent:6:29", "script-reference")]


@pytest.mark.parametrize(
    ("metadata", "place", "code"),
    [
        (b"<AiAuthoringBundle " + NAMESPACE + b"/>", "1:1", "element-missing"),
        (METADATA.replace(b"</bundleType>", b"</bundleType>\n<tag>1</tag>"), "4:1", "element-unknown"),
        (METADATA.replace(b"AiAuthoringBundle", b"Bot"), "2:1", "xml-root"),
        (b"no xml", "1:1", "xml-malformed"),
        (b"", "1:1", "xml-malformed"),
    ],
)
def test_the_problems_of_a_metadata_file_have_line_and_column(metadata: bytes, place: str, code: str) -> None:
    assert places(problems(bundle_parts("Desk", metadata=metadata))) == [(f"b/Desk/Desk.bundle-meta.xml:{place}", code)]


def test_all_documented_fields_are_accepted_in_any_order() -> None:
    fields = b"<versionTag>v1</versionTag><bundleType>AGENT</bundleType>"
    fields += b"<versionDescription>First</versionDescription><target>Desk.v1</target>"
    metadata = b"<AiAuthoringBundle " + NAMESPACE + b">" + fields + b"</AiAuthoringBundle>"
    assert problems(bundle_parts("Desk", metadata=metadata)) == []


def test_files_that_are_too_large_are_problems_with_their_names() -> None:
    found = problems(bundle_parts("Desk", b" " * (limits.MAX_SCRIPT_BYTES + 1), b" " * (limits.MAX_XML_BYTES + 1)))
    assert [problem.code for problem in found] == ["script-syntax", "xml-too-large"]


def test_a_file_of_a_bundle_stands_for_the_bundle(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path, "Desk")
    (folder / "Desk.agent").unlink()
    for path in (folder / "Desk.bundle-meta.xml", folder, tmp_path):
        found = validate([path])
        assert (found.files, [problem.code for problem in found.problems]) == (1, ["bundle-file-missing"])
    write_bundle(tmp_path, "Desk", BROKEN)
    found = validate([folder / "Desk.agent", folder / "Desk.bundle-meta.xml"])
    assert (found.files, [problem.code for problem in found.problems]) == (2, ["script-reference"])


def test_a_test_in_the_folder_of_a_bundle_is_still_validated(tmp_path: Path) -> None:
    """Both the bundle and the test have a problem."""
    folder = write_bundle(tmp_path, "Desk")
    (folder / "tests.yaml").write_text("subject: Desk\ntestCases:\n- input: Hi\n")
    for found in (validate([tmp_path]), validate(start=tmp_path)):
        assert [problem.code for problem in found.problems] == ["bundle-file-unknown", "expectations-missing"]


def test_bundles_of_one_name_are_reported_by_a_validation(tmp_path: Path) -> None:
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "a"}, {"path": "b"}]}')
    for folder in ("a", "b"):
        write_bundle(tmp_path / folder, "Desk")
    assert [problem.code for problem in validate([tmp_path / "a", tmp_path / "b"]).problems] == ["full-name-duplicate"]
