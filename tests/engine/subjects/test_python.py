from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.builders import case
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Case

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData

CASE = Case(1, case().turns, (HistoryMessage("user", "Hi", None, 0),), (ContextVariable("City", "Bonn"),))


def subject(root: Path, text: str, target: str = "agent:answer", retry_on: tuple[str, ...] = ()) -> Subject:
    root.joinpath("agent.py").write_text(text)
    return PythonSubject(adapter="python", target=target, retry_on=retry_on).bind(root=root)


def ask(bound: Subject, *utterances: str) -> list[GeneratedData]:
    async def main() -> list[GeneratedData]:
        session = await bound.open(CASE)
        answers = [await session.ask(utterance) for utterance in utterances or ("Hello",)]
        await session.close()
        await bound.close()
        return answers

    return asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    [
        "def answer(utterance): return utterance.upper()",
        "async def answer(utterance): return utterance.upper()",
        "async def slow(utterance): return utterance.upper()\nanswer = lambda utterance: slow(utterance)",
        "class Agent:\n def __call__(self, utterance): return utterance.upper()\nanswer = Agent()",
        "class Agent:\n async def __call__(self, utterance): return utterance.upper()\nanswer = Agent()",
        "answer = str.upper",
        "class answer:\n def open(self): return self\n def ask(self, utterance): return utterance.upper()",
        "class A:\n async def open(self): return self\n async def ask(self, text): return text.upper()\nanswer = A()",
    ],
)
def test_functions_classes_and_objects_answer(tmp_path: Path, text: str) -> None:
    assert ask(subject(tmp_path, text))[0].outcome == "HELLO"


@pytest.mark.parametrize(
    ("parameters", "outcome"),
    [
        ("*, history, context", "[{'role': 'user', 'message': 'Hi', 'topic': None}] {'City': 'Bonn'}"),
        ("context, history=()", "[{'role': 'user', 'message': 'Hi', 'topic': None}] {'City': 'Bonn'}"),
        ("*, context, history=0", "[{'role': 'user', 'message': 'Hi', 'topic': None}] {'City': 'Bonn'}"),
    ],
)
def test_history_and_context_are_passed_by_name(tmp_path: Path, parameters: str, outcome: str) -> None:
    text = f"def answer(utterance, {parameters}): return f'{{history}} {{context}}'"
    assert ask(subject(tmp_path, text))[0].outcome == outcome


def test_a_function_with_any_keywords_receives_both(tmp_path: Path) -> None:
    text = "def answer(utterance, **inputs): return ' '.join(inputs)"
    assert ask(subject(tmp_path, text))[0].outcome == "history context"


def test_a_function_that_does_not_say_what_it_takes_gets_the_utterance(tmp_path: Path) -> None:
    assert ask(subject(tmp_path, "answer = max"), "abc")[0].outcome == "c"


def test_a_function_gets_the_turns_so_far_as_history(tmp_path: Path) -> None:
    text = "def answer(utterance, *, history):\n history.pop()\n return f'{utterance}{len(history)}'"
    assert [answer.outcome for answer in ask(subject(tmp_path, text), "a", "b")] == ["a0", "b2"]


def test_an_agent_opens_a_session_with_history_and_context_and_is_closed(tmp_path: Path) -> None:
    text = (
        "log = []\n"
        "class Session:\n"
        "    def __init__(self, context): self.context = context\n"
        "    def ask(self, utterance): return self.context['City']\n"
        "    async def close(self): log.append('session')\n"
        "class Agent:\n"
        "    def open(self, history, context): return Session(context)\n"
        "    def close(self): log.append('agent ' + ' '.join(log))\n"
        "    def log(self): return log\n"
    )
    bound = subject(tmp_path, text, "agent:Agent")
    assert ask(bound)[0].outcome == "Bonn"
    assert bound._agent.log() == ["session", "agent session"]  # noqa: SLF001


def test_a_nested_name_can_be_the_target(tmp_path: Path) -> None:
    text = "class Bots:\n @staticmethod\n def answer(utterance): return 'nested'"
    assert ask(subject(tmp_path, text, "agent:Bots.answer"))[0].outcome == "nested"


@pytest.mark.parametrize("body", ["return None", "return 3.5j", "return {'outcome': 'x', 'latency_ms': float('nan')}"])
def test_nonsense_is_a_subject_error(tmp_path: Path, body: str) -> None:
    with pytest.raises(SubjectError, match="expected"):
        ask(subject(tmp_path, f"def answer(utterance): {body}"))


