from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import ProjectError
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.replacements import Replacements

    Declare = Callable[..., Replacements]

FILE = "force-app/main/default/T.xml"
ROW = {"filename": FILE, "stringToReplace": "__AGENT__", "replaceWithEnv": "AGENT"}


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Return a function that declares replacements, the first row with the changes that it receives."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT", "Sales_Bot")
    (tmp_path / FILE).parent.mkdir(parents=True)

    def declared(*others: dict[str, object], **changes: object) -> Replacements:
        row = {key: value for key, value in {**ROW, **changes}.items() if value is not None}
        content = {"packageDirectories": [{"path": "force-app"}], "replacements": [row, *others]}
        (tmp_path / "sfdx-project.json").write_text(json.dumps(content))
        return find_project(tmp_path).replacements

    return declared


def sent(replacements: Replacements, content: str) -> str:
    (replacements.file.parent / FILE).write_text(content, newline="")
    return replacements.content_to_send(replacements.file.parent / FILE).decode()


def refusal(replacements: Replacements, content: str = "__AGENT__") -> ProjectError:
    with pytest.raises(ProjectError) as caught:
        sent(replacements, content)
    return caught.value


def test_a_text_is_replaced_wherever_it_is(declare: Declare) -> None:
    assert sent(declare(), "a __AGENT__\r\n__AGENT__") == "a Sales_Bot\r\nSales_Bot"


def test_a_text_is_not_a_regular_expression(declare: Declare) -> None:
    assert sent(declare(stringToReplace="$(A.B)"), "$(A.B) $(AxB)") == "Sales_Bot $(AxB)"


def test_replacements_are_made_one_after_the_other(declare: Declare) -> None:
    second = {"glob": "**/*.xml", "regexToReplace": "Sales_(\\w+)", "replaceWithEnv": "AGENT"}
    assert sent(declare(second), "__AGENT__ Sales_X") == "Sales_Bot Sales_Bot"


@pytest.mark.parametrize("filename", ["force-app/main/default/T.xml", "T.xml", "/main/default/T.xml"])
def test_a_file_name_is_the_end_of_a_path(declare: Declare, filename: str) -> None:
    assert sent(declare(filename=filename), "__AGENT__") == "Sales_Bot"


@pytest.mark.parametrize("place", [{"filename": "U.xml"}, {"filename": None, "glob": "*/T.xml.bak"}])
def test_other_files_stay_as_they_are(declare: Declare, place: dict[str, str]) -> None:
    assert sent(declare(**place), "__AGENT__") == "__AGENT__"


def test_the_trimmed_content_of_a_file_is_a_value(declare: Declare, tmp_path: Path) -> None:
    (tmp_path / "agent.txt").write_text("\ufeff Desk\nBot \n")
    assert sent(declare(replaceWithEnv=None, replaceWithFile="agent.txt"), "<__AGENT__>") == "<Desk\nBot>"


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read"), (b" \n", "is empty"), (b"\xff", "is not UTF-8")]
)
def test_a_file_without_a_value_is_an_error(
    declare: Declare, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "agent.txt").write_bytes(content)
    error = refusal(declare(replaceWithEnv=None, replaceWithFile="agent.txt"))
    assert str(error).startswith("sfdx-project.json: replacements[0]: ")
    assert reason in str(error)


