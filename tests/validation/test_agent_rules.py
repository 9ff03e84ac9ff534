"""Tests are compared with the Agent Script of their agent: what it lacks is reported, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.api.files import validate

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import Profile

SCRIPT = """\
start_agent router:
    description: "Routes"
    reasoning:
        actions:
            go_to_loans: @utils.transition to @subagent.Loans
subagent Loans:
    label: "Loan desk"
    actions:
        Find_Loans:
            label: "Find loans"
            target: "flow://Find_Loans"
    reasoning:
        actions:
            find: @actions.Find_Loans
"""
SPEC = """\
name: Loans
subjectType: AGENT
subjectName: {subject}
testCases:
  - utterance: May I keep it?
    expectedTopic: {topic}
    expectedActions: [{action}]
"""


def problems(root: Path, *, script: str = SCRIPT, subject: str = "Desk", topic: str, action: str) -> list[Problem]:
    files = {
        "sfdx-project.json": '{"packageDirectories": [{"path": "app"}]}',
        "app/aiAuthoringBundles/Desk/Desk.agent": script,
        "specs/loans.yaml": SPEC.format(subject=subject, topic=topic, action=action),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return list(validate([root / "specs/loans.yaml"]).problems)


@pytest.mark.parametrize(
    "topic", ["Loans", "router", "Off_Topic", "off_topic", "p_16jPl000000GwEX_Loans_16j8eeef13560aa"]
)
@pytest.mark.parametrize("action", ["Find_Loans", "Find_Loans_179Pl000000G1ab", "acme__Find"])
def test_names_of_the_script_and_of_the_platform_are_known(tmp_path: Path, topic: str, action: str) -> None:
    assert problems(tmp_path, topic=topic, action=f'"{action}"') == []


CHECKS = """\
subject: Desk
testCases:
- turns:
  - {input: a, handoffs: [Loans, Lones], not_actions: [Find_Loans, "Remove_*", Remove_Loan]}
  - {input: b, handoffs: [human, Off_Topic], not_actions: [go_to_loans]}
