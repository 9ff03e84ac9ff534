from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.builders import evaluation, run
from evalmeta import limits
from evalmeta.engine.project_code import import_from, traceback_text
from evalmeta.engine.subjects.objects import subject_of

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult

SHOP = """
import json

def answer(utterance):
    return look_up(utterance)

def look_up(utterance):
    try:
        return json.loads("{")
    except ValueError as error:
        raise RuntimeError("cannot read the stock") from error
"""


def result_of(root: Path, source: str) -> CaseResult:
    """Ask the function `answer` of a module one question."""
    root.joinpath("shop.py").write_text(source)
    agent = import_from(root, "shop", called="the agent")
    [result] = run(subject_of(agent.answer, root=root), evaluation(1), retries=0)
    return result


def raised(function: object) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any exception
        function()
    return caught.value


def test_the_result_of_an_error_has_the_traceback_of_the_agent_from_its_first_frame(tmp_path: Path) -> None:
    lines = result_of(tmp_path, SHOP).traceback.splitlines()

    assert lines[:3] == [
        "Traceback (most recent call last):",
        '  File "shop.py", line 9, in look_up',
        '    return json.loads("{")',
    ]
    assert '  File "shop.py", line 5, in answer' in lines
    assert lines[-1] == "RuntimeError: cannot read the stock"


def test_an_error_that_is_raised_while_a_session_opens_has_a_traceback_too(tmp_path: Path) -> None:
    source = "class Agent:\n    def open(self):\n        raise OSError('no stock')\nanswer = Agent()\n"
    assert result_of(tmp_path, source).traceback.endswith("OSError: no stock")


def test_an_answer_has_no_traceback(tmp_path: Path) -> None:
    assert not result_of(tmp_path, "def answer(utterance):\n    return 'Orders'\n").traceback


def test_values_of_secret_variables_are_masked_in_error_and_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "wholly-ordinary-words")
    source = "import os\ndef answer(utterance):\n    raise OSError('refused ' + os.environ['SHOP_API_KEY'])\n"

    result = result_of(tmp_path, source)

    assert result.traceback.endswith("OSError: refused [secret]")
    assert result.error == "shop.py:3: OSError: refused [secret]"


def test_of_files_outside_the_project_only_the_first_and_the_last_frames_are_shown() -> None:
    def deep(level: int) -> None:
        if level:
            deep(level - 1)
        json.loads("{")

    text = traceback_text(raised(lambda: deep(30)))

    assert text.count("  File ") == 6
    assert "frames]" in text
    assert 'File "json/decoder.py"' in text


def test_a_recursion_is_shown_from_both_ends(tmp_path: Path) -> None:
    source = (
        "def answer(utterance):\n    return again(utterance)\ndef again(utterance):\n    return answer(utterance)\n"
    )

    text = result_of(tmp_path, source).traceback

    assert text.count('File "shop.py"') <= 20
    assert " more frames]" in text
    assert "RecursionError" in text.splitlines()[-1]


def test_a_long_message_leaves_room_for_the_frames() -> None:
    def fail() -> None:
        raise ValueError("x" * 1_000_000)

    text = traceback_text(raised(fail))

    assert len(text) <= limits.MAX_TRACEBACK_CHARS
    assert "in fail" in text


def test_the_parts_of_an_exception_group_are_shown() -> None:
    def fail() -> None:
        raise ExceptionGroup("both", [raised(lambda: json.loads("{")), KeyError("stock")])

    text = traceback_text(raised(fail))

    assert "JSONDecodeError" in text
    assert "KeyError: 'stock'" in text


def test_an_exception_without_frames_has_no_traceback() -> None:
    assert not traceback_text(ValueError("never raised"))


def test_a_traceback_is_always_valid_unicode() -> None:
    def fail() -> None:
        raise ValueError("\ud800")

    traceback_text(raised(fail)).encode()
