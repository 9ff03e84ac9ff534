"""Runs in Salesforce's orgs whose verdicts are checked: each defect that was observed there, and what reports say."""

from __future__ import annotations

import json
from shutil import rmtree
from typing import TYPE_CHECKING

import pytest

from client.salesforce import Scene, case, done, result, salesforce
from client.servers import TOKEN
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

ID = "4KB5e0000000001AAA"
HEADER = '<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata"><name>Orders</name>'
SUBJECT = "<subjectName>Agent</subjectName><subjectType>AGENT</subjectType>"
ACTIVE = ({"DeveloperName": "v1", "VersionNumber": 1, "Status": "Active"},)
NEWER = {"DeveloperName": "v2", "VersionNumber": 2, "Status": "Inactive"}


def expecting(name: str, value: str = "") -> str:
    return f"<expectation><name>{name}</name><expectedValue>{value}</expectedValue></expectation>"


def comparing(value: str) -> str:
    parameters = {"operator": "contains", "actual": "$.generatedData.outcome", "expected": value}
    fields = "".join(
        f"<parameter><name>{name}</name><value>{text}</value><isReference>{str(name == 'actual').lower()}</isReference>"
        "</parameter>"
        for name, text in parameters.items()
    )
    return f"<expectation><name>string_comparison</name>{fields}</expectation>"


def definition(*cases: str, version: str = "", inputs: str = "") -> bytes:
    """Return the definition of cases that ask the same; each is its expectations."""
    named = f"<subjectVersion>{version}</subjectVersion>" if version else ""
    tests = "".join(
        f"<testCase><number>{number}</number><inputs>{inputs}<utterance>Where's it?</utterance></inputs>"
        f"{each}</testCase>"
        for number, each in enumerate(cases, 1)
    )
    return f"{HEADER}{SUBJECT}{named}{tests}</AiEvaluationDefinition>".encode()


TOPIC = expecting("topic_sequence_match", "Orders")
PLAIN = definition(TOPIC)
WRONG = definition(expecting("topic_sequence_match", "Returns"))
VARIABLE = "<contextVariable><variableName>Shop</variableName><variableValue>1</variableValue></contextVariable>"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "evalmeta.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def log_in(url: str) -> None:
    user_logins().save(Login("me@dev.example", url, alias="dev"), Secrets(TOKEN))


def run_once(
    evalmeta: Program,
    *cases: dict[str, object],
    content: bytes | None = PLAIN,
    versions: tuple[dict[str, object], ...] = ACTIVE,
    words: tuple[str, ...] = (),
) -> Outcome:
    """Run a test in an org that returns these case results."""
    scene = Scene("COMPLETED", done(*cases))
    with salesforce([scene], content=content, versions=versions) as org:
        log_in(org.url)
        return evalmeta("test", "run", "-o", "dev", "--wait", *words)


def found_in(outcome: Outcome) -> list[str]:
    """Return what the report says about the org's verdicts."""
    _, _, after = outcome.out.partition("the org's verdicts, checked by evalmeta")
    lines = after.splitlines()[1:]
    return [line.strip() for line in lines[: next((n for n, each in enumerate(lines) if not each.strip()), len(lines))]]


