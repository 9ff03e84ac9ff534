from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.team import Team
    from conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.fixture
def deployed(team: Team, evalmeta: Program) -> Team:
    for name in "ABC":
        team.write(name)
    evalmeta("deploy")
    return team


def test_project_and_org_are_compared_by_test_case(deployed: Team, evalmeta: Program) -> None:
    path = deployed.write("A", "Where is it?")
    path.write_text(path.read_text().replace(">Orders<", ">Returns<"))

    done = evalmeta("diff")

    assert done.code == 0
    assert done.out == (
        f"A (- the org, + {path})\n"
        "  test case 1\n"
        "    utterance\n"
        "      - Hi\n"
        "      + Where is it?\n"
        "    expectation topic_assertion, expectedValue\n"
        "      - Orders\n"
        "      + Returns\n"
    )


def test_a_difference_in_formatting_only_is_reported_as_such(deployed: Team, evalmeta: Program) -> None:
    path = deployed.path("A")
    path.write_text(path.read_text().replace("    ", "\t"))

    assert "same content; only order, layout, escaping or comments differ" in evalmeta("diff", "A").out


def test_a_definition_missing_on_one_side_is_reported(deployed: Team, evalmeta: Program) -> None:
    deployed.path("B").unlink()
    new = deployed.write("D")

    assert evalmeta("diff").out == f"B: only in the org\nD: only in the project ({new})\n"


def test_only_what_was_named_is_compared(deployed: Team, evalmeta: Program) -> None:
    for name in "AB":
        deployed.write(name, "other")

    done = evalmeta("diff", "--json", "b")

    assert [each["fullName"] for each in json.loads(done.out)["result"]["differences"]] == ["B"]


def test_an_unknown_name_is_refused_with_the_closest_name(deployed: Team, evalmeta: Program) -> None:
    deployed.write("Order_Desk")

    done = evalmeta("diff", "Order_Dsk")

    assert done.code == 2
    assert "Did you mean Order_Desk?" in done.err


def test_an_invalid_file_is_a_problem_and_the_others_are_shown(deployed: Team, evalmeta: Program) -> None:
    bad = deployed.path("A")
    bad.write_text(bad.read_text().replace("</AiEvaluationDefinition>", ""))
    deployed.write("B", "other")

    done = evalmeta("diff")

    assert done.code == 1
    assert "xml-malformed" in done.err
    assert done.out.startswith("B (")


def test_equal_definitions_are_not_printed(deployed: Team, evalmeta: Program) -> None:
    assert evalmeta("diff").out == "No differences.\n"
    assert deployed.jobs("retrieve") == 0


def test_two_files_are_compared_without_a_project(evalmeta: Program, team: Team) -> None:
    before, after = team.write("A"), team.write("B")

    done = evalmeta("diff", str(before), str(after))

    assert done.out == f"- {before}, + {after}\n  name\n    - A\n    + B\n"
    assert done.err == ""


def test_two_files_with_the_same_bytes_have_no_differences(evalmeta: Program, team: Team) -> None:
    path = str(team.write("A"))

    assert evalmeta("diff", path, path).out == "No differences.\n"


def test_added_and_removed_cases_are_shown_with_their_utterances(evalmeta: Program, team: Team) -> None:
    before, after = team.write("A"), team.write("B")
    case = "<testCase><inputs><utterance>New</utterance></inputs></testCase>"
    after.write_text(before.read_text().replace("</testCase>", f"</testCase>{case}"))

    assert evalmeta("diff", str(before), str(after)).out.endswith("\n  test case 2: added\n    + New\n")
    assert evalmeta("diff", str(after), str(before)).out.endswith("\n  test case 2: removed\n    - New\n")


def test_texts_that_differ_in_blanks_alone_are_quoted(evalmeta: Program, team: Team) -> None:
    before, after = team.write("A", "Where is it?"), team.path("B")
    after.write_text(before.read_text().replace("is it", "is  it"))

    assert '    - "Where is it?"\n      + "Where is  it?"\n' in evalmeta("diff", str(before), str(after)).out


def test_nothing_in_a_text_can_act_on_a_terminal(evalmeta: Program, team: Team) -> None:
    before, after = team.write("A"), team.write("A2", "\x85\u202eHi\u009b2J")

    out = evalmeta("diff", str(before), str(after)).out

    assert not set(out) & set("\x85\u202e\u009b")


def test_old_and_new_are_coloured(evalmeta: Program, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = team.write("A"), team.write("B")
    monkeypatch.setenv("FORCE_COLOR", "1")

    out = evalmeta("diff", str(before), str(after)).out

    assert "\x1b[31m    - A" in out
    assert "\x1b[32m    + B" in out
