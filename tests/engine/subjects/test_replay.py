from __future__ import annotations

import asyncio
import html
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import case
from evalmeta import limits
from evalmeta.engine.subjects.replay import Recording, ReplaySubject, read_recordings
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.generated_data import Action, GeneratedData, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, Run, RunStatus, Verdict
from evalmeta.model.tally import summarise
from evalmeta.protocol.connect import write_run
from evalmeta.protocol.testing import write_testing_run
from evalmeta.report import render
from evalmeta.report.report import Report

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Subject

CALL = {"function": {"name": "Find", "input": {"id": "1"}, "output": {"ok": True}}, "executionLatency": 12}
FOUND = Action("Find", {"id": "1"}, {"ok": True}, 12.0)


def recorded(utterance: str = "Where's it?", **generated: object) -> dict[str, object]:
    data = {"type": "AGENT", "topic": "Orders", "outcome": "It's here.", "sessionId": "s-1", **generated}
    return {"testNumber": 1, "inputs": {"utterance": utterance}, "generatedData": data}


def bound_to(root: Path, content: object) -> Subject:
    root.joinpath("run.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return ReplaySubject(adapter="replay", file=Path("run.json")).bind(root=root)


def ask(bound: Subject, *utterances: str, number: int = 1) -> list[GeneratedData]:
    async def main() -> list[GeneratedData]:
        session = await bound.open(case(number=number))
        answers = [await session.ask(utterance) for utterance in utterances]
        await session.close()
        await bound.close()
        return answers

    return asyncio.run(main())


def replay(root: Path, *utterances: str, content: object) -> list[GeneratedData]:
    return ask(bound_to(root, content), *utterances)


def lines(*entries: object) -> str:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


@pytest.mark.parametrize(
    "generated",
    [
        {"actionsSequence": ["Find"], "invokedActions": [[CALL]]},
        {"actionsSequence": "['Find']", "invokedActions": json.dumps([[CALL]])},
        {"actionsSequence": "[&#39;Find&#39;]", "invokedActions": html.escape(json.dumps([[CALL]]))},
        {"actionsSequence": ["Find"], "invokedActions": [CALL]},
        {"invokedActions": [[[CALL]]]},
        {
            "topic": html.escape("Orders"),
            "outcome": None,
            "generatedResponse": "It&#39;s here.",
            "invokedActions": [[CALL]],
        },
    ],
)
def test_every_spelling_of_results_gives_the_same_answer(tmp_path: Path, generated: dict[str, object]) -> None:
    results = {"status": "COMPLETED", "testCases": [recorded(**generated)]}
    expected = [GeneratedData("It's here.", "Orders", (FOUND,), None, "s-1")]
    assert replay(tmp_path, "Where's it?", content=results) == expected
    assert replay(tmp_path, "Where's it?", content={"status": 0, "result": results, "warnings": []}) == expected


@pytest.mark.parametrize("sequence", [["Find", "Send"], "['Find', 'Send']"])
@pytest.mark.parametrize("invoked", ["", None, [[CALL]], "no JSON"])
def test_actions_without_details_keep_their_names(tmp_path: Path, sequence: object, invoked: object) -> None:
    results = {"testCases": [recorded(actionsSequence=sequence, invokedActions=invoked)]}
    (answer,) = replay(tmp_path, "Where's it?", content=results)
    assert [action.name for action in answer.actions] == ["Find", "Send"]


def test_utterances_are_found_unescaped_and_across_line_breaks(tmp_path: Path) -> None:
    content = {"testCases": [recorded("Where&#39;s\n   it &amp; why?")]}
    assert replay(tmp_path, "Where's it\n& why?", content=content)[0].outcome == "It's here."


def test_recordings_of_one_utterance_are_used_in_order_and_the_last_one_repeatedly(tmp_path: Path) -> None:
    content = {"testCases": [recorded("q", outcome="1"), recorded("q", outcome="2")]}
    assert [answer.outcome for answer in replay(tmp_path, "q", "q", "q", content=content)] == ["1", "2", "2"]


def test_a_recorded_latency_is_replayed(tmp_path: Path) -> None:
    content = {"testCases": [recorded("q") | {"testResults": [{"name": "output_latency_milliseconds", "score": 2400}]}]}
    assert replay(tmp_path, "q", content=content)[0].latency_ms == 2400.0


def test_an_utterance_that_was_not_recorded_is_a_subject_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match=r"no recorded answer to 'other' in run\.json$"):
        replay(tmp_path, "other", content={"testCases": [recorded()]})