REFERENCE = result(name="string_comparison", actualValue="{gs.response.outcome}", expectedValue="way", result="FAILURE")
BROKEN = case(1, result(None, status="ERROR"), status="ERROR", errorMessage="Agent call failed", generatedData={})
REFUSAL = {"outcome": "I'm sorry, I can't help you with that.", "topic": "Orders"}
DEFECTS: dict[str, tuple[bytes, tuple[dict[str, object], ...], list[str]]] = {
    "verdicts that agree": (PLAIN, (case(1),), []),
    "an org that passes what does not match": (
        WRONG,
        (case(1, result(expectedValue="Returns")),),
        ["case 1: topic_assertion: org PASS, evalmeta FAILURE: expected the topic Returns, got Orders"],
    ),
    "fewer results than expectations": (
        definition(TOPIC + comparing("way") + comparing("refund")),
        (case(1, result(), result(name="string_comparison", expectedValue="way")),),
        ["case 1: the org returned 1 of 2 results of string_comparison; evalmeta's verdict: FAILURE (missing-result)"],
    ),
    "a result of the second of two expectations": (
        definition(TOPIC + comparing("refund") + comparing("way")),
        (case(1, result(), result(name="string_comparison", expectedValue="way")),),
        ["case 1: the org returned 1 of 2 results of string_comparison; evalmeta's verdict: FAILURE (missing-result)"],
    ),
    "a result of nobody knows which expectation": (
        definition(TOPIC + comparing("refund") + comparing("way")),
        (case(1, result(), result(name="string_comparison", expectedValue="?")),),
        [
            (
                "case 1: the org returned 1 of 2 results of string_comparison; "
                "evalmeta's verdict: FAILURE, PASS (missing-result)"
            )
        ],
    ),
    "two results for one case": (
        PLAIN,
        (case(1), case(1)),
        ["case 1: the org returned 2 results for one case of one iteration (repeated-case)"],
    ),
    "no result at all of an expectation": (
        definition(TOPIC + comparing("way")),
        (case(1),),
        ["case 1: the org returned no result of string_comparison; evalmeta's verdict: PASS (missing-result)"],
    ),
    "an empty list of actions that passes although actions were taken": (
        definition(TOPIC + expecting("action_sequence_match", "[]")),
        (case(1, result(), result(name="actions_assertion", expectedValue="[]", actualValue="['Find']")),),
        [
            "case 1: actions_assertion: org PASS, evalmeta FAILURE: extra: Find",
            "case 1: the org passes an empty list of actions although the agent took Find (empty-actions)",
        ],
    ),
    "a reference that the org compares as text": (
        definition(TOPIC + comparing("way")),
        (case(1, result(), REFERENCE),),
        [
            "case 1: string_comparison: org FAILURE, evalmeta PASS: \"It's on its way.\" contains 'way'",
            (
                "case 1: string_comparison compared the text '{gs.response.outcome}': "
                "the org did not resolve the reference (unresolved-reference)"
            ),
        ],
    ),
    "a right refusal that is called incomplete": (
        definition(expecting("completeness") + expecting("bot_response_rating", "I'm sorry, I can't help.")),
        (case(1, result("FAILURE", name="completeness"), result(name="output_validation"), generatedData=REFUSAL),),
        [
            (
                "case 1: completeness failed an answer that bot_response_rating passed, "
                "as it does if the agent is right to refuse (right-refusal)"
            )
        ],
    ),
    "an answer that is incomplete": (
        definition(expecting("completeness") + expecting("bot_response_rating", "It's on its way.")),
        (case(1, result("FAILURE", name="completeness"), result(name="output_validation")),),
        [],
    ),
    "a variable that the agent does not declare": (
        definition(TOPIC, inputs=VARIABLE),
        (BROKEN,),
        [
            (
                "case 1: the org says 'Agent call failed', as it does after a long wait if a context variable is not"
                " declared: check that the agent declares Shop (failed-call)"
            )
        ],
    ),
    "a result for a case that was never asked": (
        PLAIN,
        (case(1), case(7)),
        ["case 7: the org returned a result for case 7, which the definition does not have (unasked-case)"],
    ),
    "another question than that of the definition": (
        PLAIN,
        (case(1, inputs={"utterance": "Who are you?"}),),
        [
            (
                "case 1: the org asked 'Who are you?', which is not what the definition says; "
                "its verdicts were not checked (other-question)"
            )
        ],
    ),
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_of_an_org_is_named_in_the_report(evalmeta: Program, defect: str) -> None:
    content, cases, expected = DEFECTS[defect]
    assert found_in(run_once(evalmeta, *cases, content=content)) == expected


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("content", "versions", "expected"),
    [
        (PLAIN, (*ACTIVE, NEWER), "v2 of Agent is the newest version, but users reach v1, the active one"),
        (PLAIN, (NEWER,), "Agent has no active version, so users reach none of it"),
        (definition(TOPIC, version="v2"), (*ACTIVE, NEWER), "the definition names v2 of Agent, but v1 is active"),
    ],
)
def test_a_version_that_may_not_be_the_tested_one_is_named(
    evalmeta: Program, content: bytes, versions: tuple[dict[str, object], ...], expected: str
) -> None:
    ran = run_once(evalmeta, case(1), content=content, versions=versions)
    assert found_in(ran) == [f"{expected}; the org does not report which version it asked (agent-version)"]


