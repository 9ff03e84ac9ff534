"""Endpoints that fail in every way, in whole runs: one case is an ERROR, never a FAILURE, and the others pass."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from client.servers import http_reply, listening, replying_with
from engine.builders import evaluation, run
from engine.subjects.conversations import says
from evalmeta import limits
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.http import HttpSubject
from evalmeta.engine.subjects.openai import OpenAISubject
from evalmeta.model.definition import Expectation
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.run import CaseResult

NO_ACTIONS = Expectation("action_sequence_match", "[]")
GOOD = says({"answer": "Yes.", "actions": [], "choices": [{"message": {"content": "Yes.", "tool_calls": []}}]})
HALF = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"answer": '
FAULTS: Final = {
    "429": (http_reply(429, b'{"error": {"message": "Slow down"}}', "Retry-After: 0"), "Slow down (tried 2 times)"),
    "429 for an hour": (http_reply(429, b"", "Retry-After: 3600"), "status 429"),
    "500": (http_reply(500, b'{"error": {"message": "Out of order"}}'), "status 500: Out of order"),
    "502": (http_reply(502, b"<html><title>Bad Gateway</title></html>"), "Bad Gateway (tried 2 times)"),
    "503": (http_reply(503, b""), "status 503 (tried 2 times)"),
    "401": (http_reply(401, b""), "status 401"),
    "half a body": (HALF, "(tried 2 times)"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", "(tried 2 times)"),
    "not http": (b"+OK dovecot ready\r\n", "(tried 2 times)"),
    "nothing": (b"", "(tried 2 times)"),
    "an empty body": (http_reply(200, b""), "JSON"),
    "not json": (http_reply(200, b"<p>Welcome</p>"), "not valid JSON"),
    "half json": (http_reply(200, b'{"answer": "Yes.'), "not valid JSON"),
    "not utf-8": (http_reply(200, b'{"answer": "\xff"}'), "not valid JSON"),
    "nan": (http_reply(200, b'{"answer": NaN}'), "not valid JSON"),
    "a lone surrogate": (
        http_reply(200, rb'{"answer": "\ud800", "choices": [{"message": {"content": "\ud800"}}]}'),
        "",
    ),
    "deep json": (http_reply(200, b"[" * 100_000 + b"]" * 100_000), "JSON"),
    "another type": (says({"answer": ["a"], "choices": "none"}), ""),
    "10 MB": (http_reply(200, b'"' + b"x" * 10_000_000 + b'"'), "bytes"),
}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)


def openai(url: str) -> Subject:
    return bind(OpenAISubject(adapter="openai", model="desk-1", url=url), root=Path())


def streaming(url: str) -> Subject:
    return bind(OpenAISubject(adapter="openai", model="desk-1", url=url, stream=True), root=Path())


def http(url: str) -> Subject:
    return bind(HttpSubject(adapter="http", url=url, actions="$.actions"), root=Path())


def asked(agent: Callable[[str], Subject], url: str, **options: object) -> list[CaseResult]:
    return run(agent(url), evaluation(3, expectations=(NO_ACTIONS,)), retries=1, concurrency=1, **options)


def check_that_only_the_second_is_broken(results: list[CaseResult], words: str) -> None:
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS], results[1]
    assert words in (results[1].error or ""), results[1].error
    assert results[1].results == ()


@pytest.mark.slow
@pytest.mark.parametrize("agent", [openai, streaming, http])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_invalid_answer_only_affects_its_case(agent: Callable[[str], Subject], fault: str) -> None:
    reply, words = FAULTS[fault]
    with listening(lambda request: reply if b"question 2" in request else GOOD) as server:
        check_that_only_the_second_is_broken(asked(agent, server.url), words)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [openai, streaming, http])
def test_an_endpoint_that_never_answers_only_affects_its_case(agent: Callable[[str], Subject]) -> None:
    over = threading.Event()

    def answer(request: bytes) -> bytes:
        if b"question 2" in request:
            over.wait(30)
        return GOOD

    with listening(answer) as server:
        try:
            results = asked(agent, server.url, case_timeout=2)
        finally:
            over.set()
    check_that_only_the_second_is_broken(results, "no answer within 2 s")


@pytest.mark.parametrize("agent", [openai, streaming, http])
def test_every_case_is_an_error_if_connections_are_refused(agent: Callable[[str], Subject]) -> None:
    with replying_with(GOOD) as gone:
        url = gone.url
    results = asked(agent, url)
    assert {result.verdict for result in results} == {Verdict.ERROR}


@pytest.mark.parametrize(
    ("message", "hint"), [("The model 'b' does not exist", "; check the model"), ("Not Found", "; check the url")]
)
def test_a_404_says_whether_the_model_or_the_url_is_wrong(message: str, hint: str) -> None:
    with replying_with(says({"error": {"message": message}}, 404)) as server:
        [result] = asked(openai, server.url)[:1]
    assert (result.error or "").endswith(f"answered with status 404: {message}{hint}")


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({"Authorization": "Bearer ${DESK_KEY}"}, "; check the key in DESK_KEY, and the url"),
        ({"Authorization": "Bearer abc"}, "; check the header Authorization in evalmeta.toml, and the url"),
        ({}, "; the request has no key: name its variable in evalmeta.toml or with --api-key-env, or check the url"),
    ],
)
def test_a_401_names_the_key_that_was_sent(headers: dict[str, str], hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", "a-key-of-the-desk")
    with replying_with(http_reply(401, b"")) as server:
        settings = HttpSubject(adapter="http", url=server.url, headers=headers)
        [result] = run(bind(settings, root=Path()), evaluation(1))
    assert (result.error or "").endswith(hint)