def test_a_recorded_error_is_a_subject_error_with_its_reason(tmp_path: Path) -> None:
    broken = {"inputs": {"utterance": "q"}, "generatedData": None, "errorMessage": "Agent call failed"}
    with pytest.raises(SubjectError, match="Agent call failed"):
        replay(tmp_path, "q", content={"testCases": [broken]})


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"testCases": {}}', '{"result": {}}'])
def test_a_file_without_results_is_a_settings_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(SettingsError, match="cannot be used") as caught:
        replay(tmp_path, "q", content=content)
    assert caught.value.actions


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_a_settings_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be used"):
        ReplaySubject(adapter="replay", file=Path(name)).bind(root=tmp_path)


@pytest.mark.parametrize("case_", [3, None, {}, {"inputs": []}, {"inputs": {"utterance": 5}}])
def test_cases_without_an_utterance_are_ignored(tmp_path: Path, case_: object) -> None:
    assert replay(tmp_path, "q", content={"testCases": [case_, recorded("q")]})[0].outcome == "It's here."


def run_of(name: str, *cases: CaseResult) -> Run:
    return Run(name, name, "Agent", RunStatus.COMPLETED, 0.0, len(cases), cases=cases)


def result_of(utterance: str, outcome: str, *, number: int = 1, iteration: int = 1) -> CaseResult:
    generated = GeneratedData(outcome, "Orders", (FOUND,), 5.0, "s", Tokens(1, 2), {"steps": [1]})
    return CaseResult(number, iteration, utterance, Verdict.PASS, 0.0, 1.0, (), generated)


def test_results_of_several_runs_are_one_recording(tmp_path: Path) -> None:
    runs = [run_of("1", result_of("a", "A")), run_of("2", result_of("b", "B"))]
    content = [write_run(run, escape=False) for run in runs]
    for each in (content, {"status": 0, "result": content, "warnings": []}):
        answers = replay(tmp_path, "a", "b", content=each)
        assert answers == [runs[0].cases[0].generated, runs[1].cases[0].generated]


def test_results_of_agentforce_studio_are_recordings(tmp_path: Path) -> None:
    run = run_of("1", result_of('Where\'s "it"?', "It's <here>."))
    studio = write_testing_run(run)
    for content in (studio, {"status": 0, "result": studio}, [write_run(run_of("2"), escape=False), studio]):
        assert replay(tmp_path, 'Where\'s "it"?', content=content) == [run.cases[0].generated]


def test_a_case_gets_its_own_recordings_iteration_by_iteration(tmp_path: Path) -> None:
    cases = [
        result_of("q", f"{number}.{iteration}", number=number, iteration=iteration)
        for iteration in (2, 1)
        for number in (1, 2)
    ]
    bound = bound_to(tmp_path, write_run(run_of("1", *cases), escape=False))
    for iteration in (1, 2):
        for number in (2, 1):
            assert ask(bound, "q", number=number)[0].outcome == f"{number}.{iteration}"


def test_a_case_without_recordings_of_its_own_gets_all_in_turn(tmp_path: Path) -> None:
    cases = [result_of("q", "1"), result_of("q", "2", number=2)]
    bound = bound_to(tmp_path, write_run(run_of("1", *cases), escape=False))
    assert [each.outcome for each in ask(bound, "q", "q", "q", number=7)] == ["1", "2", "2"]