@pytest.mark.usefixtures("project")
def test_ratings_that_change_without_a_change_are_shown_from_the_history(evalmeta: Program) -> None:
    content = definition(expecting("completeness"))
    good, bad = (Scene("COMPLETED", done(case(1, result(each, name="completeness")))) for each in ("PASS", "FAILURE"))
    with salesforce([good], [bad], [good], content=content, versions=ACTIVE) as org:
        log_in(org.url)
        found = [found_in(evalmeta("test", "run", "-o", "dev", "--wait")) for _ in range(3)]
    text = "case 1: completeness passed {} and failed 1 times in the last {} runs of this definition (changing-verdict)"
    assert found == [[], [text.format(1, 2)], [text.format(2, 3)]]


@pytest.mark.usefixtures("project")
def test_a_definition_that_the_org_does_not_return_is_a_doubt(evalmeta: Program) -> None:
    ran = run_once(evalmeta, case(1), content=None)
    assert ran.code == 0
    assert found_in(ran) == [
        "the verdicts of the org were not checked: the org does not return the definition 'Orders' (not-checked)"
    ]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("status", "why"),
    [("RETRY", "the org returned no verdict; its status is RETRY"), ("COMPLETED", "the org returned no verdict")],
)
def test_a_result_without_a_verdict_is_undecided_and_says_its_status(evalmeta: Program, status: str, why: str) -> None:
    content = definition(expecting("completeness"))
    ran = run_once(evalmeta, case(1, result(None, name="completeness", status=status)), content=content)
    assert f"completeness, 1 result: {why}\n" in ran.out


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("content", "verdict", "codes"),
    [
        (WRONG, "PASS", {"org": 0, "local": 100, "both": 100}),
        (PLAIN, "FAILURE", {"org": 100, "local": 0, "both": 100}),
        (PLAIN, "PASS", {"org": 0, "local": 0, "both": 0}),
    ],
)
def test_the_chosen_verdicts_decide_the_exit_code(
    evalmeta: Program, content: bytes, verdict: str, codes: dict[str, int]
) -> None:
    org_says = case(1, result(verdict))
    assert {
        whose: run_once(evalmeta, org_says, content=content, words=("--verdict", whose)).code for whose in codes
    } == codes


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("whose", "rater"), [("org", "the org"), ("local", "rules"), ("both", "the org and rules")])
def test_a_run_records_the_org_that_answered_whose_verdicts_count_and_what_was_expected(
    evalmeta: Program, whose: str, rater: str
) -> None:
    ran = run_once(evalmeta, case(1), content=PLAIN, words=("--verdict", whose, "--json"))
    [found] = json.loads(ran.out)["result"]
    setup = found["evalmeta"]["options"]["setup"]
    assert (setup["agent"].split(" in http://")[0], setup["rater"]) == (found["subjectName"], rater)
    assert [len(each["checks"]) for each in found["testCases"]] == [8]