@pytest.mark.parametrize(
    "text",
    [
        "import json\ndef answer(utterance):\n    json.loads('[')",
        "import json\nasync def answer(utterance):\n    json.loads('[')",
        "import json\nclass answer:\n def open(self): json.loads('[')",
    ],
)
def test_an_exception_is_reported_with_its_line_in_the_project(tmp_path: Path, text: str) -> None:
    with pytest.raises(SubjectError, match=r"^agent\.py:3: JSONDecodeError: Expecting value"):
        ask(subject(tmp_path, text))


def test_an_agent_that_exits_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match=r"^agent\.py:1: RuntimeError: SystemExit: 3$"):
        ask(subject(tmp_path, "def answer(utterance): raise SystemExit(3)"))


@pytest.mark.parametrize("define", ["def", "async def"])
def test_an_exception_that_is_not_an_exception_class_is_an_error_of_the_agent(tmp_path: Path, define: str) -> None:
    code = f"class Panic(BaseException): ...\n{define} answer(utterance): raise Panic('no')"
    with pytest.raises(SubjectError, match=r"^agent\.py:2: Panic: no$"):
        ask(subject(tmp_path, code))


def test_an_error_outside_of_the_project_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match=r"^TypeError: "):
        ask(subject(tmp_path, "answer = len"), 3)


@pytest.mark.parametrize("name", ["Late", "agent.Late", "TimeoutError", "builtins.OSError", "asyncio.TimeoutError"])
def test_what_is_to_be_tried_again_is_unreachable(tmp_path: Path, name: str) -> None:
    text = "class Late(TimeoutError): pass\ndef answer(utterance): raise Late('later')"
    with pytest.raises(SubjectUnreachable, match=r"^agent\.py:2: Late: later$"):
        ask(subject(tmp_path, text, retry_on=(name,)))


@pytest.mark.parametrize("name", ["Lat", "other.Late", "agent.", "TimeoutError"])
def test_other_exceptions_are_not_tried_again(tmp_path: Path, name: str) -> None:
    text = "class Late(ConnectionError): pass\ndef answer(utterance): raise Late('later')"
    with pytest.raises(SubjectError) as caught:
        ask(subject(tmp_path, text, retry_on=(name,)))
    assert type(caught.value) is SubjectError


def test_an_agent_may_say_itself_that_it_is_busy(tmp_path: Path) -> None:
    text = "from evalmeta.errors import SubjectBusy\ndef answer(utterance): raise SubjectBusy('full', after=2)"
    with pytest.raises(SubjectBusy, match=r"^full$") as caught:
        ask(subject(tmp_path, text))
    assert caught.value.after == 2


def test_a_session_without_ask_is_a_subject_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match="has no method ask"):
        ask(subject(tmp_path, "class answer:\n def open(self): return 3"))


@pytest.mark.parametrize(
    ("text", "target", "complaint"),
    [
        ("def answer(utterance): pass", "agent:anser", r"names anser, which .*agent\.py does not define"),
        ("answer = 3", "agent:answer", "neither a function"),
        ("class answer: pass", "agent:answer", "neither a function"),
        (
            "class answer:\n def __init__(self, key): pass\n def open(self): pass",
            "agent:answer",
            "cannot be instantiated: TypeError",
        ),
    ],
)
def test_a_target_that_cannot_be_used_is_a_settings_error(
    tmp_path: Path, text: str, target: str, complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint) as caught:
        subject(tmp_path, text, target)
    assert caught.value.actions


def test_a_misspelt_target_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        subject(tmp_path, "def answer(utterance): pass", "agent:anser")
    assert "Did you mean agent:answer?" in caught.value.actions[0]


def test_blocking_answers_do_not_wait_for_each_other(tmp_path: Path) -> None:
    text = "import threading\nmeet = threading.Barrier(20, timeout=120)\ndef answer(utterance): return str(meet.wait())"
    bound = subject(tmp_path, text)

    async def main() -> list[GeneratedData]:
        sessions = [await bound.open(CASE) for _ in range(20)]
        return await asyncio.gather(*(session.ask("x") for session in sessions))

    assert sorted(int(answer.outcome) for answer in asyncio.run(main())) == list(range(20))
