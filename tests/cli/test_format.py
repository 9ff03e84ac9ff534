from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.team import Team
    from conftest import Outcome

    Program = Callable[..., Outcome]


def test_files_are_written_in_canonical_form_and_listed(evalmeta: Program, team: Team) -> None:
    canonical, other = team.write("A"), team.write("B")
    other.write_text(other.read_text().replace("    <subjectName>", "<!-- the desk -->\n<subjectName>"))

    done = evalmeta("format")

    assert (done.code, done.out) == (0, f"{other}\n")
    assert "Formatted 1 of 2 files." in done.err
    assert other.read_text() == canonical.read_text().replace("<name>A<", "<name>B<").replace(
        "    <subjectName>", "    <!-- the desk -->\n    <subjectName>"
    )


def test_formatting_a_second_time_changes_nothing(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    first, second = evalmeta("format"), evalmeta("format")

    assert first.out
    assert (second.code, second.out) == (0, "")


def test_a_formatted_project_is_valid_and_means_the_same(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    evalmeta("deploy")
    evalmeta("format")

    differences = json.loads(evalmeta("diff", "--json").out)["result"]["differences"]

    assert evalmeta("validate").code == 0
    assert {difference["formOnly"] for difference in differences} == {True}


def test_a_check_writes_nothing_and_fails(evalmeta: Program, team: Team) -> None:
    path = team.write("A")
    path.write_text(path.read_text() + "\n")
    before = path.read_bytes()

    done = evalmeta("format", "--check")

    assert (done.code, done.out) == (1, f"{path}\n")
    assert "Would format 1 of 1 file." in done.err
    assert path.read_bytes() == before


def test_a_check_of_formatted_files_passes(evalmeta: Program, team: Team) -> None:
    team.write("A")

    assert evalmeta("format", "--check").code == 0


def test_a_file_with_problems_is_left_alone_and_the_others_are_written(evalmeta: Program, team: Team) -> None:
    bad, good = team.write("A"), team.write("B")
    bad.write_text(bad.read_text().replace("<number>", "<numero>"))
    good.write_text(good.read_text() + "\n")
    before = bad.read_bytes()

    done = evalmeta("format")

    assert (done.code, done.out) == (1, f"{good}\n")
    assert "xml-malformed" in done.err
    assert bad.read_bytes() == before


def test_a_manifest_is_formatted(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    manifest = Path("package.xml")
    text = '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><version>64.0</version><!-- all -->{}</Package>'
    manifest.write_text(text.format("<types><name>AiEvaluationDefinition</name><members>*</members></types>"))

    assert evalmeta("format", "package.xml").code == 0
    assert manifest.read_text().splitlines()[2:4] == ["    <!-- all -->", "    <types>"]


def test_a_manifest_with_an_unknown_element_is_left_alone(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    manifest = Path("package.xml")
    manifest.write_text(manifest.read_text().replace("</Package>", "<member>A</member></Package>"))
    before = manifest.read_bytes()

    done = evalmeta("format", "package.xml")

    assert done.code == 1
    assert "element-unknown" in done.err
    assert manifest.read_bytes() == before


def test_the_result_is_printed_as_json(evalmeta: Program, team: Team) -> None:
    path = team.write("A")
    path.write_text(path.read_text() + "\n")

    envelope = json.loads(evalmeta("format", "--check", "--json").out)

    assert envelope["status"] == 1
    assert envelope["result"] == {"files": 1, "changed": [str(path)], "problems": []}


def test_files_that_cannot_be_formatted_are_a_usage_error(evalmeta: Program, team: Team) -> None:
    team.write("A")

    assert evalmeta("format", "absent.aiEvaluationDefinition").code == 2