def test_a_line_may_have_the_number_of_its_case(tmp_path: Path) -> None:
    lines = [{"utterance": "q", "outcome": "of 2", "number": 2}, {"utterance": "q", "error": "gone", "number": 1}]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    recordings = read_recordings(path)
    assert recordings.take("q", number=1) == Recording(error="gone", number=1)
    assert recordings.take("q", number=2) == Recording(GeneratedData("of 2"), number=2)


def test_a_number_in_a_structured_answer_is_a_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"utterance": "q", "number": 2, "total": 5}\n')
    recording = read_recordings(path).take("q", number=1)
    assert recording is not None
    assert recording.generated == GeneratedData('{"number": 2, "total": 5}', is_json=True)


def test_a_line_is_what_a_function_may_return_and_the_utterance(tmp_path: Path) -> None:
    content = lines(
        {"utterance": "a", "outcome": "A", "topic": "Orders", "actions": ["Find"], "latency_ms": 7, "trace": [1]},
        {"utterance": "b", "answer": "B", "tokens": {"input": 1}},
        {"utterance": "a", "answer": "A again"},
    )
    assert replay(tmp_path, "a", "b", "a", content=f"\n{content}\n") == [
        GeneratedData("A", "Orders", (Action("Find"),), 7.0, None, None, [1]),
        GeneratedData("B", tokens=Tokens(1)),
        GeneratedData("A again"),
    ]


