from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import failing, judging, model_serving, ruled, serving
from engine.raters.llm.test_rater import RUBRIC, Kept, rate, rate_all
from evalmeta import limits
from evalmeta.engine.interfaces import Rubric
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.rater import sample_of
from evalmeta.errors import RaterError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.raters.llm.model_server import Body

MODELS = ["judge-1", "judge-2", "judge-3"]
FACTS = Rubric("response/llm_judged/correctness/rating", "When?", "On Monday.", facts=("It comes.", "On Monday."))


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)


def by_model(**replies: bytes) -> Callable[[bytes], bytes]:
    """Answers for the models `judge_1` and so on."""

    def answer(request: bytes) -> bytes:
        return replies[str(body_of(request)["model"]).replace("-", "_")]

    return answer


def body_of(request: bytes) -> Body:
    body: Body = json.loads(request.partition(b"\r\n\r\n")[2])
    return body


def asked(body: Body) -> tuple[object, ...]:
    """Returns what a request says, without its nonce."""
    system, user = (str(message["content"]) for message in body["messages"])
    return body["model"], body.get("temperature"), system.partition("The nonce of this request")[0], user


def test_one_sample_is_the_default() -> None:
    with model_serving(judging(4)) as server:
        assert rate(server).explanation == "It deserves 4."
    assert len(server.bodies) == 1


def test_no_two_samples_are_the_same_request_up_to_their_temperature() -> None:
    with model_serving(judging(5), judging(0), judging(5), judging(0), judging(5)) as server:
        rate(server, samples=5)
    bodies = sorted(server.bodies, key=lambda body: float(str(body["temperature"])))

    assert [body["temperature"] for body in bodies] == [0, 0, 0.7, 0.7, 0.7]
    assert len({asked(body) for body in bodies[:2]}) == 2
    assert len({asked(body) for body in bodies[2:4]}) == 2


def test_the_second_sample_has_criteria_and_data_in_reverse_order() -> None:
    with model_serving(judging(5)) as server:
        rate(server, samples=3)
    plain, reverse = sorted(server.bodies, key=lambda body: "reverse order" in str(body))
    data = [json.loads(str(body["messages"][1]["content"])) for body in (plain, reverse)]

    assert "in reverse order" in str(reverse["messages"][0])
    assert list(data[1]) == [*reversed(data[0])]
    assert data[0] == data[1]


def test_the_second_sample_has_facts_in_reverse_order() -> None:
    with model_serving(ruled("yes", "yes", "yes")) as server:
        rate(server, FACTS, samples=3)
    orders = {tuple(json.loads(str(body["messages"][1]["content"]))["facts"]) for body in server.bodies}
    assert orders == {FACTS.facts, FACTS.facts[::-1]}


ANSWERS = [replace(RUBRIC, actual=f"It is on its way, with number {number}.") for number in range(200)]


def orders(count: int, rubric: Rubric, *, models: int = 1) -> list[bool]:
    settings = LlmRater(adapter="llm", models=MODELS[:models], samples=count)
    return [sample_of(number, settings, rubric).is_reversed for number in range(1, count + 1)]


def test_an_order_decides_ties_only_for_half_of_the_answers() -> None:
    assert all(orders(3, answer)[:2] == [False, True] for answer in ANSWERS)
    assert 80 <= sum(orders(3, answer)[2] for answer in ANSWERS) <= 120
    assert 80 <= sum(orders(5, answer)[4] for answer in ANSWERS) <= 120