"""


def test_a_misspelt_action_that_is_forbidden_is_reported_because_the_check_would_always_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    problems(tmp_path, topic="Loans", action="Find_Loans")
    (tmp_path / "specs/loans.yaml").write_text(CHECKS)
    found = [(f"{problem.location}", problem.message) for problem in validate([tmp_path / "specs/loans.yaml"]).problems]
    assert sorted(found) == [
        ("specs/loans.yaml:4:34", "the agent Desk has no topic 'Lones'"),
        ("specs/loans.yaml:4:80", "the agent Desk has no action 'Remove_Loan'"),
        ("specs/loans.yaml:5:60", "'go_to_loans' calls no action, so answers of the script of Desk do not have it"),
    ]


@pytest.mark.parametrize(
    ("case", "place"),
    [
        ("- {input: Lones, topic: Lones}", "3:25"),
        ("- turns: [{input: Lones, topic: Loans}, {input: b, topic: Lones}]", "3:59"),
        ("- input: Lones\n  topic: &a p_16jPl000000GwEX_Lones_16j8eeef13560aa", "4:10"),
    ],
)
def test_the_place_is_that_of_the_value_not_of_the_same_word_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    problems(tmp_path, topic="Loans", action="Find_Loans")
    (tmp_path / "specs/loans.yaml").write_text(f"subject: Desk\ntestCases:\n{case}\n")
    [problem] = validate([tmp_path / "specs/loans.yaml"]).problems
    assert str(problem.location) == f"specs/loans.yaml:{place}"


def test_what_the_script_does_not_have_is_reported_with_what_was_probably_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topic, action = problems(tmp_path, topic="Lones", action="Renew")
    assert (topic.code, topic.message) == ("topic-unknown", "the agent Desk has no topic 'Lones'")
    assert str(topic.location) == "specs/loans.yaml:6:20"
    assert str(action.location) == "specs/loans.yaml:7:23"
    assert topic.hint == "Did you mean Loans? It is defined at app/aiAuthoringBundles/Desk/Desk.agent:6."
    assert (action.code, action.message) == ("action-unknown", "the agent Desk has no action 'Renew'")
    assert action.hint == "Its files have: Find_Loans, Find loans, go_to_loans, find."
    assert not topic.is_error
    strict = validate([tmp_path / "specs/loans.yaml"], profile="documented").problems
    assert [problem.is_error for problem in strict] == [True, True]


@pytest.mark.parametrize("topic", ["loans", "Loan desk"])
@pytest.mark.parametrize("action", ["find", "find_loans", "Find loans"])
def test_words_that_answers_of_the_script_do_not_have_are_warnings_with_the_name(
    tmp_path: Path, topic: str, action: str
) -> None:
    found = problems(tmp_path, topic=topic, action=f'"{action}"')
    assert [(problem.code, problem.is_error) for problem in found] == [
        ("topic-unknown", False),
        ("action-unknown", False),
    ]
    assert found[0].message == f"without an org, answers of Desk have the topic 'Loans', not {topic!r}"
    assert found[1].hint.startswith("Write Find_Loans, the name at ")


def test_an_entry_that_calls_no_action_is_not_an_expected_action(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, topic="Loans", action="go_to_loans")
    assert problem.message == "'go_to_loans' calls no action, so answers of the script of Desk do not have it"


@pytest.mark.parametrize(
    ("script", "subject"),
    [(SCRIPT, "Other"), (SCRIPT + "subagent\n", "Desk"), ("", "Desk")],
    ids=["absent", "damaged", "empty"],
)
def test_without_a_script_that_can_be_read_nothing_is_unknown(tmp_path: Path, script: str, subject: str) -> None:
    assert problems(tmp_path, script=script, subject=subject, topic="Lones", action="Renew") == []


VARIABLES = """\
variables:
    reader: linked string
        source: @MessagingSession.EndUserId
    seats: mutable number = 0
