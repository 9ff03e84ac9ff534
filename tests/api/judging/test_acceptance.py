from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from api.runs.test_comparisons import keep
from evalmeta.api.judging.acceptance import Proposal, propose, write
from evalmeta.cli.main import main
from evalmeta.errors import Conflict, InvalidMetadata, NotFound, UsageError
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml
from org.parts import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

TOPIC, ACTIONS, RATING = "topic_sequence_match", "action_sequence_match", "bot_response_rating"
HEAD = '<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata"><name>Orders</name>'
HEAD += "<subjectName>Desk</subjectName><subjectType>AGENT</subjectType>"
FILE = "aiEvaluationDefinitions/Orders.aiEvaluationDefinition"
IDS = count(1)
OLD_TEXTS = ("Old", "<![CDATA[Old <b>]]>", "Ol<!-- a -->d", "O<![CDATA[l]]>d", "")
# Every character that XML allows.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n\r<>&'\"]#:{}[]\\"),
    min_size=1,
).filter(str.strip)


def expectation(name: str, value: str) -> str:
    return f"<expectation><name>{name}</name>{value}</expectation>"


def definition(*expectations: str) -> str:
    inputs = "<inputs><utterance>Where is it?</utterance></inputs>"
    return f"{HEAD}<testCase><number>3</number>{''.join(expectations)}{inputs}</testCase></AiEvaluationDefinition>"


def rated(value: str = "<expectedValue>On Monday.</expectedValue>") -> str:
    return definition(expectation(RATING, value))


def criterion(operator: str = "equals", *, is_reference: bool = False) -> str:
    rows = ("operator", operator, "false"), ("actual", "$.generatedData.topic", "true"), ("expected", "Old", "false")
    rows = (*rows[:2], ("expected", "$.generatedData.outcome", "true")) if is_reference else rows
    parameters = "".join(
        f"<parameter><name>{name}</name><value>{value}</value><isReference>{reference}</isReference></parameter>"
        for name, value, reference in rows
    )
    return definition(expectation("string_comparison", f"<label>City</label>{parameters}"))


def result(
    actual: str = "On Tuesday.", expected: str = "On Monday.", name: str = RATING, **others: object
) -> TestResult:
    return TestResult(name, Verdict.FAILURE, expected, actual)._replace(**others)


def kept(project: Project, *results: TestResult, **others: object) -> str:
    """Keep a run of the definition with a case of these results, and return its id."""
    case = CaseResult(3, 1, "Where is it?", Verdict.FAILURE, 1, 1, results)._replace(**others)
    return kept_cases(project, case)


def kept_cases(project: Project, *cases: CaseResult) -> str:
    run_id = f"4KB{next(IDS):012}AAA"
    keep(project, Run(run_id, "Orders", "Desk", RunStatus.COMPLETED, 1, len(cases), ended=2, cases=cases))
    return run_id


def put(project: Project, content: str | bytes, *, file: str = FILE) -> Path:
    path = project.root / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("acceptance") / "project")


def value_of(content: bytes) -> str | None:
    [case] = read_definition(read_xml(content, label="x")).test_cases
    return case.expectations[0].expected_value


@given(
    TEXTS,
    st.sampled_from(("Old", "<![CDATA[Old <b>]]>", "Ol<!-- a -->d", "O<![CDATA[l]]>d", "")),
    st.sampled_from(["\n", "\r\n"]),
)
@example("a]]>b\r\n", "<![CDATA[Old]]>", "\r\n")
def test_accepting_any_answer_changes_only_the_one_text(project: Project, answer: str, old: str, line_end: str) -> None:
    content = rated("<expectedValue>@</expectedValue>").replace("><", f">{line_end}<").replace("@", old)
    path = put(project, b"\xef\xbb\xbf" + content.encode())
    expected = value_of(path.read_bytes()) or ""
    assume(answer.strip() != expected.strip())
    proposal = propose(project, kept(project, result(answer, expected)), 3)
    begin, _, end = proposal.before.partition(b"<expectedValue>" + old.encode())
    assert proposal.after.startswith(begin + b"<expectedValue>")
    assert proposal.after.endswith(end)
    assert value_of(proposal.after) == answer
    assert path.read_bytes() == proposal.before


def test_the_proposal_says_what_would_change(project: Project) -> None:
    put(project, rated().replace("><", ">\n<"))
    run_id = kept(project, result())
    proposal = propose(project, run_id, 3)
    assert proposal.what == f"Case 3 of Orders would expect the response of run {run_id}"
    assert proposal.diff.splitlines()[6:8] == [
        "-<expectedValue>On Monday.</expectedValue>",
        "+<expectedValue>On Tuesday.</expectedValue>",
    ]


