"""What orgs accept is validated, deployed and run with the defaults, each peculiarity of real files by itself."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

VARIABLE = "<contextVariable><variableName>Tier</variableName>{}</contextVariable>"
HISTORY = (
    "<conversationHistory><role>user</role><message>Hello</message></conversationHistory>"
    "<conversationHistory><message>Welcome</message>{}<role>agent</role></conversationHistory>"
)
TOPIC = "<expectation><expectedValue>Opening_Hours</expectedValue><name>topic_sequence_match</name></expectation>"
LONG = f"<parameter><name>expected</name><value>{'a' * 101}</value></parameter>"
CRITERION = (
    "<expectation><label>Hours</label><name>string_comparison</name>"
    "<parameter><name>operator</name><value>contains</value></parameter>"
    "<parameter><isReference>true</isReference><name>actual</name><value>$.generatedData.outcome</value></parameter>"
    f"{LONG}</expectation>"
)
PECULIARITIES = {
    "name-format": {"name": "Opening hours, of the desk"},
    "context-variable-empty": {"inputs": VARIABLE.format("")},
    "context-variable-twice": {"inputs": VARIABLE.format("<variableValue>Gold</variableValue>") * 2},
    "history-topic": {"inputs": HISTORY.format("")},
    "history-index": {"inputs": HISTORY.format("<topic>Opening_Hours</topic><index>4</index>")},
    "expected-value-missing": {"expectations": "<expectation><name>bot_response_rating</name></expectation>"},
    "actions-unreadable": {
        "expectations": "<expectation><expectedValue>Find, Book</expectedValue><name>actions_assertion</name>"
        "</expectation>"
    },
    "expected-value-unused": {
        "expectations": "<expectation><expectedValue>yes</expectedValue><name>coherence</name></expectation>"
    },
    "parameter-unused": {"expectations": f"<expectation><name>conciseness</name>{LONG}</expectation>"},
    "parameter-too-long": {"expectations": CRITERION},
    "parameter-unknown": {
        "expectations": CRITERION.replace("a" * 101, "9").replace(
            "</expectation>", "<parameter><name>tolerance</name><value>1</value></parameter></expectation>"
        )
    },
    "expectations-missing": {"topic": ""},
}


def definition(
    name: str = "Desk_Hours", *, inputs: str = "", expectations: str = "", topic: str = TOPIC, after: str = ""
) -> str:
    # The elements are in an order of their own, as in real files.
    return (
        "<?xml version='1.0' encoding='UTF-8' ?>\n"
        '<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">\n'
        f"<!-- written by hand -->\n<subjectVersion>v2</subjectVersion><name>{name}</name>"
        "<subjectType>AGENT</subjectType><subjectName>Desk</subjectName>\n"
        f"<testCase>{expectations}{topic}<number>3</number>"
        f"<inputs>{inputs}<utterance\n>When do you open?</utterance></inputs></testCase>{after}\n"
        "</AiEvaluationDefinition>\n"
    )


@pytest.fixture
def dx_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the folder for definitions of a plain DX project without evalmeta.toml, which is the current folder."""
    (tmp_path / "sfdx-project.json").write_text(
        json.dumps({"packageDirectories": [{"path": "force-app", "default": True}], "sourceApiVersion": "66.0"})
    )
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "force-app/main/default/aiEvaluationDefinitions"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("code", PECULIARITIES)
def test_what_orgs_accept_is_validated_with_a_warning_and_deployed(
    code: str, evalmeta: Program, dx_project: Path
) -> None:
    (dx_project / "Hours.aiEvaluationDefinition-meta.xml").write_text(definition(**PECULIARITIES[code]))

    checked = evalmeta("validate", "--json")
    deployed = evalmeta("deploy", "--json")

    problems = json.loads(checked.out)["result"]["problems"]
    assert {(problem["code"], problem["severity"]) for problem in problems} == {(code, "warning")}
    assert (checked.code, deployed.code) == (0, 0)


@pytest.mark.parametrize("code", PECULIARITIES)
def test_what_orgs_accept_runs_as_a_file(code: str, evalmeta: Program, dx_project: Path) -> None:
    file = dx_project / "Hours.aiEvaluationDefinition-meta.xml"
    file.write_text(definition(**PECULIARITIES[code]))
    (dx_project.parents[3] / "desk.py").write_text("def answer(utterance):\n    return 'At nine.'\n")

    done = evalmeta("test", "run", str(file), "--agent", "desk:answer", "--wait", "--json")

    (case,) = json.loads(done.out)["result"][0]["testCases"]
    assert case["generatedData"]["outcome"] == "At nine."


@pytest.mark.parametrize("code", sorted(set(PECULIARITIES) - {"expected-value-unused", "expectations-missing"}))
def test_the_strict_profile_refuses_what_only_orgs_accept(code: str, evalmeta: Program, dx_project: Path) -> None:
    (dx_project / "Hours.aiEvaluationDefinition-meta.xml").write_text(definition(**PECULIARITIES[code]))

    by_option = evalmeta("validate", "--profile", "documented")
    (dx_project.parents[3] / "evalmeta.toml").write_text('[validate]\nprofile = "documented"\n')
    by_settings = evalmeta("deploy")

    assert by_option.code == by_settings.code == 1
    assert f"[{code}]" in by_option.out
    assert f"[{code}]" in by_settings.err


