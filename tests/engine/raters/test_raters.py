from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import evalmeta.plugins
from evalmeta.engine.interfaces import Rating, Rubric
from evalmeta.engine.raters import bind_rater, offline_rater
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.rater import ModelRater
from evalmeta.errors import SettingsError
from evalmeta.model.run import Verdict
from evalmeta.model.settings import PluginRater, RulesRater
from evalmeta.rules_rater.rater import Rules
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Adding = Callable[[str], None]

GENEROUS = """
from evalmeta.engine.interfaces import Rating
from evalmeta.model.run import Verdict

class Generous:
    def __init__(self, name):
        self.name = name
    def __call__(self, rubric):
        return Rating(5.0, Verdict.PASS, "as always", self.name)
    async def close(self):
        pass

def make(settings, *, root):
    return Generous(settings.model_extra["called"])
"""


@pytest.fixture
def adding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adding]:
    """Installs a package with a rater `acme`, made of a source."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)

    def add(source: str) -> None:
        install(tmp_path, "raters", "acme = acme:make", source)
        evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise

    yield add
    monkeypatch.undo()
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise


def test_adapters_have_their_raters(tmp_path: Path) -> None:
    assert isinstance(bind_rater(RulesRater(adapter="rules"), root=tmp_path), Rules)
    settings = LlmRater(adapter="llm", model="judge-1", url="http://127.0.0.1:9/v1")
    rater = bind_rater(settings, root=tmp_path)
    assert isinstance(rater, ModelRater)
    asyncio.run(rater.close())


def test_without_the_wing_of_the_offline_rater_everything_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "evalmeta.rules_rater.rater", None)  # as if the module did not exist
    for rater in (offline_rater(), bind_rater(RulesRater(adapter="rules"), root=tmp_path)):
        rating = rater(Rubric("bot_response_rating", "Hello?", "Hello.", expected="Hello."))
        assert isinstance(rating, Rating)
        assert (rating.score, rating.verdict, rating.rater) == (None, Verdict.UNDECIDED, "rules")
        assert rating.explanation.startswith(
            "the offline rater is not installed: 'rules' of the entry points evalmeta.raters cannot"
        )
        asyncio.run(rater.close())


def test_packages_add_raters(adding: Adding, tmp_path: Path) -> None:
    adding(GENEROUS)
    rater = bind_rater(PluginRater(adapter="acme", called="acme 1"), root=tmp_path)
    assert rater(Rubric("coherence", "Hello?", "Hello.")) == Rating(5.0, Verdict.PASS, "as always", "acme 1")


def test_an_adapter_that_nothing_adds_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there are no raters called 'lllm'") as caught:
        bind_rater(PluginRater(adapter="lllm"), root=tmp_path)
    assert "Did you mean 'llm'? Known: llm, rules." in caught.value.actions[0]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("make = 1", "is int, which cannot be called"),
        ("def make(settings, *, root): raise KeyError('model')", "failed: KeyError: 'model'"),
        ("def make(settings, *, root): return 1", "returned int, which cannot be called and closed"),
        ("def make(settings, *, root): return len", "returned builtin_function_or_method, which cannot be called and"),
    ],
)
def test_a_package_without_a_rater_is_named(adding: Adding, tmp_path: Path, source: str, words: str) -> None:
    adding(source)
    with pytest.raises(SettingsError, match=f"'acme' of the entry points evalmeta.raters {words}"):
        bind_rater(PluginRater(adapter="acme"), root=tmp_path)


def test_a_settings_error_of_a_package_is_shown(adding: Adding, tmp_path: Path) -> None:
    adding("from evalmeta.errors import SettingsError\ndef make(settings, *, root): raise SettingsError('no dog')")
    with pytest.raises(SettingsError, match=r"^no dog$"):
        bind_rater(PluginRater(adapter="acme"), root=tmp_path)


# In a program of its own: other tests load the rules.
LOADING = """
import sys
from evalmeta.engine.raters import load_rater, offline_rater
from evalmeta.model.evaluation import Case, Evaluation, Expectation, Turn
from evalmeta.model.settings import RulesRater

rater = offline_rater(RulesRater(adapter="rules"))
load_rater(rater, Evaluation("n", "s", (Case(1, (Turn("Where?", (Expectation(sys.argv[1], "Paris"),)),)),)))
print("evalmeta.rules_rater.decisions" in sys.modules)
"""


@pytest.mark.parametrize(("name", "is_loaded"), [("topic_sequence_match", False), ("output_validation", True)])
def test_the_rules_are_loaded_before_the_run_only_if_an_expectation_needs_them(name: str, *, is_loaded: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING, name], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.strip() == str(is_loaded)