@pytest.mark.usefixtures("project")
def test_the_verdicts_that_count_can_be_chosen_when_the_run_is_over(evalmeta: Program) -> None:
    assert run_once(evalmeta, case(1), content=WRONG).code == 0
    assert evalmeta("test", "results", "--job-id", ID, "--verdict", "local").code == 100
    assert evalmeta("test", "resume", "--job-id", ID, "--verdict", "both").code == 100
    assert evalmeta("test", "results", "--job-id", ID).code == 0


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("content", "words", "code", "why"),
    [
        (definition(expecting("action_sequence_match", "[]")), (), 100, "extra: Find"),
        (definition(expecting("action_sequence_match", "[]")), ("--actions", "superset"), 0, ""),
        (definition(expecting("action_sequence_match", "['Look']")), (), 100, "missing: Look"),
        (definition(expecting("action_sequence_match", "['Find']")), (), 0, ""),
    ],
)
def test_where_evalmetas_verdict_counts_a_result_has_its_reason(
    evalmeta: Program, content: bytes, words: tuple[str, ...], code: int, why: str
) -> None:
    org_says = case(1, result(name="actions_assertion", expectedValue="x", actualValue="['Find']"))
    ran = run_once(evalmeta, org_says, content=content, words=("--verdict", "local", *words))
    assert (ran.code, why in ran.out) == (code, True)
    assert (f"actions_assertion: {why}" in ran.out) == bool(why)


@pytest.mark.usefixtures("project")
def test_a_chosen_profile_checks_the_verdicts_and_is_saved(evalmeta: Program) -> None:
    content = definition(expecting("action_sequence_match", "['Find']"))
    both = '[[{"function":{"name":"Find"}},{"function":{"name":"Look"}}]]'
    generated = {"outcome": "", "actionsSequence": "['Find', 'Look']", "invokedActions": both}
    org_says = case(1, result(name="actions_assertion", expectedValue="['Find']"), generatedData=generated)
    found = {}
    for words in ((), ("--scoring", "testing-center"), ("--scoring", "default")):
        ran = run_once(evalmeta, org_says, content=content, words=("--verdict", "local", "--json", *words))
        [run] = json.loads(ran.out)["result"]
        found[words[-1:]] = (ran.code, run["evalmeta"]["options"]["scoring"]["profile"])
    assert found == {
        (): (0, "testing-center"),
        ("testing-center",): (0, "testing-center"),
        ("default",): (100, "default"),
    }


@pytest.mark.usefixtures("project")
def test_another_question_is_the_reason_of_an_undecided_verdict(evalmeta: Program) -> None:
    ran = run_once(evalmeta, case(1, inputs={"utterance": "Who are you?"}), words=("--verdict", "local"))
    assert (ran.code, "the org asked something else than the definition says\n" in ran.out) == (100, True)


@pytest.mark.usefixtures("project")
def test_a_definition_that_was_deployed_again_since_the_start_does_not_check_a_run(evalmeta: Program) -> None:
    scene = Scene("COMPLETED", done(case(1), case(2)))
    for modified, is_checked in (("2026-11-20T15:08:44.000Z", True), ("2026-11-20T15:08:46.000Z", False)):
        with salesforce([scene], content=WRONG, versions=ACTIVE, modified=modified) as org:
            log_in(org.url)
            ran = evalmeta("test", "run", "-o", "dev", "--wait")
        assert (ran.code, "its definition has changed" in ran.out) == (1, False) if is_checked else (0, True)
        assert ("not-checked" in ran.out) == (not is_checked)


@pytest.mark.usefixtures("project")
def test_a_rater_that_cannot_check_a_run_is_refused_before_it_starts(evalmeta: Program) -> None:
    with salesforce([Scene("COMPLETED", done(case(1)))], content=PLAIN) as org:
        log_in(org.url)
        refused = evalmeta("test", "run", "-o", "dev", "--wait", "--rater", "nope")
    assert (refused.code, org.starts) == (2, [])


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("words", "seconds"), [((), 180.0), (("--case-timeout", "120"), 120.0)])
def test_a_chosen_time_limit_for_cases_holds_also_if_it_is_the_default_elsewhere(
    evalmeta: Program, words: tuple[str, ...], seconds: float
) -> None:
    [run] = json.loads(run_once(evalmeta, case(1), words=("--json", *words)).out)["result"]
    assert run["evalmeta"]["options"]["caseTimeoutSeconds"] == seconds


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("whose", ["local", "both"])
def test_a_check_that_fails_makes_evalmetas_verdicts_undecided(evalmeta: Program, whose: str) -> None:
    ran = run_once(evalmeta, case(1), content=None, words=("--verdict", whose))
    assert (ran.code, "0 passed" in ran.out) == ((100, True) if whose == "local" else (0, False))


