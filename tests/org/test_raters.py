from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import judging, model_serving
from evalmeta import limits, plugins
from evalmeta.engine.interfaces import Rating, Rubric
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.errors import SettingsError
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions, Scoring
from evalmeta.model.settings import PluginRater, Settings
from evalmeta.org.run_worker import RunResources
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.org.organization import Organization

UNCLOSABLE = """
import asyncio

class Acme:
    def __init__(self, settings, *, root):
        pass
    def __call__(self, rubric):
        return "fine"
    async def close(self):
        CLOSE
"""
JUDGED = RunOptions(scoring=Scoring(rater="judge"))
ACME = Settings(raters={"judge": PluginRater(adapter="acme")})
RUBRIC = Rubric("coherence", "Where is it?", "It is on its way.")


def test_ratings_of_a_model_are_reused_in_the_next_run(org: Organization) -> None:
    async def rate(org: Organization) -> Rating:
        async with RunResources() as resources:
            return await resources.rater(org, JUDGED)(RUBRIC)

    with model_serving(judging(4)) as server:
        judge = LlmRater(adapter="llm", model="judge-1", url=server.url)
        ratings = [
            asyncio.run(rate(replace(org, settings=lambda: Settings(raters={"judge": judge})))) for _ in range(2)
        ]

    assert ratings == [Rating(4, Verdict.PASS, "It deserves 4.", "llm:judge-1 (prompt v2)")] * 2
    assert len(server.bodies) == 1


def test_suspect_cases_that_are_asked_again_are_judged_anew(org: Organization) -> None:
    async def rate(org: Organization) -> None:
        async with RunResources() as resources:
            for options in (JUDGED, replace(JUDGED, confirms="4KB000000000001AAA")):
                for _ in range(3):
                    await resources.rater(org, options)(RUBRIC)

    with model_serving(judging(4)) as server:
        judge = LlmRater(adapter="llm", model="judge-1", url=server.url)
        asyncio.run(rate(replace(org, settings=lambda: Settings(raters={"judge": judge}))))
        assert len(server.bodies) == 1 + 3


def test_a_rater_that_is_not_bound_is_named(org: Organization) -> None:
    async def bind() -> None:
        async with RunResources() as resources:
            resources.rater(org, JUDGED)

    with pytest.raises(SettingsError, match="the rater 'judge' is not configured"):
        asyncio.run(bind())


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Install a package with a rater `acme` and this `close`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)

    def add(close: str) -> None:
        install(tmp_path, "raters", "acme = acme:Acme", UNCLOSABLE.replace("CLOSE", close))
        plugins._found.cache_clear()  # noqa: SLF001 - what is installed changes only in tests

    yield add
    monkeypatch.undo()
    plugins._found.cache_clear()  # noqa: SLF001 - likewise


@pytest.mark.parametrize("close", ["raise OSError('no line')", "await asyncio.Event().wait()"])
def test_a_rater_that_cannot_be_closed_spoils_nothing(
    org: Organization, added: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, close: str
) -> None:
    async def rate() -> str:
        async with RunResources() as resources:
            return resources.rater(replace(org, settings=lambda: ACME), JUDGED)(RUBRIC)

    added(close)
    monkeypatch.setattr(limits, "CLOSE_SECONDS", 0.01)
    assert asyncio.run(rate()) == "fine"


def test_runs_of_one_process_share_a_rater_as_long_as_its_settings_are_the_same(org: Organization) -> None:
    async def bind() -> None:
        settings = [
            Settings(raters={"judge": LlmRater(adapter="llm", model="judge-1", url="http://x", samples=samples)})
            for samples in (1, 1, 2)
        ]
        async with RunResources() as resources:
            one, same, other = (
                resources.rater(replace(org, settings=lambda setting=setting: setting), JUDGED) for setting in settings
            )
            assert one is same
            assert one is not other

    asyncio.run(bind())
