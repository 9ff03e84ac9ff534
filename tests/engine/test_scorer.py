from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.builders import TOPIC, case, criterion, exchange
from evalmeta.engine.interfaces import Exchange
from evalmeta.engine.scorers import SCORERS, make_scorers, score
from evalmeta.errors import SettingsError
from evalmeta.model.definition import Expectation, HistoryMessage
from evalmeta.model.expectations import expectation_kind, known_names, scorer_names
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import EarlierTurn, TestResult, Verdict
from evalmeta.model.run_options import Scoring
from evalmeta.plugins import _found
from evalmeta.rules_rater.rater import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EXCHANGE = exchange(GeneratedData("Shipped.", "Orders"))


def broken_scorer(_expectation: Expectation, _exchange: Exchange) -> TestResult:
    raise ValueError("no such thing")


def nan_scorer(expectation: Expectation, _exchange: Exchange) -> TestResult:
    return TestResult(expectation.name, Verdict.PASS, score=float("nan"))


async def slow_scorer(expectation: Expectation, _exchange: Exchange) -> TestResult:
    await asyncio.sleep(0)
    return TestResult(expectation.name, Verdict.PASS)


async def slow_broken_scorer(_expectation: Expectation, _exchange: Exchange) -> TestResult:
    raise ValueError("no such thing")


def test_there_is_a_scorer_for_every_expectation() -> None:
    expected = {expectation_kind(name).name for name in known_names()}
    assert {*expected, *scorer_names("AGENT"), *scorer_names("PROMPT")} <= set(SCORERS)


@pytest.mark.parametrize("name", known_names())
def test_every_name_is_judged_and_kept_as_it_is_spelt(name: str) -> None:
    result = score(Expectation(name, label="L"), EXCHANGE)
    assert isinstance(result, TestResult)
    assert (result.name, result.label) == (name, "L")
    assert result.explanation


def test_a_scorer_that_breaks_gives_an_error_with_the_reason() -> None:
    result = score(TOPIC, EXCHANGE, scorers={TOPIC.name: broken_scorer})
    assert result.verdict is Verdict.ERROR
    assert result.error == "the scorer failed: ValueError: no such thing"


def test_a_score_that_is_no_number_is_an_error_and_never_a_pass() -> None:
    assert score(TOPIC, EXCHANGE, scorers={TOPIC.name: nan_scorer}).verdict is Verdict.ERROR


def test_a_scorer_may_wait() -> None:
    async def judge() -> TestResult:
        return await score(TOPIC, EXCHANGE, scorers={TOPIC.name: slow_scorer})

    assert asyncio.run(judge()).verdict is Verdict.PASS


def test_a_scorer_that_breaks_while_it_waits_gives_an_error() -> None:
    async def judge() -> TestResult:
        return await score(TOPIC, EXCHANGE, scorers={TOPIC.name: slow_broken_scorer})

    assert asyncio.run(judge()).error == "the scorer failed: ValueError: no such thing"


def test_an_unknown_expectation_is_an_error_that_names_the_nearest() -> None:
    result = score(Expectation("topic_sequence_mach"), EXCHANGE)
    assert result.verdict is Verdict.ERROR
    assert "topic_sequence_match" in result.explanation


def test_a_scorer_of_the_orgs_own_is_undecided_and_named() -> None:
    result = score(Expectation("Courtesy", scorer_type="Custom"), EXCHANGE)
    assert (result.name, result.verdict) == ("Courtesy", Verdict.UNDECIDED)
    assert result.explanation == "the custom scorer 'Courtesy' cannot be found: the run has no project and no org"