@pytest.mark.parametrize(("count", "models"), [(2, 1), (4, 1), (6, 1), (2, 2), (4, 2), (6, 3)])
def test_an_even_number_of_samples_has_both_orders_equally_often(count: int, models: int) -> None:
    assert {sum(orders(count, answer, models=models)) for answer in ANSWERS} == {count // 2}


def test_models_that_vote_do_not_share_the_bias_of_one_order() -> None:
    assert all(orders(3, answer, models=3)[:2] == [False, True] for answer in ANSWERS)
    assert 80 <= sum(orders(3, answer, models=3)[2] for answer in ANSWERS) <= 120


def test_the_same_answer_has_the_same_samples_again() -> None:
    assert orders(5, ANSWERS[0]) == orders(5, replace(ANSWERS[0]))


def test_a_judge_that_only_passes_one_order_does_not_pass_every_answer() -> None:
    def answer(request: bytes) -> bytes:
        return judging(0 if "in reverse order" in str(body_of(request)["messages"]) else 5)

    with serving(answer) as server:
        verdicts = Counter(rating.verdict for rating in rate_all(server, ANSWERS[:40], samples=3))
    assert min(verdicts[Verdict.PASS], verdicts[Verdict.FAILURE]) >= 10


def test_a_temperature_that_is_left_to_the_model_is_never_sent() -> None:
    with model_serving(judging(5), judging(0)) as server:
        rate(server, samples=5, temperature="default")
    assert not any("temperature" in body for body in server.bodies)


def test_a_higher_temperature_is_kept() -> None:
    with model_serving(judging(5)) as server:
        rate(server, samples=5, temperature=1.2)
    assert {body["temperature"] for body in server.bodies} == {1.2}


def test_samples_do_not_share_cached_replies() -> None:
    kept = Kept()
    with model_serving(judging(4)) as server:
        rate(server, samples=5, kept=kept)
        rate(server, samples=5, kept=kept)
    assert (len(server.bodies), len(kept)) == (3, 3)


def test_more_samples_reuse_the_cached_ones() -> None:
    kept = Kept()
    with model_serving(judging(4)) as server:
        rate(server, kept=kept)
        rate(server, samples=3, kept=kept)
    assert len(server.bodies) == 2


# Several models.


def test_models_vote() -> None:
    replies = by_model(judge_1=judging(5), judge_2=judging(0), judge_3=judging(4))
    with serving(replies) as server:
        rating = rate(server, model="", models=MODELS)

    assert (rating.verdict, rating.score) == (Verdict.PASS, 4.5)
    assert rating.rater == "llm:judge-1+judge-2+judge-3 (prompt v2)"
    assert rating.explanation.startswith("2 of 3 samples: It deserves ")
    assert rating.explanation.endswith(" (another verdict: judge-2)")
    assert sorted(str(body["model"]) for body in server.bodies) == MODELS


def test_the_third_model_is_only_asked_if_two_disagree() -> None:
    with model_serving(judging(5)) as server:
        rate(server, model="", models=MODELS)
    assert sorted(str(body["model"]) for body in server.bodies) == MODELS[:2]


def test_models_take_turns_before_samples_are_varied() -> None:
    replies = by_model(judge_1=judging(5), judge_2=judging(0))
    with serving(replies) as server:
        rating = rate(server, model="", models=MODELS[:2], samples=4)
    reversed_data = [str(body["messages"]).count("in reverse order") for body in server.bodies]

    assert rating.verdict is Verdict.FAILURE
    assert sorted(str(body["model"]) for body in server.bodies) == ["judge-1", "judge-1", "judge-2", "judge-2"]
    assert sum(reversed_data) == 2


def test_a_model_that_fails_does_not_stop_the_vote_of_the_others() -> None:
    replies = by_model(judge_1=judging(4), judge_2=failing(401, "no access"), judge_3=judging(4))
    with serving(replies) as server:
        rating = rate(server, model="", models=MODELS)
    assert (rating.verdict, rating.explanation) == (
        Verdict.PASS,
        "2 of 3 samples (1 could not be read): It deserves 4.",
    )


def test_a_model_that_fails_and_could_have_decided_is_an_error() -> None:
    replies = by_model(judge_1=judging(4), judge_2=failing(401, "no access"), judge_3=judging(0))
    with serving(replies) as server, pytest.raises(RaterError, match=r"llm:judge-2: .*status 401: no access"):
        rate(server, model="", models=MODELS)


def test_a_cached_vote_names_its_models_too() -> None:
    kept = Kept()
    replies = by_model(judge_1=judging(5), judge_2=judging(0), judge_3=judging(5))
    with serving(replies) as server:
        first, second = (rate(server, model="", models=MODELS, kept=kept) for _ in range(2))
    assert first == second
    assert len(server.bodies) == 3


def test_a_rubric_of_pooled_samples_is_varied_too() -> None:
    with model_serving(ruled("yes")) as server:
        rate(server, replace(RUBRIC, metric="safety_v1", samples=5, is_pooled=True))
    assert len({asked(body)[1:] for body in server.bodies}) == 4