def test_deploy_and_test_run_print_one_line_for_each_code_of_warnings(evalmeta: Program, dx_project: Path) -> None:
    for name in ("First", "Second"):
        file = dx_project / f"{name}.aiEvaluationDefinition-meta.xml"
        file.write_text(definition(f"{name} label", inputs=HISTORY.format("") if name == "First" else ""))
    (dx_project.parents[3] / "desk.py").write_text("def answer(utterance):\n    return 'At nine.'\n")

    deployed = evalmeta("deploy").err
    run = evalmeta("test", "run", "force-app", "--agent", "desk:answer", "--wait").err

    first = "force-app/main/default/aiEvaluationDefinitions/First.aiEvaluationDefinition-meta.xml"
    topic = f"Warning: 1 finding of history-topic. Show: evalmeta validate {first}\n"
    label = "Warning: 2 findings of name-format in 2 files. Show: evalmeta validate"
    for printed, path in ((deployed, ""), (run, " force-app")):
        assert topic in printed
        assert f"{label}{path}\n" in printed
        assert printed.count("Warning:") == 2
    listed = evalmeta("validate").out
    assert f"{first}\n  4:36  warning the name 'First label' is not a valid API name [name-format]\n    Use" in listed
    assert listed.endswith("\n3 warnings in 2 of 2 files\n")


def test_the_command_that_shows_warnings_is_printed_once(evalmeta: Program, dx_project: Path) -> None:
    file = dx_project / "First.aiEvaluationDefinition-meta.xml"
    file.write_text(definition("First label", inputs=HISTORY.format("")))
    printed = evalmeta("deploy").err
    path = "force-app/main/default/aiEvaluationDefinitions/First.aiEvaluationDefinition-meta.xml"
    assert re.findall("Warning: .*", printed) == [
        "Warning: 1 finding of name-format.",
        f"Warning: 1 finding of history-topic. Show them: evalmeta validate {path}",
    ]


def test_errors_are_shown_in_full_and_warnings_beside_them_are_counted(evalmeta: Program, dx_project: Path) -> None:
    text = definition("A label", expectations="<expectation><name>topic_match</name></expectation>" * 2)
    (dx_project / "Hours.aiEvaluationDefinition-meta.xml").write_text(text)

    refused = evalmeta("deploy").err, evalmeta("test", "run", "force-app", "--wait").err

    for printed in refused:
        assert printed.count("error 'topic_match' is not a known expectation [expectation-unknown]") == 2
        assert "Warning: 1 finding of name-format. Show: evalmeta validate " in printed
        assert "'A label'" not in printed


def test_what_an_org_warns_about_does_not_fill_the_screen(evalmeta: Program, dx_project: Path) -> None:
    for number in range(9):
        (dx_project / f"H{number}.aiEvaluationDefinition-meta.xml").write_text(definition("A label"))
    (dx_project.parents[3] / "evalmeta.toml").write_text(
        '[validate.rules]\nname-format = "off"\nname-duplicate = "off"\n'
    )

    done = evalmeta("deploy")

    assert done.code == 0
    assert done.err.count("the name 'A label'") == 5
    assert "Warning: the org reports 4 more, which --json lists\n" in done.err


def test_validate_in_a_folder_of_a_project_names_the_project(
    evalmeta: Program, dx_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dx_project / "Hours.aiEvaluationDefinition-meta.xml").write_text(definition())
    root = dx_project.parents[3]
    assert evalmeta("validate") == (0, "1 file is valid\n", "")

    monkeypatch.chdir(dx_project)

    assert evalmeta("validate") == (0, "1 file is valid\n", f"Project: {root}\n")
    assert evalmeta("validate", ".").err == ""
    assert evalmeta("validate", "--result-format", "github").err == ""


def test_a_plain_dx_project_is_validated_deployed_and_retrieved(evalmeta: Program, dx_project: Path) -> None:
    file = dx_project / "Hours.aiEvaluationDefinition-meta.xml"
    file.write_text(definition())
    assert [evalmeta(command).code for command in ("validate", "deploy")] == [0, 0]
    shutil.rmtree(dx_project.parents[2])

    assert evalmeta("retrieve").code == 0

    assert file.read_text() == definition()
    assert [evalmeta(command).code for command in ("validate", "deploy")] == [0, 0]


@pytest.mark.parametrize("command", ["validate", "deploy", "retrieve"])
def test_a_folder_without_a_project_says_what_to_do(
    command: str, evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    done = evalmeta(command)

    assert done.code == 2
    assert f"There is no project in {tmp_path} or above it" in done.err
    for way_out in ("Change to the folder of a Salesforce DX project", "evalmeta init --dx", "Or name files"):
        assert way_out in done.err
