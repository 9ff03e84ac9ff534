from __future__ import annotations

import asyncio
import html
import json
from pathlib import Path

import pytest

from engine.builders import case
from evalmeta.engine.subjects.replay import bind_replay
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.generated import Action, GeneratedData
from evalmeta.model.settings import ReplaySubject

CALL = {"function": {"name": "Find", "input": {"id": "1"}, "output": {"ok": True}}, "executionLatency": 12}
FOUND = Action("Find", {"id": "1"}, {"ok": True}, 12.0)


def recorded(utterance: str = "Where's it?", **generated: object) -> dict[str, object]:
    data = {"type": "AGENT", "topic": "Orders", "outcome": "It's here.", "sessionId": "s-1", **generated}
    return {"testNumber": 1, "inputs": {"utterance": utterance}, "generatedData": data}


def replay(root: Path, *utterances: str, content: object) -> list[GeneratedData]:
    root.joinpath("run.json").write_text(content if isinstance(content, str) else json.dumps(content))
    bound = bind_replay(ReplaySubject(adapter="replay", file=Path("run.json")), root=root)

    async def main() -> list[GeneratedData]:
        session = await bound.open(case())
        answers = [await session.ask(utterance) for utterance in utterances]
        await session.close()
        await bound.close()
        return answers

    return asyncio.run(main())


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


def test_recordings_of_one_utterance_come_in_turn_and_the_last_one_again(tmp_path: Path) -> None:
    content = {"testCases": [recorded("q", outcome="1"), recorded("q", outcome="2")]}
    assert [answer.outcome for answer in replay(tmp_path, "q", "q", "q", content=content)] == ["1", "2", "2"]


def test_a_recorded_latency_is_replayed(tmp_path: Path) -> None:
    content = {"testCases": [recorded("q") | {"testResults": [{"name": "output_latency_milliseconds", "score": 2400}]}]}
    assert replay(tmp_path, "q", content=content)[0].latency_ms == 2400.0


def test_an_utterance_that_was_not_recorded_is_a_subject_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match=r"no recorded answer to 'other' in run\.json$"):
        replay(tmp_path, "other", content={"testCases": [recorded()]})


def test_a_recorded_breakdown_is_a_subject_error_with_its_reason(tmp_path: Path) -> None:
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
        bind_replay(ReplaySubject(adapter="replay", file=Path(name)), root=tmp_path)


@pytest.mark.parametrize("case_", [3, None, {}, {"inputs": []}, {"inputs": {"utterance": 5}}])
def test_cases_without_an_utterance_are_passed_over(tmp_path: Path, case_: object) -> None:
    assert replay(tmp_path, "q", content={"testCases": [case_, recorded("q")]})[0].outcome == "It's here."
