"""Warnings of what test runs of orgs cannot judge: true, few, and silent where evalmeta judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evalmeta.plugins
from evalmeta.api.files import validate
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.rules import NO_ORG_RULES, RulePolicy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.reader import NAMESPACE
from installed import install

if TYPE_CHECKING:
    from pathlib import Path

NO_ACTIONS = "<expectation><name>actions_assertion</name><expectedValue> [ ] </expectedValue></expectation>"
METRIC = "<expectation><name>coherence</name></expectation>"
RATED = "<expectation><name>bot_response_rating</name><expectedValue>{}</expectedValue></expectation>"
TOPIC = "<expectation><name>topic_assertion</name><expectedValue>{}</expectedValue></expectation>"
VARIABLE = "<contextVariable><variableName>{}</variableName><variableValue>v</variableValue></contextVariable>"
BOT = f'<Bot xmlns="{NAMESPACE}">{{}}</Bot>'
SCRIPT = """\
config:
    note: "linked"
variables:
    EndUserId: linked string
        source: @MessagingSession.MessagingEndUserId

    # session: linked string
    stage: mutable string = ""
start_agent Loans:
    actions:
        find:
            inputs:
                Elsewhere: string
"""


def definition(*bodies: str, inputs: str = "", subject: str = "Desk") -> bytes:
    cases = "".join(
        f"<testCase><number>{number}</number><inputs>{inputs}<utterance>u</utterance></inputs>{body}</testCase>"
        for number, body in enumerate(bodies, 1)
    )
    head = f"<name>A</name><subjectName>{subject}</subjectName><subjectType>AGENT</subjectType>"
    return f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{head}{cases}</AiEvaluationDefinition>'.encode()


def codes(root: Path, content: bytes, **files: str) -> list[str]:
    """Return the codes of the problems of a definition in a project with other files."""
    for name, text in {"sfdx-project.json": '{"packageDirectories": [{"path": "app"}]}', **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path = root / "app/A.aiEvaluationDefinition-meta.xml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return [problem.code for problem in validate([path]).problems]


def test_a_file_is_warned_once_of_empty_action_lists() -> None:
    content = definition(NO_ACTIONS, TOPIC.format("Loans"), NO_ACTIONS)
    (problem,) = validate_component(EVALUATION_DEFINITION, content, label="a", full_name="A")
    assert problem.code == "actions-unchecked"
    assert problem.message.endswith("whatever actions the agent takes, as in 1 other test case")


@pytest.mark.parametrize(
    ("toml", "is_told"),
    [
        ("", True),
        ('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n', False),
        ('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n[org]\ndefault = "dev"\n', True),
        ('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n[org]\ndefault = "embedded"\n', False),
        ('[subjects.Desk]\nadapter = "agentforce"\nagent_id = "0Xx000000000001"\n', True),
        ('[subjects.Other]\nadapter = "python"\ntarget = "desk:answer"\n', True),
        ('[validate.rules]\nactions-unchecked = "off"\n', False),
    ],
)
def test_tests_of_agents_that_evalmeta_runs_are_not_warned(tmp_path: Path, toml: str, *, is_told: bool) -> None:
    found = codes(tmp_path, definition(NO_ACTIONS), **{"evalmeta.toml": toml})
    assert found == ["actions-unchecked"] * is_told


def test_a_file_that_is_clean_without_the_rules_about_orgs_is_not_taken_for_clean() -> None:
    content = definition(NO_ACTIONS, subject="Clerk")
    for policy, found in ((RulePolicy(rules=NO_ORG_RULES), 0), (RulePolicy(), 1)):
        problems = validate_component(EVALUATION_DEFINITION, content, label="a", full_name="A", policy=policy)
        assert len(problems) == found


@pytest.mark.parametrize(
    ("expected", "is_refusal"),
    [
        (TOPIC.format("Prompt_Injection"), True),
        (RATED.format("The agent should politely decline to share it."), True),
        (RATED.format("I'm sorry, but I can't help with that."), True),
        (RATED.format("Declines."), True),
        (RATED.format("The agent declines the request and offers the opening hours."), False),
        (RATED.format("The card was declined by the bank."), False),
        (RATED.format("A refund is refused after 30 days."), False),
        (TOPIC.format("Loans"), False),
    ],
)
def test_a_refusal_is_seen_only_where_nothing_else_is_expected(
    tmp_path: Path, expected: str, *, is_refusal: bool
) -> None:
    assert codes(tmp_path, definition(expected + METRIC)) == ["metric-refusal"] * is_refusal


@pytest.mark.parametrize("name", ["{Loans}", "{0}", "{gs.response.outcome} more", '{"a": 1}'])
def test_other_braces_are_not_references_of_run_eval(tmp_path: Path, name: str) -> None:
    values = {"operator": "equals", "actual": name, "expected": "a"}
    body = "".join(f"<parameter><name>{key}</name><value>{value}</value></parameter>" for key, value in values.items())
    comparison = f"<expectation><name>string_comparison</name>{body}</expectation>"
    assert codes(tmp_path, definition(comparison)) == []


def test_a_scorer_of_a_package_is_said_to_be_evalmetas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "scorers", "Courtesy = acme:courtesy", "")
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise
    try:
        content = definition(*["<expectation><name>Courtesy</name></expectation>"] * 2)
        assert codes(tmp_path / "project", content) == ["expectation-one-engine"]
    finally:
        evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise


@pytest.mark.parametrize(
    ("name", "files", "is_told"),
    [
        ("Shelf", {}, False),
        ("Shelf", {"app/bots/Other/Other.bot-meta.xml": BOT.format("")}, False),
        ("Shelf", {"app/bots/Desk/Desk.bot-meta.xml": BOT.format("")}, True),
        ("Shelf", {"app/bots/Desk/Desk.bot-meta.xml": "<Bot"}, False),
        ("EndUserLanguage", {"app/bots/Desk/Desk.bot-meta.xml": BOT.format("")}, False),
        ("$Context.EndUserId", {"app/aiAuthoringBundles/Desk/Desk.agent": SCRIPT}, False),
        ("enduserid", {"app/aiAuthoringBundles/Desk/Desk.agent": SCRIPT}, False),
        ("stage", {"app/aiAuthoringBundles/Desk/Desk.agent": SCRIPT}, True),
        ("Elsewhere", {"app/aiAuthoringBundles/Desk/Desk.agent": f"{SCRIPT}subagent\n"}, False),
    ],
)
def test_a_variable_is_undeclared_only_if_the_files_of_its_agent_say_so(
    tmp_path: Path, name: str, files: dict[str, str], *, is_told: bool
) -> None:
    content = definition(TOPIC.format("Loans"), inputs=VARIABLE.format(name))
    assert codes(tmp_path, content, **files) == ["context-variable-undeclared"] * is_told


def test_variables_are_declared_in_the_versions_of_a_bot_too(tmp_path: Path) -> None:
    declared = "<conversationVariables><developerName>Shelf</developerName></conversationVariables>"
    version = f'<BotVersion xmlns="{NAMESPACE}">{declared}</BotVersion>'
    files = {"Desk.bot-meta.xml": BOT.format(""), "v1.botVersion-meta.xml": version}
    content = definition(TOPIC.format("Loans"), inputs=VARIABLE.format("Shelf"))
    assert codes(tmp_path, content, **{f"app/bots/Desk/{name}": text for name, text in files.items()}) == []
