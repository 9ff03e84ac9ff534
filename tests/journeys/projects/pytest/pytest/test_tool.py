"""Parameters with marks, and tests of the same file that are no evaluation."""

import pytest
from desk import answer, run

import evalmeta
from evalmeta.ballerina import FunctionCall, assert_tool_call, get_all_tool_calls


@pytest.mark.parametrize("question", ["When do you open?", pytest.param("Hm?", marks=pytest.mark.skip(reason="later"))])
@evalmeta.evaluation(min_pass_rate=1.0)
def test_no_tool_is_called(question):
    assert answer(question)["actions"] == []
    assert answer(question)["outcome"] != "I do not know."


def test_the_first_call():
    first, *_ = get_all_tool_calls(run("Send an email to Raj and add a calendar invite."))
    assert_tool_call(first, FunctionCall("sendEmail", {"to": "Raj"}))