"""
NAMESPACE = 'xmlns="http://soap.sforce.com/2006/04/metadata"'


def found_in(root: Path, files: dict[str, str], *, profile: Profile | None = None) -> list[str]:
    """Return the problems of the tests of a project with other files, each as its place, code and message."""
    for name, text in {"sfdx-project.json": '{"packageDirectories": [{"path": "app"}]}', **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    tests = [root / name for name in files if name.startswith("tests/")]
    problems = validate(tests, profile=profile).problems
    return [f"{problem.location.line} {problem.code}: {problem.message} | {problem.hint}" for problem in problems]


def spec(subject: str = "Desk", *, variable: str = "reader", topic: str = "Loans", action: str = "Find_Loans") -> str:
    case = "- {input: May I keep it?, contextVariables: [{name: %s, value: x}], topic: %s, actions: [%s]}"
    return f"subject: {subject}\ntestCases:\n{case % (variable, topic, action)}\n"


BUNDLE = {"app/aiAuthoringBundles/Desk_Agent/Desk_Agent.agent": VARIABLES + SCRIPT}


@pytest.mark.parametrize("subject", ["Desk_Agnet", "DeskAgent", "desk_agent"])
def test_a_misspelt_agent_is_reported_on_the_line_of_the_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subject: str
) -> None:
    monkeypatch.chdir(tmp_path)
    [problem] = found_in(tmp_path, {**BUNDLE, "tests/loans.yaml": spec(subject)})
    assert problem == (
        f"1 subject-unknown: the project has no agent {subject!r} | Did you mean Desk_Agent, the agent at "
        f"app/aiAuthoringBundles/Desk_Agent/Desk_Agent.agent? To keep the name, add [subjects.{subject}]."
    )


@pytest.mark.parametrize(
    ("subject", "settings"),
    [
        ("Desk_Agent", ""),
        ("Help_Agent", ""),
        ("Desk_Agent2", ""),
        ("Desk_Agnet", '[subjects.Desk_Agnet]\nadapter = "http"\nurl = "http://127.0.0.1:1/"\n'),
        ("Desk_Agnet", '[org]\ndefault = "staging"\n'),
        ("Desk_Agents", ""),
    ],
    ids=["the agent", "another agent of the org", "a version", "bound", "an org", "a developer name"],
)
def test_an_agent_that_can_be_elsewhere_is_not_reported(tmp_path: Path, subject: str, settings: str) -> None:
    named = {"app/aiAuthoringBundles/B/B.agent": f'config:\n    developer_name: "Desk_Agents"\n{SCRIPT}'}
    files = {**BUNDLE, **named, "evalmeta.toml": settings, "tests/loans.yaml": spec(subject)}
    assert found_in(tmp_path, files) == []


def test_a_project_without_agents_knows_no_misspelt_agent(tmp_path: Path) -> None:
    assert found_in(tmp_path, {"app/readme.txt": "", "tests/loans.yaml": spec()}) == []


@pytest.mark.parametrize("variable", ["reader", "seats", "READER", "EndUserId", "MessagingSession.EndUserId"])
def test_variables_that_the_script_reads_are_known(tmp_path: Path, variable: str) -> None:
    assert found_in(tmp_path, {**BUNDLE, "tests/loans.yaml": spec("Desk_Agent", variable=variable)}) == []


def test_a_variable_that_the_script_does_not_read_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {**BUNDLE, "tests/loans.yaml": spec("Desk_Agent", variable="raeder")}
    expected = "3 variable-unknown: the script of Desk_Agent does not read the variable 'raeder'"
    place = "app/aiAuthoringBundles/Desk_Agent/Desk_Agent.agent:2"
    assert found_in(tmp_path, files) == [f"{expected} | Did you mean reader? It is at {place}."]
    assert not validate([tmp_path / "tests/loans.yaml"]).problems[0].is_error
    assert validate([tmp_path / "tests/loans.yaml"], profile="documented").problems[0].is_error
    [other] = found_in(tmp_path, {**BUNDLE, "tests/loans.yaml": spec("Desk_Agent", variable="x")})
    assert other.endswith("| It reads: reader, MessagingSession.EndUserId, EndUserId, seats.")


def test_a_script_without_variables_reads_none(tmp_path: Path) -> None:
    files = {"app/aiAuthoringBundles/Desk/Desk.agent": SCRIPT, "tests/loans.yaml": spec(variable="x")}
    [problem] = found_in(tmp_path, files)
    assert problem.endswith("| It reads no context variable.")


def test_a_variable_of_the_bot_is_known(tmp_path: Path) -> None:
    declared = "<contextVariables><developerName>Shelf</developerName></contextVariables>"
    bot = {"app/bots/Desk/Desk.bot-meta.xml": f"<Bot {NAMESPACE}>{declared}</Bot>"}
    files = {**bot, "app/aiAuthoringBundles/Desk/Desk.agent": SCRIPT, "tests/loans.yaml": spec(variable="Shelf")}
    assert found_in(tmp_path, files) == []


def test_variables_of_both_types_of_definitions_are_compared_too(tmp_path: Path) -> None:
    case = (
        "<testCase><number>1</number><inputs><contextVariable><variableName>raeder</variableName>"
        "<variableValue>x</variableValue></contextVariable><utterance>u</utterance></inputs>{}</testCase>"
    )
    expectation = (
        "<expectation><name>topic_sequence_match</name><expectedValue>Loans</expectedValue></expectation>",
        "<scorer><name>coherence</name></scorer>",
    )
    files = dict(BUNDLE)
    for kind, body in zip(("AiEvaluationDefinition", "AiTestingDefinition"), expectation, strict=True):
        head = "<name>A</name><subjectName>Desk_Agent</subjectName><subjectType>AGENT</subjectType>"
        name = f"tests/A.{kind[0].lower()}{kind[1:]}"
        files[name] = f"<{kind} {NAMESPACE}>{head}{case.format(body)}</{kind}>"
    assert [problem.split(" |")[0].split(" ", 1)[1] for problem in found_in(tmp_path, files)] == [
        "variable-unknown: the script of Desk_Agent does not read the variable 'raeder'",
        "variable-unknown: the script of Desk_Agent does not read the variable 'raeder'",
    ]


PLANNER = f"""\
<GenAiPlannerBundle {NAMESPACE}>
    <genAiFunctions><genAiFunctionName>Search</genAiFunctionName></genAiFunctions>
    <genAiPlugins><genAiPluginName>Loans</genAiPluginName></genAiPlugins>
    <localTopics>
        <developerName>Renewals_16j000000000001</developerName>
        <localDeveloperName>Renewals</localDeveloperName>
        <masterLabel>Renew a loan</masterLabel>
        <localActions><developerName>Renew_Loan</developerName></localActions>
        <localActionLinks><functionName>Renew_Loan</functionName></localActionLinks>
    </localTopics>%s
