from __future__ import annotations

from pathlib import Path

import pytest

from evalmeta.engine.subjects.registry import bind
from evalmeta.errors import SettingsError
from evalmeta.model.settings import PythonSubject, ReplaySubject


def test_each_adapter_is_bound_by_its_settings(tmp_path: Path) -> None:
    tmp_path.joinpath("agent.py").write_text("def answer(utterance): return utterance\n")
    tmp_path.joinpath("run.json").write_text('{"testCases": []}')
    assert bind(PythonSubject(adapter="python", target="agent:answer"), root=tmp_path)
    assert bind(ReplaySubject(adapter="replay", file=Path("run.json")), root=tmp_path)


def test_settings_that_name_nothing_are_an_error_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        bind(PythonSubject(adapter="python", target="nowhere:answer"), root=tmp_path)
    assert caught.value.actions
