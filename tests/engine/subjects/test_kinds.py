from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalmeta
import evalmeta.plugins
from engine.subjects.conversations import CASE, talk
from evalmeta.engine.interfaces import ListedSubject
from evalmeta.engine.subjects.kinds import AgentKind, kind_of
from evalmeta.engine.subjects.objects import subject_of
from evalmeta.errors import NotFound, SettingsError, SubjectError
from evalmeta.model.entry_points import ENTRY_POINTS
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.engine.interfaces import Subject

PAGE = Path(__file__).parents[3].joinpath("docs/agents-by-import.md").read_text()
BOTS = """
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of
from evalmeta.engine.subjects.kinds import AgentKind

class Bot:
    def __init__(self, word="echo"):
        self.word = word
    def __call__(self, utterance):
        raise AssertionError("a bot is not a function")
    open = 3

class OldBot(Bot):
    def __init__(self):
        self.old = True

class Talk:
    def __init__(self, bot, case):
        self.bot, self.turns = bot, [entry.message for entry in case.history]
    async def ask(self, utterance):
        self.turns.append(utterance)
        return {"outcome": f"{self.bot.word} {utterance} {len(self.turns)}", "topic": "Bots"}

BOT = AgentKind(classes=frozenset({"Bot"}), open=Talk, needs=("word",), requires="acme>=2")
SINGLE = AgentKind(classes=frozenset({"Bot"}), open=Talk, factory="def make(): return Bot()")
NOTHING = 3

def parts(bot):
    return inventory_of([Member("desk", (Tool("say", "Says  it"),), is_reached=False), Member("echo", ())])

async def parts_later(bot):
    return parts(bot)

async def no_parts(bot):
    raise RuntimeError("the server is down")

LISTED = AgentKind(classes=frozenset({"Bot"}), open=Talk, parts=parts)
LISTED_LATER = AgentKind(classes=frozenset({"Bot"}), open=Talk, parts=parts_later)
LISTED_BY_FACTORY = AgentKind(classes=frozenset({"Bot"}), open=Talk, factory="def make(): return Bot()", parts=parts)
BROKEN = AgentKind(classes=frozenset({"Bot"}), open=Talk, parts=no_parts)
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs the package acme, whose classes have a kind that it declares itself."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)

    def add(kind: str = "BOT") -> None:
        install(tmp_path, "agents", f"acme = acme:{kind}", BOTS)
        evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise

    yield add
    monkeypatch.undo()
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise


def bot(name: str = "Bot") -> object:
    import acme  # type: ignore[import-not-found]

    made: object = getattr(acme, name)()
    return made


def bound(agent: object, root: Path) -> Subject:
    return subject_of(agent, root=root)


def test_a_package_adds_a_kind_of_agents_by_an_entry_point(acme: Callable[[], None], tmp_path: Path) -> None:
    acme()
    answers = talk(bound(bot(), tmp_path), "a", "b")
    assert [(answer.outcome, answer.topic) for answer in answers] == [("echo a 3", "Bots"), ("echo b 4", "Bots")]


def test_subclasses_and_classes_of_a_kind_are_agents(acme: Callable[[], None], tmp_path: Path) -> None:
    acme()
    defined = type("Own", (type(bot()),), {})
    for agent in (defined(), defined):
        assert talk(bound(agent, tmp_path), "a")[0].outcome == "echo a 3"


def test_evaluate_asks_an_object_of_a_kind_in_cases_of_their_own(acme: Callable[[], None]) -> None:
    acme()
    rows = [{"turns": [{"input": "a"}, {"input": "b", "contains": "b 2", "topic": "Bots"}]}] * 5
    assert evalmeta.evaluate(rows, bot()).summary.passed == 5


def test_an_object_of_an_old_version_is_refused_before_the_first_question(
    acme: Callable[[], None], tmp_path: Path
) -> None:
    acme()
    with pytest.raises(SettingsError, match=r"the subject is acme.OldBot without word") as caught:
        bound(bot("OldBot"), tmp_path)
    assert caught.value.actions == ("Install acme>=2.",)


def test_an_object_with_one_conversation_is_refused_with_the_function_to_write(
    acme: Callable[[str], None], tmp_path: Path
) -> None:
    acme("SINGLE")
    with pytest.raises(SettingsError, match="holds one conversation") as caught:
        bound(bot(), tmp_path)
    assert "def make(): return Bot()" in caught.value.actions[0]
    assert talk(bound(lambda: bot(), tmp_path), "a")[0].outcome == "echo a 3"  # noqa: PLW0108 - bot has a parameter
    assert talk(bound(type(bot()), tmp_path), "a")[0].outcome == "echo a 3"


def test_an_entry_point_that_is_not_a_kind_is_an_error(acme: Callable[[str], None], tmp_path: Path) -> None:
    acme("NOTHING")
    with pytest.raises(SettingsError, match=r"'acme' of the entry points evalmeta.agents is int, not a kind"):
        bound(bot(), tmp_path)


def listed(subject: Subject) -> list[tuple[str, str, str]]:
    assert isinstance(subject, ListedSubject)
    return [(part.kind, part.topic, part.name) for part in asyncio.run(subject.inventory()).parts]


@pytest.mark.parametrize("kind", ["LISTED", "LISTED_LATER", "LISTED_BY_FACTORY"])
def test_a_kind_says_the_topics_and_tools_of_its_agents(acme: Callable[[str], None], tmp_path: Path, kind: str) -> None:
    acme(kind)
    agents = [lambda: bot(), *([] if "FACTORY" in kind else [bot()])]  # noqa: PLW0108 - bot has a parameter
    for agent in agents:
        assert listed(bound(agent, tmp_path)) == [("topic", "", "echo"), ("action", "desk", "say")]


def test_an_agent_whose_kind_lists_nothing_is_an_error(acme: Callable[[], None], tmp_path: Path) -> None:
    acme()
    with pytest.raises(NotFound, match=r"acme\.Bot does not list its tools"):
        listed(bound(bot(), tmp_path))


def test_what_reading_the_tools_raises_is_an_error_of_the_agent(acme: Callable[[str], None], tmp_path: Path) -> None:
    acme("BROKEN")
    with pytest.raises(SubjectError, match="RuntimeError: the server is down"):
        listed(bound(bot(), tmp_path))


def test_a_function_does_not_list_tools(tmp_path: Path) -> None:
    assert not isinstance(bound(lambda utterance: utterance, tmp_path), ListedSubject)


def test_a_factory_makes_one_agent_for_each_case(acme: Callable[[], None], tmp_path: Path) -> None:
    acme()
    made = []

    def make() -> object:
        made.append(bot())
        return made[-1]

    subject = bound(make, tmp_path)

    async def go() -> list[object]:
        sessions = [await subject.open(CASE) for _ in range(3)]
        return [await session.ask("a") for session in sessions]

    assert len(asyncio.run(go())) == 3
    assert len(made) == len(set(map(id, made))) == 3


def test_a_coroutine_function_and_a_function_with_defaults_make_agents(
    acme: Callable[[], None], tmp_path: Path
) -> None:
    acme()
    kind = type(bot())

    async def make() -> object:
        return bot()

    def with_word(word: str = "twice") -> object:
        return kind(word)

    with_word.__annotations__["return"] = kind
    assert talk(bound(make, tmp_path), "a")[0].outcome == "echo a 3"
    assert talk(bound(with_word, tmp_path), "a")[0].outcome == "twice a 3"


class Opener:
    def open(self) -> Opener:
        return self

    def ask(self, utterance: str) -> str:
        return utterance.upper()


def test_a_factory_may_return_an_object_with_the_method_open(tmp_path: Path) -> None:
    assert talk(bound(lambda: Opener(), tmp_path), "a")[0].outcome == "A"  # noqa: PLW0108 - a class is no factory


def test_a_function_without_parameters_that_returns_no_agent_is_refused_before_the_first_question(
    tmp_path: Path,
) -> None:
    with pytest.raises(SettingsError, match="takes no utterance, so it must return an agent; it returned str"):
        bound(lambda: "On its way.", tmp_path)


def test_a_factory_that_raises_is_refused_with_its_line(tmp_path: Path) -> None:
    def make() -> object:
        raise ValueError("no key")

    with pytest.raises(SettingsError, match=r"test_kinds.py:\d+: the subject cannot make an agent: ValueError: no key"):
        bound(make, tmp_path)


def test_a_coroutine_function_that_returns_no_agent_is_an_error_of_its_case(tmp_path: Path) -> None:
    async def make() -> object:
        return 3

    with pytest.raises((SettingsError, SubjectError), match="it returned int"):
        talk(bound(make, tmp_path), "a")


@pytest.mark.parametrize("package", ENTRY_POINTS["agents"])
def test_every_kind_says_what_it_recognises_and_which_version_it_needs(package: str) -> None:
    kind = evalmeta.plugins.load_plugin("agents", package)
    assert isinstance(kind, AgentKind)
    assert kind.classes
    assert f"| {kind.requires.replace('>=', ' ')}" in PAGE


@pytest.mark.parametrize("defined", [int, object, Opener, type(len), SettingsError])
def test_other_classes_have_no_kind(defined: type) -> None:
    assert kind_of(defined) is None