</GenAiPlannerBundle>
"""
CLASSIC = {
    "app/bots/Desk/Desk.bot-meta.xml": f"<Bot {NAMESPACE}/>",
    "app/genAiPlannerBundles/Desk_v2/Desk_v2.genAiPlannerBundle": PLANNER % "",
    "app/genAiPlugins/Loans.genAiPlugin-meta.xml": (
        f"<GenAiPlugin {NAMESPACE}><developerName>Loans</developerName><genAiFunctions><functionName>Find_Loans"
        "</functionName></genAiFunctions></GenAiPlugin>"
    ),
    "app/genAiFunctions/Find_Loans/Find_Loans.genAiFunction-meta.xml": (
        f"<GenAiFunction {NAMESPACE}><masterLabel>Find loans</masterLabel></GenAiFunction>"
    ),
}


@pytest.mark.parametrize("topic", ["Loans", "Renewals", "Renew a loan", "Renewals_16j000000000001", "Off_Topic"])
@pytest.mark.parametrize("action", ["Find_Loans", "Find loans", "Renew_Loan", "Search", "acme__Find"])
def test_names_of_classic_metadata_are_known(tmp_path: Path, topic: str, action: str) -> None:
    assert found_in(tmp_path, {**CLASSIC, "tests/a.yaml": spec(topic=topic, action=action)}) == []


def test_what_classic_metadata_does_not_have_is_reported_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topic, action = found_in(tmp_path, {**CLASSIC, "tests/a.yaml": spec(topic="Renewls", action="Find_Lones")})
    place = "app/genAiPlannerBundles/Desk_v2/Desk_v2.genAiPlannerBundle:4"
    assert (
        topic
        == f"3 topic-unknown: the agent Desk has no topic 'Renewls' | Did you mean Renewals? It is defined at {place}."
    )
    assert "Did you mean Find_Loans? It is defined at app/genAiPlugins/Loans.genAiPlugin-meta.xml:1." in action


@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ("<genAiPlugins><genAiPluginName>Fees</genAiPluginName></genAiPlugins>", ["topic-unknown"]),
        (
            "<genAiPlugins><genAiCustomizedPlugin><developerName>Fee</developerName></genAiCustomizedPlugin></genAiPlugins>",
            ["topic-unknown", "action-unknown"],
        ),
        ("</localTopics>", []),
    ],
    ids=["a plugin of the org", "a plugin that the planner has itself", "a planner that cannot be read"],
)
def test_actions_are_unknown_only_if_all_plugins_of_the_planner_are_read(
    tmp_path: Path, more: str, codes: list[str]
) -> None:
    planner = {"app/genAiPlannerBundles/Desk_v2/Desk_v2.genAiPlannerBundle": PLANNER % more}
    files = {**CLASSIC, **planner, "tests/a.yaml": spec(topic="Penalties", action="Waive")}
    assert [problem.split()[1].rstrip(":") for problem in found_in(tmp_path, files)] == codes
