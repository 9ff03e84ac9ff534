"""Errors that nobody catches say what to do next."""

from __future__ import annotations

import pickle
from traceback import format_exception

from evalmeta.errors import SubjectError, UsageError
from evalmeta.model.problem import Location, Problem, Severity


def test_a_traceback_shows_what_to_do_next() -> None:
    error = UsageError("there is no file", actions=["Create it: touch x", "Or name another."])
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - bytes of this test
    for shown in (error, copied):
        lines = "".join(format_exception(shown)).splitlines()
        assert lines[-2:] == ["Try this: Create it: touch x", "Try this: Or name another."]
        assert lines[-3].endswith("UsageError: there is no file")


def test_a_traceback_forgets_actions_that_were_replaced() -> None:
    error = SubjectError("refused", actions=["Use the key abc"])
    error.actions = ("Use the key [secret]",)
    assert "abc" not in "".join(format_exception(error))


def test_a_hint_of_a_problem_is_not_shown_twice() -> None:
    problem = Problem("code", Severity.ERROR, Location("a.yaml", 1, 1), "bad", "Write it.")
    error = UsageError("a.yaml: bad. Write it.", problems=[problem], actions=["Write it."])
    assert "".join(format_exception(error)).count("Write it.") == 1
