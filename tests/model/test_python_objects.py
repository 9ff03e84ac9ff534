from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.python_objects import function_fingerprint, object_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _one_of(words: object, client: object = None) -> Callable[[str], bool]:
    def check(answer: str) -> bool:
        return (answer, client) == words

    return check


def _turned(check: Callable[[str], bool]) -> Callable[[str], bool]:
    @wraps(check)
    def turned(answer: str) -> bool:
        return not check(answer)

    return turned


@dataclass(slots=True)
class _Limit:
    most: int

    def __call__(self, answer: str) -> bool:
        return len(answer) <= self.most


def _under(most: int, answer: str, *, least: int = 0) -> bool:
    return least <= len(answer) <= most


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ((_one_of(["a"]), _one_of(["a"])), _one_of(["b"])),
        ((_one_of({"a", "b"}), _one_of({"b", "a"})), _one_of({"a"})),
        ((_one_of("a", object()), _one_of("a", object())), _one_of("b", object())),
        ((_Limit(1), _Limit(1)), _Limit(2)),
        ((_Limit(1).__call__, _Limit(1).__call__), _Limit(2).__call__),
        ((_one_of(_Limit(1)), _one_of(_Limit(1))), _one_of(_Limit(2))),
        ((partial(_under, 1), partial(_under, 1)), partial(_under, 1, least=1)),
        ((_turned(_one_of("a")), _turned(_one_of("a"))), _turned(_one_of("b"))),
        ((_turned(_one_of("a")), _turned(_one_of("a"))), _one_of("a")),
        (("a".startswith, "a".startswith), "b".startswith),
    ],
)
def test_the_code_of_a_function_and_what_is_bound_to_it_decide(same: tuple[object, object], other: object) -> None:
    first, second = map(function_fingerprint, same)
    assert first == second != function_fingerprint(other)


def test_a_global_value_that_the_function_uses_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    before = function_fingerprint(_uses_global)
    monkeypatch.setattr(f"{__name__}._MOST", 4)
    assert function_fingerprint(_uses_global) != before


_MOST = 3


def _uses_global(answer: str) -> bool:
    return len(answer) <= _MOST


def test_values_that_contain_themselves_are_read_once() -> None:
    words: list[object] = ["a"]
    words.append(words)
    assert function_fingerprint(_one_of(words))


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    code = f"from {__name__} import *; from {__name__} import _one_of, _Limit; "
    code += "print(function_fingerprint(_one_of({'a', 'b', ('c', 1)}, object())), function_fingerprint(_Limit(3)))"
    run = partial(subprocess.check_output, [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path}; {code}"])
    assert run() == run()


def test_an_object_is_known_by_its_name_and_its_source() -> None:
    name, version = object_of(Desk())
    assert (name, len(version)) == (f"python {__name__}:Desk", 8)
    assert object_of(Desk().answer)[0] == f"python {__name__}:Desk.answer"
    assert object_of(print) == ("python builtins:print", "")


class Desk:
    def answer(self, utterance: str) -> str:
        return utterance


AGENT = """
cache = {}


class Shop:
    def find(self):
        return state()


def state():
    return "on its way"


def tool():
    return 1


TOOLS = {"tool": tool}


def answer(question):
    asked = [question]
    cache[question] = {"asked": asked, "again": asked}
    return [Shop().find() for _ in question if TOOLS]


def other():
    return 1
"""


def version_of(folder: Path, name: str, text: str) -> str:
    """Return the fingerprint of `answer` in a module with this text."""
    (folder / f"{name}.py").write_text(text)
    sys.path.insert(0, str(folder))
    try:
        return object_of(importlib.import_module(name).answer)[1]
    finally:
        sys.path.remove(str(folder))


def test_what_an_agent_uses_of_its_module_belongs_to_its_version(tmp_path: Path) -> None:
    whole = version_of(tmp_path, "whole_agent", AGENT)

    assert version_of(tmp_path, "helper_changed", AGENT.replace("on its way", "lost")) != whole
    assert version_of(tmp_path, "class_changed", AGENT.replace("return state()", "return state() + '!'")) != whole
    tool, other = (AGENT.replace(f"{name}():\n    return 1", f"{name}():\n    return 2") for name in ("tool", "other"))
    assert version_of(tmp_path, "tool_changed", tool) != whole
    assert version_of(tmp_path, "other_changed", other) == whole


def test_what_an_agent_remembers_does_not_change_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "remembering_agent.py").write_text(AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    answer = importlib.import_module("remembering_agent").answer
    before = object_of(answer)

    answer("Where is my order?")

    assert object_of(answer) == before