def test_a_written_proposal_is_the_file(project: Project) -> None:
    path = put(project, rated())
    write(propose(project, kept(project, result()), 3))
    assert path.read_text() == rated("<expectedValue>On Tuesday.</expectedValue>")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_that_has_changed_meanwhile_is_not_written(project: Project) -> None:
    path = put(project, rated())
    proposal = propose(project, kept(project, result()), 3)
    path.write_text(rated("<expectedValue>Soon.</expectedValue>"))
    with pytest.raises(Conflict, match="has changed meanwhile; nothing was written"):
        write(proposal)
    assert "Soon." in path.read_text()


def test_a_definition_that_would_not_be_valid_is_restored(project: Project) -> None:
    path = put(project, rated())
    wrong = rated().replace("<subjectName>Desk</subjectName>", "").encode()
    with pytest.raises(InvalidMetadata, match="would not be valid with this expectation; it was not changed"):
        write(Proposal(path, path.read_bytes(), wrong, "", ""))
    assert path.read_text() == rated()


@pytest.mark.parametrize(
    ("content", "of", "new"),
    [
        (
            definition(expectation("topic_assertion", "<expectedValue>Old</expectedValue>")),
            result("Orders", "Old", TOPIC),
            "<expectedValue>Orders</expectedValue>",
        ),
        (
            definition(expectation(ACTIONS, '<expectedValue>["A"]</expectedValue>')),
            result("['A', 'B']", "['A']", ACTIONS),
            "<expectedValue>['A', 'B']</expectedValue>",
        ),
        (definition(expectation(TOPIC, "<expectedValue/>")), result("Orders", "", TOPIC), ">Orders</expectedValue>"),
        (criterion(), result("Rome", "Old", "string_comparison", label="City"), "<value>Rome</value>"),
    ],
)
def test_topics_actions_and_criteria_are_accepted(project: Project, content: str, of: TestResult, new: str) -> None:
    put(project, content)
    assert new in propose(project, kept(project, of), 3).after.decode()


def test_the_scorer_of_the_other_vocabulary_is_accepted(project: Project) -> None:
    words = {
        "Evaluation": "Testing",
        "expectation>": "scorer>",
        "<name>bot": "<scorerType>Standard</scorerType><name>bot",
    }
    content = rated()
    for one, other in words.items():
        content = content.replace(one, other)
    path = put(project, content, file="aiTestingDefinitions/Orders.aiTestingDefinition")
    case = CaseResult(3, 1, "Where is it?", Verdict.FAILURE, 1, 1, (result(),))
    run = Run("3A2000000000001AAA", "Orders", "Desk", RunStatus.COMPLETED, 1, 1, ended=2, cases=(case,))
    keep(project, run)
    proposal = propose(project, run.id, 3)
    assert (proposal.path, b"<expectedValue>On Tuesday.<" in proposal.after) == (path, True)


def test_a_file_in_ascii_stays_so(project: Project) -> None:
    put(project, '<?xml version="1.0" encoding="US-ASCII"?>' + rated())
    proposal = propose(project, kept(project, result("Um fünf.")), 3)
    assert b"Um f&#252;nf." in proposal.after


@pytest.mark.parametrize(
    ("content", "results", "options", "reason"),
    [
        (rated(), [], {}, "nothing was judged in case 3 of run"),
        (rated(), [result()], {"expectation": "Topik"}, "case 3 has no result 'Topik'"),
        (rated(), [result()], {"iteration": 2}, "has no result of case 3 in iteration 2"),
        (rated(), [result(verdict=Verdict.PASS)], {}, "no failed result of case 3 has an expected value"),
        (rated(), [result(), result(name=TOPIC)], {}, "case 3 has several such results: bot_response_rating, topic"),
        (rated(), [result(name="coherence")], {"expectation": "coherence"}, "has no expected value that an answer can"),
        (rated(), [result(verdict=Verdict.ERROR, error="no rater")], {}, "ended in an error: no rater"),
        (rated(), [result(" ")], {}, "the agent returned or reported nothing"),
        (rated(), [result(expected="At noon.")], {}, "changed since the run: bot_response_rating expects something"),
        (rated().replace("it?", "he?"), [result()], {}, "has changed since the run: its utterance is another one"),
        (rated().replace(RATING, TOPIC), [result()], {}, "bot_response_rating is not one of its expectations"),
        (rated(), [result("On Monday.")], {}, "already expects this"),
        (rated(), [result("\x07")], {}, r"contains the character U\+0007, which definitions and"),
        (rated(""), [result(expected="")], {}, "bot_response_rating has no <expectedValue> to write the answer into"),
        (criterion("contains"), [result(expected="Old", name="string_comparison", label="City")], {}, "only equals"),
        (
            criterion(is_reference=True),
            [result(expected="$.generatedData.outcome", name="string_comparison", label="City")],
            {},
            "expects what .* refers to, not a fixed value",
        ),
    ],
)
def test_what_cannot_be_accepted_is_refused_with_its_reason(
    project: Project, content: str, results: list[TestResult], options: dict[str, object], reason: str
) -> None:
    path = put(project, content)
    with pytest.raises(UsageError, match=reason) as refused:
        propose(project, kept(project, *results), 3, **options)
    assert refused.value.actions
    assert path.read_text() == content