@pytest.mark.parametrize(
    ("scoring", "expectation", "verdict"),
    [
        (Scoring(), Expectation("actions_assertion", "['A']"), Verdict.FAILURE),
        (Scoring(actions="superset"), Expectation("actions_assertion", "['A']"), Verdict.PASS),
        (Scoring(), Expectation("topic_assertion", "Order"), Verdict.FAILURE),
        (Scoring(topics="contains"), Expectation("topic_assertion", "Order"), Verdict.PASS),
        (
            Scoring(),
            criterion("string_comparison", "equals", "$.generatedData.actionsSequence[*]", "B"),
            Verdict.FAILURE,
        ),
        (
            Scoring(matches="any"),
            criterion("string_comparison", "equals", "$.generatedData.actionsSequence[*]", "B"),
            Verdict.PASS,
        ),
        (Scoring(), Expectation("output_latency_milliseconds", "100"), Verdict.FAILURE),
        (Scoring("testing-center"), Expectation("output_latency_milliseconds", "100"), Verdict.UNDECIDED),
        (Scoring("testing-center"), Expectation("action_sequence_match", "[]"), Verdict.PASS),
        (Scoring("testing-center", "exact"), Expectation("action_sequence_match", "[]"), Verdict.FAILURE),
        (Scoring("testing-center"), Expectation("bot_response_rating"), Verdict.UNDECIDED),
    ],
)
def test_results_are_judged_as_was_chosen(scoring: Scoring, expectation: Expectation, verdict: Verdict) -> None:
    made = exchange(GeneratedData("Shipped today by us.", "Orders", (Action("A"), Action("B")), 250.0))
    result = score(expectation, made, scorers=make_scorers(scoring, Rules()))
    assert isinstance(result, TestResult)
    assert result.verdict is verdict


COURTESY = """\
from evalmeta.engine.scorers.results import judged

BROKEN = 3

def courtesy(expectation, exchange):
    return judged(expectation, passed="please" in exchange.generated.outcome, expected="", actual="", explanation="-")

def wrong(expectation, exchange):
    return True
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs a package that adds scorers under names."""

    def install(**targets: str) -> None:
        (tmp_path / "courtesy.py").write_text(COURTESY)
        (tmp_path / "courtesy-1.dist-info").mkdir()
        (tmp_path / "courtesy-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: courtesy\nVersion: 1\n")
        rows = "".join(f"{name} = courtesy:{target}\n" for name, target in targets.items())
        (tmp_path / "courtesy-1.dist-info/entry_points.txt").write_text(f"[evalmeta.scorers]\n{rows}")
        monkeypatch.syspath_prepend(tmp_path)
        _found.cache_clear()

    yield install
    _found.cache_clear()


def test_a_package_adds_a_scorer_that_judges_the_orgs_own(install: Callable[..., None]) -> None:
    install(Courtesy="courtesy")
    scorers = make_scorers(Scoring(), Rules())
    results = [score(Expectation("Courtesy", scorer_type=kind), EXCHANGE, scorers=scorers) for kind in ("Custom", None)]
    assert [result.verdict for result in results] == [Verdict.FAILURE, Verdict.FAILURE]


def test_a_package_may_replace_a_scorer_under_any_of_its_names(install: Callable[..., None]) -> None:
    install(topic_assertion="courtesy")
    assert score(TOPIC, EXCHANGE, scorers=make_scorers(Scoring(), Rules())).verdict is Verdict.FAILURE


def test_a_scorer_of_the_orgs_own_is_not_judged_by_a_standard_one_of_its_name() -> None:
    custom = Expectation("topic_sequence_match", "Orders", scorer_type="Custom")
    assert score(custom, EXCHANGE).verdict is Verdict.UNDECIDED


def test_a_scorer_that_gives_anything_else_gives_an_error(install: Callable[..., None]) -> None:
    install(Courtesy="wrong")
    result = score(Expectation("Courtesy"), EXCHANGE, scorers=make_scorers(Scoring(), Rules()))
    assert result.error == "the scorer failed: it returned bool, which is not a TestResult"


@pytest.mark.parametrize(("target", "complaint"), [("BROKEN", "cannot be called"), ("nothing", "cannot be imported")])
def test_an_invalid_scorer_is_refused_by_name(install: Callable[..., None], target: str, complaint: str) -> None:
    install(Courtesy=target)
    with pytest.raises(SettingsError, match=f"'Courtesy' of the entry points .*{complaint}"):
        make_scorers(Scoring(), Rules())


def test_the_history_of_a_turn_has_the_turns_before_it() -> None:
    asked = replace(case("And now?"), history=(HistoryMessage("user", "Hello"), HistoryMessage("agent", "Hi")))
    turn = Exchange(asked, "And now?", GeneratedData("x"), (EarlierTurn("Where?", GeneratedData("Here.", "Orders")),))
    assert [(each.role, each.message, each.topic) for each in turn.history] == [
        ("user", "Hello", None),
        ("agent", "Hi", None),
        ("user", "Where?", None),
        ("agent", "Here.", "Orders"),
    ]