@pytest.mark.usefixtures("project")
def test_a_run_that_was_not_checked_is_checked_when_evalmetas_verdicts_shall_count(evalmeta: Program) -> None:
    with salesforce([Scene("COMPLETED", done(case(1)))], content=WRONG) as org:
        log_in(org.url)
        assert found_in(evalmeta("test", "run", "-o", "dev", "--wait", "--no-verify")) == []
        checked = evalmeta("test", "results", "--job-id", ID, "--verdict", "local")
    again = evalmeta("test", "results", "--job-id", ID, "--verdict", "local")
    for each in (checked, again):
        assert (each.code, "expected the topic Returns, got Orders" in each.out) == (100, True)


@pytest.mark.usefixtures("project")
def test_a_checked_run_is_rescored_without_its_org(evalmeta: Program) -> None:
    run_once(evalmeta, case(1), content=WRONG)
    rescored = evalmeta("test", "rescore", ID, "--json")
    [run] = json.loads(rescored.out)["result"]
    assert (rescored.code, run["evalmeta"]["answersOf"]) == (100, ID)
    assert "Target" not in rescored.err
    assert "rescored" in evalmeta("test", "history").out
    again = evalmeta("test", "rescore", ID)
    assert (again.code, "--failed-from" in again.out + again.err) == (100, False)
    refused = evalmeta("test", "rescore", ID, "--as-deployed")
    assert (refused.code, "Leave out --as-deployed" in refused.err) == (2, True), refused


def test_a_run_that_others_started_is_rescored(evalmeta: Program, project: Path) -> None:
    with salesforce([Scene("COMPLETED", done(case(1)))], content=WRONG) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev")
        rmtree(project / ".evalmeta")
        rescored = evalmeta("test", "rescore", ID, "-o", "dev")
    assert "expected the topic Returns, got Orders" in rescored.out


@pytest.mark.usefixtures("project")
def test_a_run_in_progress_is_not_rescored(evalmeta: Program) -> None:
    with salesforce([Scene("IN_PROGRESS", done(case(1), status="IN_PROGRESS"))], content=WRONG) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev")
        rescored = evalmeta("test", "rescore", ID)
    assert (rescored.code, f"Run {ID} is not over" in rescored.err) == (2, True)


@pytest.mark.usefixtures("project")
def test_a_local_verdict_needs_a_check(evalmeta: Program) -> None:
    ran = evalmeta("test", "run", "-o", "dev", "--wait", "--no-verify", "--verdict", "both")
    assert ran.code == 2
    assert "--verdict both needs evalmeta's verdicts" in ran.err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("cases", "why"),
    [
        ([case(1), case(2, status="IN_PROGRESS")], "no case has ended for 0.2 seconds, and one of its 2 cases has"),
        ([case(1)], "all cases have ended, but 0.2 seconds later the org still says that the run is in progress"),
    ],
)
def test_a_run_in_which_no_case_ends_is_not_waited_for(
    evalmeta: Program, cases: list[dict[str, object]], why: str
) -> None:
    with salesforce([Scene("IN_PROGRESS", done(*cases, status="IN_PROGRESS"))], content=PLAIN, versions=ACTIVE) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--case-timeout", "0.2")
    assert (ran.code, why in ran.out) == (69, True)
    assert ("stopped waiting" in ran.err, "finished," in ran.err) == (True, False)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "name", ["human", "json", "jsonl", "junit", "tap", "csv", "markdown", "github", "ctrf", "html"]
)
def test_every_report_has_both_verdicts_and_the_doubts(evalmeta: Program, name: str) -> None:
    content = definition(expecting("topic_sequence_match", "Returns") + comparing("way"))
    ran = run_once(evalmeta, case(1), content=content, words=("--result-format", name))
    assert "missing-result" in ran.out
    assert all(word in ran.out for word in ("PASS", "FAILURE"))
