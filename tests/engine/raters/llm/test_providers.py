from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import ModelServer, failing, half, judging, model_serving, replying, saying
from engine.raters.llm.test_rater import KEY, RETRIED, RUBRIC, Kept
from evalmeta import limits
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.rater import bind_llm
from evalmeta.errors import RaterError, SettingsError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Rating


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def rate(server: ModelServer, monkeypatch: pytest.MonkeyPatch, **settings: object) -> Rating:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    table = {"adapter": "llm", "model": "openai-chat:gpt-4.1-mini", "samples": 1, **settings}

    async def go() -> Rating:
        rater = bind_llm(LlmRater.model_validate(table), root=Path(), cache=Kept())
        try:
            rated = rater(RUBRIC)
            assert rated is not None
            return await rated
        finally:
            await rater.close()

    return asyncio.run(go())


def test_a_model_is_asked_by_the_name_that_pydantic_ai_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_serving(judging(4)) as server:
        rating = rate(server, monkeypatch)
    [body] = server.bodies

    assert (rating.score, rating.verdict) == (4, Verdict.PASS)
    assert rating.rater == "llm:openai-chat:gpt-4.1-mini (prompt v2)"
    assert (body["model"], body["temperature"], server.forms) == ("gpt-4.1-mini", 0, ["json_schema"])
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_the_temperature_can_be_left_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_serving(judging(4)) as server:
        rate(server, monkeypatch, temperature="default")
    assert "temperature" not in server.bodies[0]


def test_a_model_without_schema_support_is_asked_for_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_serving(judging()) as server, pytest.raises(RaterError, match="not a readable judgement"):
        rate(server, monkeypatch, model="test")


def test_a_server_that_is_not_there_is_an_error_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_serving(judging()) as server:
        pass
    with pytest.raises(RaterError, match=r"does not reply: .* \(tried 4 times\)"):
        rate(server, monkeypatch)


def test_the_key_can_stand_in_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "another-key-0815-0815")
    with model_serving(judging(4)) as server:
        rate(server, monkeypatch, api_key_env="JUDGE_KEY")
    assert b"another-key-0815-0815" in server.server.requests[0]


@pytest.mark.parametrize(
    "trouble",
    [*(failing(status, "later", "Retry-After: 0") for status in RETRIED), half(judging())],
    ids=[*map(str, RETRIED), "half a body"],
)
def test_transient_failures_are_retried(trouble: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with model_serving(trouble, judging(4)) as server:
        assert rate(server, monkeypatch).score == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (saying(None, refusal="I cannot assist with that."), "refuses to rate this answer: I cannot assist"),
        (saying("", finish_reason="content_filter"), "its content filter blocked the request"),
        (failing(401, f"the key {KEY} is wrong"), r"status 401: .*the key \[secret\] is wrong"),
        (failing(429, "no credit", code="insufficient_quota"), "no credit"),
        (failing(500, "come tomorrow", "Retry-After: 86400"), "come tomorrow"),
        (saying(None, refusal=f"I know {KEY}."), r"refuses to rate this answer: I know \[secret\]\."),
        (replying({"choices": "none"}), "the request to .* failed"),
    ],
    ids=["refusal", "filter", "401", "no credit", "tomorrow", "secret", "nonsense"],
)
def test_permanent_failures_are_errors_without_the_key(
    reply: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_serving(reply) as server, pytest.raises(RaterError, match=words) as caught:
        rate(server, monkeypatch)
    assert KEY not in str(caught.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize("variable", ["", "OPENAI_API_KEY"])
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nobody:knows", "cannot be used: Unknown"),
        ("gpt", "cannot be used: Unknown"),
        ("bedrock:claude", "needs another package: "),
    ],
)
def test_a_name_that_cannot_be_used_is_wrong_usage(model: str, words: str, variable: str) -> None:
    with pytest.raises(SettingsError, match=f"{model!r} {words}"):
        bind_llm(LlmRater(adapter="llm", model=model, api_key_env=variable), root=Path())


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.models", None)
    monkeypatch.delitem(sys.modules, "evalmeta.engine.raters.llm.pydantic_ai_model", raising=False)
    with pytest.raises(SettingsError, match="which is not installed") as caught:
        bind_llm(LlmRater(adapter="llm", model="openai:gpt-4.1-mini"), root=Path())
    assert "pip install 'evalmeta[llm]'" in caught.value.actions[0]


def test_a_judgement_that_repeats_the_key_is_shown_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_serving(judging(4, reason=f"The key is {KEY}.")) as server:
        assert rate(server, monkeypatch).explanation == "The key is [secret]."
