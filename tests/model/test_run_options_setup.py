"""What runs record of their agents and raters."""

from __future__ import annotations

import pytest

from evalmeta.model.run_options import RunOptions, Setup
from evalmeta.protocol.runs import read_options, write_options

DESK = Setup("python desk:answer", "1111", "rules", "", "0.1.0")


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (DESK, ""),
        (DESK._replace(rater="llm m", evalmeta="0.2.0"), ""),
        (DESK._replace(agent_version=""), ""),
        (Setup(), ""),
        (DESK._replace(agent_version="2222"), "the source of python desk:answer has changed since it answered"),
        (Setup("http POST https://a"), "python desk:answer answered before, and http POST https://a would answer now"),
    ],
)
def test_another_agent_is_another_target_or_another_source(now: Setup, why: str) -> None:
    assert DESK.other_agent(now) == why
    assert bool(now.other_agent(DESK)) == bool(why)


def test_a_run_of_two_agents_names_both() -> None:
    assert DESK.joined(Setup("http POST https://a")).agent == "python desk:answer and http POST https://a"
    assert DESK.joined(DESK._replace(agent_version="2222"))[:2] == ("python desk:answer", "1111 and 2222")


def test_options_keep_what_a_run_records_but_do_not_differ_by_it() -> None:
    options = RunOptions(setup=DESK)
    assert read_options(write_options(options)).setup == DESK
    assert options == RunOptions()
    assert "setup" not in write_options(RunOptions())