def test_a_variable_that_is_not_set_is_an_error(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT")
    error = refusal(declare())
    wanted = f"{FILE}: the variable AGENT of sfdx-project.json: replacements[0], for '__AGENT__', is not set."
    assert (str(error), error.actions) == (wanted, ("Set the environment variable AGENT.",))
    assert sent(declare(allowUnsetEnvVariable=True), "<__AGENT__>") == "<>"


def test_a_variable_may_be_empty(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT", "")
    assert sent(declare(), "<__AGENT__>") == "<>"


@pytest.mark.parametrize(
    ("value", "variable"), [("test", "test"), (True, "true"), (False, "false"), (7, "7"), (1.0, "1"), (0.5, "0.5")]
)
def test_a_replacement_can_depend_on_variables(
    declare: Declare, monkeypatch: pytest.MonkeyPatch, value: object, variable: str
) -> None:
    replacements = declare(replaceWhenEnv=[{"env": "GO", "value": value}, {"env": "AGENT", "value": "Sales_Bot"}])
    assert sent(replacements, "__AGENT__") == "__AGENT__"
    monkeypatch.setenv("GO", variable)
    assert sent(replacements, "__AGENT__") == "Sales_Bot"
    monkeypatch.setenv("AGENT", "Other")
    assert sent(replacements, "__AGENT__") == "__AGENT__"


def test_a_replacement_whose_condition_is_not_fulfilled_needs_no_value(
    declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT")
    assert sent(declare(replaceWhenEnv=[{"env": "GO", "value": "1"}]), "__AGENT__") == "__AGENT__"


@pytest.mark.parametrize(
    "changes", [{"filename": None, "glob": "@(a|b)"}, {"stringToReplace": None, "regexToReplace": "a++"}]
)
def test_a_pattern_that_cannot_be_used_is_an_error(declare: Declare, changes: dict[str, object]) -> None:
    error = refusal(declare(**changes))
    assert str(error).startswith("sfdx-project.json: replacements[0]: the ")
    assert error.actions == ("Correct sfdx-project.json.",)


def test_a_missing_value_has_the_place_of_its_placeholder(
    declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT")
    replacements = declare()
    for content, place in ((b"x", (1, 1)), (b"x\n" * 40_000 + b"<a __AGENT__", (40_001, 4))):
        (tmp_path / FILE).write_bytes(content)
        problem = replacements.problem_of(tmp_path / FILE)
        assert problem
        assert (problem.location.line, problem.location.column) == place


def test_only_utf8_is_replaced(declare: Declare, tmp_path: Path) -> None:
    replacements = declare()
    (tmp_path / FILE).write_bytes(b"\xff")
    with pytest.raises(ProjectError, match=r"T\.xml: is not UTF-8, so no text in it can be replaced"):
        replacements.content_to_send(tmp_path / FILE)


def test_no_match_reaches_over_the_last_line_end_of_a_piece(declare: Declare) -> None:
    replacements = declare(stringToReplace=None, regexToReplace="a\\nb")
    assert sent(replacements, "a\nb") == "a\nb"
    assert sent(replacements, "a\nb\n") == "Sales_Bot\n"
    lines = "x\n" * 32_765
    assert sent(replacements, f"{lines}xa\nb\n") == f"{lines}xSales_Bot\n"
    assert sent(replacements, f"{lines}xx\na\nb\n") == f"{lines}xx\na\nb\n"
    assert sent(replacements, f"{'é' * 70_000}a\nb\n") == f"{'é' * 70_000}Sales_Bot\n"


def test_a_text_that_a_named_file_does_not_have_is_reported(declare: Declare, tmp_path: Path) -> None:
    other = {"glob": "**", "stringToReplace": "__OTHER__", "replaceWithEnv": "AGENT"}
    replaced = declare(other).replace_in(tmp_path / FILE, b"x")
    assert replaced.content == b"x"
    assert replaced.messages == (f"{FILE}: '__AGENT__' of sfdx-project.json: replacements[0] is not in the file",)


def test_values_are_hidden_behind_the_names_of_their_sources(
    declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key.txt").write_text("Sales_Bot_2\n")
    rows = [
        {"glob": "*", "stringToReplace": "k", "replaceWithFile": "key.txt"},
        {"glob": "*", "stringToReplace": "s", "replaceWithEnv": "SHORT"},
        {"glob": "*", "stringToReplace": "m", "replaceWithFile": "missing.txt"},
    ]
    monkeypatch.setenv("SHORT", "is")
    hidden = declare(*rows).hide_values("this is Sales_Bot, not Sales_Bot_2")
    assert hidden == "this is [AGENT], not [key.txt]"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"filename": None}, "replacements[0]: must have either filename or glob"),
        ({"glob": "*"}, "replacements[0]: must have either filename or glob"),
        ({"stringToReplace": ""}, "replacements[0].stringToReplace: must be a text in quotes that is not empty"),
        ({"replaceWithEnv": 1}, "replacements[0].replaceWithEnv: must be a text"),
        ({"replaceWhenEnv": {}}, "replacements[0].replaceWhenEnv: must be a list"),
        ({"replaceWhenEnv": [{"env": "A"}]}, "replacements[0].replaceWhenEnv[0]: must be an object with env"),
        (
            {"replaceWhenEnv": [{"env": 1, "value": "1"}]},
            "replacements[0].replaceWhenEnv[0]: must be an object with env",
        ),
        ({"allowUnsetEnvVariable": "yes"}, "replacements[0].allowUnsetEnvVariable: must be true or false"),
    ],
)
def test_a_replacement_is_checked(declare: Declare, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ProjectError) as caught:
        declare(**changes)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("value", "reason"), [("{}", "replacements: must be a list"), ("[1]", "replacements[0]: must be an object")]
)
def test_the_replacements_are_a_list_of_objects(tmp_path: Path, value: str, reason: str) -> None:
    text = f'{{"packageDirectories": [{{"path": "a"}}], "replacements": {value}}}'
    (tmp_path / "sfdx-project.json").write_text(text)
    with pytest.raises(ProjectError) as caught:
        find_project(tmp_path)
    assert reason in str(caught.value)
