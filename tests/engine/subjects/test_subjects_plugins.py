from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

import evalmeta.plugins
from evalmeta import evaluate
from evalmeta.engine.subjects import bind
from evalmeta.errors import SettingsError
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.settings import PluginSubject, Settings
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject

    Adding = Callable[[str], None]

PARROT = """
def make(settings, *, root):
    word = settings.model_extra["word"]
    return lambda utterance: {"outcome": f"{word} {utterance}", "topic": root.name}
"""
KEEPER = """
class Session:
    def __init__(self, turns): self.turns = turns
    def ask(self, utterance):
        self.turns.append(utterance)
        return " ".join(self.turns)
class Agent:
    def open(self, history, context): return Session([])
def make(settings, *, root): return Agent()
"""


TRACED = """
from opentelemetry import trace
def answer(utterance):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    with trace.get_tracer("acme").start_as_current_span("invoke_agent", attributes=attributes): return "Hello"
"""
TRACED_FUNCTION = f"{TRACED}\ndef make(settings, *, root): return answer"
TRACED_SETTINGS = f"""{TRACED}
from evalmeta.model.settings import SubjectSettings
class make(SubjectSettings):
    tracing = "in process"
    traces: bool = False
    def bind(self, **_): return answer
"""
OWN_TRACES = TRACED_SETTINGS.replace('tracing = "in process"', "")


@pytest.fixture
def adding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adding]:
    """Installs a package with a subject adapter `acme`, made of a source."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)

    def add(source: str) -> None:
        install(tmp_path, "subjects", "acme = acme:make", source)
        evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise

    yield add
    monkeypatch.undo()
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise


async def _answers(subject: Subject, *utterances: str) -> list[str]:
    session = await subject.open(Case(1, (Turn("Hi"),)))
    said = [(await session.ask(utterance)).outcome for utterance in utterances]
    await session.close()
    await subject.close()
    return said


def test_packages_add_subjects_that_read_their_own_keys(adding: Adding, tmp_path: Path) -> None:
    adding(PARROT)
    settings = Settings.model_validate({"subjects": {"Bird": {"adapter": "acme", "word": "Polly:"}}})
    subject = bind(settings.subjects["Bird"], root=tmp_path)
    assert asyncio.run(_answers(subject, "Hello")) == ["Polly: Hello"]


def test_agents_of_packages_may_keep_sessions(adding: Adding, tmp_path: Path) -> None:
    adding(KEEPER)
    subject = bind(PluginSubject(adapter="acme"), root=tmp_path)
    assert asyncio.run(_answers(subject, "one", "two")) == ["one", "one two"]


@pytest.mark.parametrize(
    ("source", "topic"), [(TRACED_FUNCTION, "desk"), (TRACED_SETTINGS, "desk"), (OWN_TRACES, None)]
)
def test_agents_of_packages_have_traces_unless_the_key_has_another_meaning_there(
    adding: Adding, tmp_path: Path, source: str, topic: str | None
) -> None:
    adding(source)
    agent = {"adapter": "acme", "traces": True}
    (case,) = evaluate([{"input": "Hi", "contains": "Hello"}], agent, root=tmp_path).run.cases
    assert case.generated
    assert case.generated.topic == topic


def test_an_unknown_adapter_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there are no subjects called 'comand'") as caught:
        bind(PluginSubject(adapter="comand"), root=tmp_path)
    assert "Did you mean 'command'?" in caught.value.actions[0]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("make = 1", "'acme' of the entry points evalmeta.subjects is int, which cannot be called"),
        ("def make(settings, *, root): raise KeyError('word')", "failed: KeyError: 'word'"),
        ("def make(settings, *, root): return 1", "the agent from 'acme' of .* is neither a function nor an object"),
        ("raise OSError('no dog')", "cannot be imported: OSError: no dog"),
    ],
)
def test_a_package_that_does_not_return_a_subject_is_reported(
    adding: Adding, tmp_path: Path, source: str, words: str
) -> None:
    adding(source)
    with pytest.raises(SettingsError, match=words):
        bind(PluginSubject(adapter="acme"), root=tmp_path)


def test_an_error_of_a_package_is_reported_unchanged(adding: Adding, tmp_path: Path) -> None:
    adding("from evalmeta.errors import SettingsError\ndef make(settings, *, root): raise SettingsError('no dog')")
    with pytest.raises(SettingsError, match=r"^no dog$"):
        bind(PluginSubject(adapter="acme"), root=tmp_path)
