"""A function that is judged by its pass rate, with parameters, iterations, fixtures and a class."""

import pytest
from desk import answer

import evalmeta


@pytest.fixture
def ask():
    return lambda question: answer(question)["topic"]


@evalmeta.evaluation(min_pass_rate=0.8, iterations=3)
@pytest.mark.parametrize("question", ["Where is order 7?", "When do you open?", "Do you open on Sundays?"])
def test_topic(ask, question):
    assert ask(question) == ("Orders" if "order" in question else "Hours")


class TestOrders:
    @evalmeta.evaluation(min_pass_rate=0.5, runs=4)
    def test_an_order_is_found(self, evalmeta_iteration):
        if evalmeta_iteration == 2:
            pytest.fail("the second run of four may fail")
        assert "Monday" in answer("Where is order 7?")["outcome"]


@evalmeta.evaluation(min_pass_rate=1.0, errors="fail")
async def test_answers_of_coroutines():
    assert (await asked("When do you open?"))["outcome"].startswith("We open")


async def asked(question):
    return answer(question)