@pytest.mark.parametrize("in_order", [1, -1])
def test_of_two_results_of_one_name_the_chosen_one_is_accepted(project: Project, in_order: int) -> None:
    values = [f"<expectedValue>{each}</expectedValue>" for each in ("Monday.", "Noon.")]
    put(project, definition(*(expectation(RATING, value) for value in values)))
    results = [result("Friday.", "Monday."), result("At 8.", "Noon.")][::in_order]
    run_id = kept(project, *results)
    with pytest.raises(UsageError, match=f"several such results: {RATING}#1, {RATING}#2"):
        propose(project, run_id, 3)
    after = [propose(project, run_id, 3, expectation=f"{RATING}#{each}").after.decode() for each in (1, 2)][::in_order]
    assert [("Friday." in each, "Monday." in each, "At 8." in each, "Noon." in each) for each in after] == [
        (True, False, False, True),
        (False, True, True, False),
    ]


def test_iterations_with_different_answers_need_a_choice(project: Project) -> None:
    put(project, rated())
    cases = [
        CaseResult(3, place, "Where is it?", Verdict.FAILURE, 1, 1, (result(answer),))
        for place, answer in enumerate(("On Friday.", "At noon."), 1)
    ]
    run_id = kept_cases(project, *cases)
    with pytest.raises(UsageError, match=r"different answers: 'On Friday.' \(1x\), 'At noon.' \(1x\)"):
        propose(project, run_id, 3)
    assert b"At noon." in propose(project, run_id, 3, iteration=2).after
    same = kept_cases(project, cases[0], cases[0]._replace(iteration=2))
    assert b"On Friday." in propose(project, same, 3).after


def test_a_definition_that_only_the_org_has_is_retrieved_first(project: Project) -> None:
    put(project, rated()).unlink()
    with pytest.raises(NotFound, match="the project has no file of Orders") as refused:
        propose(project, kept(project, result()), 3)
    assert refused.value.actions == (
        "If it is in the org, get it first: evalmeta retrieve --metadata AiEvaluationDefinition:Orders",
    )


@pytest.mark.sqlite
def test_a_file_that_does_not_exist_any_more_is_not_found(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    spec = project.root / "gone.yaml"
    spec.write_text("subject: Desk\ncases:\n- input: Hi\n  equals: Ho\n")
    with pytest.raises(SystemExit):
        main(["run", str(spec)])
    spec.unlink()
    with pytest.raises(NotFound, match=r"the file of run \w+, gone.yaml, does not exist any more"):
        propose(project, "latest:gone.yaml", 1)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("table.csv", "Utterance,Expected Topic\nHi,Other\n", "is neither a definition nor a test spec"),
        ("default.yaml", "defaults: {topic: Other}\ncases:\n- input: Hi\n", "own key for topic_.*; it is in defaults"),
        ("others.yaml", "cases: others.jsonl\n", "test case 1 is in another file"),
        ("anchor.yaml", "cases:\n- input: Hi\n  topic: &a Other\n", "the value has an anchor, an alias or a tag"),
    ],
)
def test_a_file_that_cannot_be_changed_exactly_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, content: str, reason: str
) -> None:
    monkeypatch.chdir(project.root)
    file = project.root / name
    file.write_text(content)
    (project.root / "others.jsonl").write_text('{"input": "Hi", "topic": "Other"}\n')
    with pytest.raises(SystemExit):
        main(["run", name, "--agent", "Desk"])
    with pytest.raises(UsageError, match=reason):
        propose(project, f"latest:{name}", 1, expectation="Topic")
    assert file.read_text() == content
