from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import pytest

from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.objects import OBJECT_ADAPTERS
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.engine.subjects.replay import ReplaySubject
from evalmeta.errors import SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.model.settings import Settings, subject_adapter

DOCS = Path(__file__).parents[3] / "docs"


class Opener:
    def open(self, history: object) -> object:
        return history


def test_each_adapter_is_bound_by_its_settings(tmp_path: Path) -> None:
    tmp_path.joinpath("agent.py").write_text("def answer(utterance): return utterance\n")
    tmp_path.joinpath("run.json").write_text('{"testCases": []}')
    assert bind(PythonSubject(adapter="python", target="agent:answer"), root=tmp_path)
    assert bind(ReplaySubject(adapter="replay", file=Path("run.json")), root=tmp_path)


def test_settings_that_name_nothing_are_an_error_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        bind(PythonSubject(adapter="python", target="nowhere:answer"), root=tmp_path)
    assert caught.value.actions


@pytest.mark.parametrize("name", ENTRY_POINTS["subjects"])
def test_every_adapter_is_found_by_its_name_and_described(name: str) -> None:
    model = subject_adapter(name)
    assert model.model_json_schema()["properties"]["adapter"]["const"] == name
    assert f'adapter = "{name}"`' in (DOCS / "settings.md").read_text()
    assert f"| [{name}](#{name}) | {model.agent} |" in (DOCS / "subjects.md").read_text()


@pytest.mark.parametrize("name", ENTRY_POINTS["subjects"])
def test_an_adapter_is_loaded_when_settings_name_it(name: str) -> None:
    code = f"""
import sys
from pydantic import ValidationError
from evalmeta.model.settings import Settings
try:
    Settings.model_validate({{"subjects": {{"Desk": {{"adapter": "{name}"}}}}}})
except ValidationError:
    pass
print(*(module.rpartition(".")[2] for module in sys.modules if module.startswith("evalmeta.engine.subjects.")))
"""
    loaded = run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = {"http"} if name in {"openai", "a2a", "mcp"} else set()
    is_of_wing = not ENTRY_POINTS["subjects"][name].startswith("evalmeta.engine.subjects.")
    assert {*ENTRY_POINTS["subjects"]} & {*loaded} == others | (set() if is_of_wing else {name})


def test_settings_are_read_by_the_class_of_their_adapter() -> None:
    table = {"adapter": "python", "target": "agent:answer"}
    agent = PythonSubject(adapter="python", target="agent:answer")
    assert Settings.model_validate({"subjects": {"Desk": table}}) == Settings(subjects={"Desk": agent})


@pytest.mark.parametrize(("thing", "place"), [(len, 3), (Opener(), 1), (int, None), (1, None)])
def test_an_object_is_recognised_by_one_adapter(thing: object, place: int | None) -> None:
    recognising = [number for number, adapter in enumerate(OBJECT_ADAPTERS) if adapter.recognises(thing)]
    assert recognising == ([] if place is None else [place])