def test_a_line_may_hold_an_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match="no answer to 'a': timed out"):
        replay(tmp_path, "a", content=lines({"utterance": "a", "error": "timed out"}))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "it is not valid JSON"),
        ("3", "expected a JSON object"),
        ('{"outcome": "x"}', "it has no utterance"),
        ('{"utterance": 3, "outcome": "x"}', "it has no utterance"),
        ('{"utterance": "q"}', "expected 'outcome'"),
        ('{"utterance": "q", "outcome": "x", "score": 1}', "'score'; known keys"),
        ('{"utterance": "q", "error": {}}', "its error is not text"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path: Path, line: str, complaint: str) -> None:
    good = lines({"utterance": "a", "outcome": "A"})
    with pytest.raises(SettingsError, match=rf"run\.json:3 cannot be used: .*{complaint}"):
        replay(tmp_path, "q", content=f"{good}\n{line}\n{good}")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("\n \n", r"run\.json cannot be used: it is empty"),
        ("\n{\n  3\n}", r"run\.json:3 cannot be used: it is not valid JSON"),
        ('{"outcome": "x"}', r"run\.json:1 cannot be used: it has no utterance"),
        ("[]", "a list without any run"),
        ("[3]", "run 1 of the list: it is not a results object"),
        ('[{"testCases": []}, {}]', "run 2 of the list: it is not a results object: it has no list of testCases"),
    ],
)
def test_a_file_says_what_is_wrong_with_it(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        replay(tmp_path, "q", content=content)


@pytest.mark.parametrize(
    "content", [lines(*[{"utterance": "q", "outcome": "x"}] * 9), '{\n"testCases": [] }' + " " * 300]
)
def test_a_file_that_is_too_large_is_a_settings_error(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RECORDING_BYTES", 200)
    with pytest.raises(SettingsError, match="larger than 200 bytes"):
        replay(tmp_path, "q", content=content)


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for content in ('{"utterance": "q", "outcome": "a"}', json.dumps({"testCases": [recorded("q", outcome="a")]})):
        path = tmp_path / "run.json"
        path.write_text(content, encoding="utf-8-sig")
        assert read_recordings(path).take("q", number=9)


def test_results_as_json_lines_are_replayed_case_by_case(tmp_path: Path) -> None:
    first = GeneratedData("first", "T", (FOUND,), 5.0, state={"cart": []}, handoffs=("T",))
    answers = [CaseResult(2, 1, "q", Verdict.PASS, 0, 0, (), first)]
    answers += [CaseResult(3, 1, "q", Verdict.ERROR, 0, 0, (), None, "gone")]
    run = Run("r", "d", "s", RunStatus.COMPLETED, 0, 2, cases=tuple(answers))
    path = tmp_path / "run.jsonl"
    path.write_text(render("jsonl", [Report(run, summarise(answers, run.options))]))
    recordings = read_recordings(path)
    assert recordings.take("q", number=3) == Recording(error="gone", number=3)
    assert recordings.take("q", number=2) == Recording(first, number=2)


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_all_turns_of_a_result_are_replayed(tmp_path: Path, form: str) -> None:
    earlier = (EarlierTurn("first", GeneratedData("one", latency_ms=1.0)),)
    case = CaseResult(
        2, 1, "second", Verdict.PASS, 0, 0, (), GeneratedData("two", latency_ms=2.0), label="talk", earlier=earlier
    )
    run = Run("r", "d", "s", RunStatus.COMPLETED, 0, 1, cases=(case,))
    path = tmp_path / "run.json"
    document = json.dumps(write_run(run, escape=True))
    path.write_text(document if form == "json" else render("jsonl", [Report(run, summarise([case], run.options))]))
    recordings = read_recordings(path)
    said = [recordings.take(each, number=2) for each in ("first", "second")]
    assert [each and each.generated and each.generated.outcome for each in said] == ["one", "two"]


@given(st.binary() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_file_is_read_or_refused(content: bytes | str) -> None:
    with TemporaryDirectory() as folder, suppress(SettingsError):
        path = Path(folder, "run.jsonl")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        read_recordings(path)


@given(st.lists(st.tuples(st.text(), st.text())))
def test_recorded_lines_come_back(said: list[tuple[str, str]]) -> None:
    said = [("first", "one"), *((f"{place} {utterance}", outcome) for place, (utterance, outcome) in enumerate(said))]
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        path.write_text(lines(*({"utterance": utterance, "outcome": outcome} for utterance, outcome in said)))
        recordings = read_recordings(path)
    for utterance, outcome in said:
        assert recordings.take(utterance, number=1) == Recording(GeneratedData(outcome))


def session(*runs: object) -> dict[str, object]:
    return {"sessionState": {"sessionId": "s-1"}, "actors": [], "metrics": {"turns": len(runs)}, "runs": [*runs]}


def turn(*messages: tuple[str, str], **fields: object) -> dict[str, object]:
    said = [{"actorRole": role, "message": message} for role, message in messages]
    return {"topicName": "Orders", "durationMs": 640, "messages": said, **fields}


STEPS = [
    {"type": "LLM_STEP", "name": "Plan"},
    {"type": "ACTION_STEP", "name": "Find", "input": '{"id": 1}', "output": '{"state": "sent"}', "durationMs": 80},
    {"type": "ACTION_STEP", "name": "Note", "input": "plain", "output": "done"},
]


@pytest.mark.parametrize("form", ["document", "line", "list", "lines"])
def test_a_recorded_session_stands_in_for_the_agent(tmp_path: Path, form: str) -> None:
    greeting = turn(("agent", "Hello."))
    where = turn(("user", "Where is it?"), ("agent", "On"), ("Agent", "its way."), agentLoop={"steps": STEPS})
    thanks = turn(("user", "Thanks"), ("agent", "Welcome"), topicName=None)
    one, two = session(greeting, where, thanks), [session(greeting, where), session(thanks)]
    forms = {"document": json.dumps(one, indent=1), "line": one, "list": two, "lines": lines(*two)}
    content = forms[form]
    actions = (Action("Find", {"id": 1}, {"state": "sent"}, 80.0), Action("Note", {"input": "plain"}, "done"))
    assert replay(tmp_path, "Where is it?", "Thanks", content=content) == [
        GeneratedData("On\nits way.", "Orders", actions, 640.0, "s-1"),
        GeneratedData("Welcome", None, None, 640.0, "s-1"),
    ]


def test_a_session_without_an_answer_is_a_subject_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match="no answer to 'q': the agent did not answer in the recorded session"):
        replay(tmp_path, "q", content=session(turn(("user", "q"))))
