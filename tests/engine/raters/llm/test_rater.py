from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.raters.llm.model_server import (
    NONCE,
    NONCE_PLACE,
    ModelServer,
    failing,
    half,
    judgement,
    judging,
    model_serving,
    replying,
    saying,
    serving,
)
from evalmeta import limits
from evalmeta.engine.interfaces import Rating, RatingCache, Rubric
from evalmeta.engine.raters import bind_rater
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.providers import ModelReply
from evalmeta.engine.raters.llm.rater import ModelRater, bind_llm
from evalmeta.errors import RaterError, SettingsError, StoreLocked
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.generated_data import Action
from evalmeta.model.run import Verdict
from evalmeta.store.agent_limits import Pace
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evalmeta.engine.raters.llm.providers import Question

RETRIED = (408, 409, 425, 429, 500, 501, 502, 503, 504, 529)
KEY = "a-key-of-no-particular-shape-4711"
RUBRIC = Rubric(
    "bot_response_rating",
    "Where is it?",
    "It was shipped on Monday.",
    "Says that the order was shipped.",
    (HistoryMessage("user", "Hello"),),
    (Action("GetOrder", {"id": "17"}, {"state": "shipped"}, 80),),
)
FALSE_DAY = {"quote": "on Monday", "contradicts": "on Friday"}
INVENTED = {"quote": "on Sunday", "contradicts": "on Friday"}
NOT_MET = {"criterion": "gives the day", "met": False, "critical": True}


class Kept(dict[str, str]):
    """A cache in memory."""

    def find(self, key: str) -> str | None:
        return self.get(key)

    def keep(self, key: str, body: str) -> None:
        self[key] = body


class OutOfOrder(RatingCache):
    """A cache whose database another program holds."""

    def find(self, _key: str) -> str | None:
        raise StoreLocked("held")

    def keep(self, _key: str, _body: str) -> None:
        raise StoreLocked("held")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)


def rate_all(
    server: ModelServer, rubrics: Iterable[Rubric], *, kept: RatingCache | None = None, **settings: object
) -> list[Rating]:
    table = {"adapter": "llm", "model": "judge-1", "url": server.url, **settings}

    async def go() -> list[Rating]:
        rater = bind_llm(LlmRater.model_validate(table), root=Path(), cache=kept)
        try:
            return [await rated for rubric in rubrics if (rated := rater(rubric)) is not None]
        finally:
            await rater.close()

    return asyncio.run(go())


def rate(server: ModelServer, rubric: Rubric = RUBRIC, **options: object) -> Rating:
    [rating] = rate_all(server, [rubric], **options)
    return rating


def refuse(*replies: bytes, actual: str = RUBRIC.actual, **options: object) -> str:
    with model_serving(*replies) as server, pytest.raises(RaterError) as caught:
        rate(server, replace(RUBRIC, actual=actual), **options)
    return str(caught.value)


class FixedReplies:
    """A model with a fixed reply for each sample."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    async def ask(self, question: Question) -> ModelReply:
        [nonce] = NONCE.findall(question.system)
        return ModelReply(self.texts[question.sample - 1].replace(NONCE_PLACE, nonce))

    async def close(self) -> None:
        pass


def rate_replies(texts: list[str]) -> Rating:
    settings = LlmRater(adapter="llm", model="fixed", samples=len(texts))

    async def go() -> Rating:
        return await ModelRater([FixedReplies(texts)], settings, cache=Kept())(RUBRIC)

    return asyncio.run(go())


# The majority.


def test_it_stops_when_the_majority_agrees() -> None:
    # Samples are asked for at the same time, and either may be answered first.
    with model_serving(judging(5, reason="Right."), judging(4, reason="Right."), judging(0)) as server:
        rating = rate(server, samples=3)

    assert rating == Rating(4.5, Verdict.PASS, "2 of 2 samples: Right.", "llm:judge-1 (prompt v2)")
    assert len(server.bodies) == 2


def test_the_majority_decides_and_its_median_is_the_score() -> None:
    with model_serving(judging(5), judging(1), judging(2)) as server:
        rating = rate(server, samples=3)

    assert (rating.score, rating.verdict) == (1.5, Verdict.FAILURE)
    assert rating.explanation.startswith("2 of ")
    assert len(server.bodies) == 3


def test_a_tie_is_a_failure() -> None:
    with model_serving(judging(5), judging(1)) as server:
        rating = rate(server, samples=2)
    assert (rating.score, rating.verdict) == (1, Verdict.FAILURE)
    assert rating.explanation == "1 of 2 samples: It deserves 1."


@pytest.mark.parametrize(("threshold", "verdict"), [(4.0, Verdict.PASS), (4.5, Verdict.FAILURE)])
def test_the_threshold_decides(threshold: float, verdict: Verdict) -> None:
    with model_serving(judging(4)) as server:
        assert rate(server, replace(RUBRIC, threshold=threshold)).verdict is verdict


def test_a_metric_without_a_prompt_is_not_rated() -> None:
    with model_serving(judging()) as server:
        assert rate_all(server, [replace(RUBRIC, metric="topic_sequence_match")]) == []


# Vetoes.


@pytest.mark.parametrize(
    ("metric", "said", "words"),
    [
        ("coherence", {"criteria": [NOT_MET]}, 'a critical criterion is not met: "gives the day"'),
        ("bot_response_rating", {"contradictions": [FALSE_DAY]}, '"on Monday" contradicts "on Friday"'),
        ("response_match", {"contradictions": [FALSE_DAY] * 4}, '"on Friday", …'),
        ("factuality", {"contradictions": [FALSE_DAY]}, '"on Monday" contradicts "on Friday"'),
    ],
)
def test_a_veto_fails_the_answer_whatever_its_rating(metric: str, said: dict[str, object], words: str) -> None:
    with model_serving(judging(5, **said)) as server:
        rating = rate(server, replace(RUBRIC, metric=metric, threshold=3.5), samples=1)

    assert (rating.score, rating.verdict) == (3, Verdict.FAILURE)
    assert rating.explanation.startswith("veto: ")
    assert rating.explanation.endswith(f"{words}. It deserves 5.")


def test_a_veto_never_raises_a_score() -> None:
    with model_serving(judging(1, criteria=[NOT_MET])) as server:
        assert rate(server).score == 1


def test_a_veto_holds_without_a_threshold() -> None:
    with model_serving(judging(5, criteria=[NOT_MET])) as server:
        rating = rate(server, replace(RUBRIC, threshold=0))
    assert (rating.score, rating.verdict) == (0, Verdict.FAILURE)


def test_contradictions_do_not_matter_for_style() -> None:
    with model_serving(judging(5, contradictions=[INVENTED])) as server:
        assert rate(server, replace(RUBRIC, metric="conciseness")).verdict is Verdict.PASS


def test_missed_criteria_that_are_not_critical_are_listed() -> None:
    missing = {"criterion": "names the carrier", "met": False, "critical": False}
    with model_serving(judging(4, criteria=[missing])) as server:
        rating = rate(server)
    assert rating.explanation == 'It deserves 4. (not met: "names the carrier")'


def test_an_explanation_has_its_limit() -> None:
    with model_serving(judging(5, reason="x" * 50_000)) as server:
        assert len(rate(server).explanation) == limits.MAX_ERROR_CHARS


# What is sent.


def test_the_server_is_asked_for_json_by_a_schema() -> None:
    with model_serving(judging()) as server:
        rate(server, samples=1, temperature=0.5)
    [body] = server.bodies
    form = body["response_format"]

    assert (body["model"], body["temperature"]) == ("judge-1", 0.5)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)


def test_the_temperature_can_be_left_to_the_model() -> None:
    with model_serving(judging()) as server:
        rate(server, samples=1, temperature="default")
    assert "temperature" not in server.bodies[0]


def rejecting(*names: str) -> Callable[[bytes], bytes]:
    """Rejects requests with these parameters, as reasoning models of OpenAI do."""
    hints = {"max_tokens": "Use 'max_completion_tokens' instead.", "temperature": "Only the default is supported."}

    def answer(request: bytes) -> bytes:
        body = json.loads(request.partition(b"\r\n\r\n")[2])
        rejected = [name for name in names if name in body]
        if rejected:
            return failing(400, f"Unsupported parameter: '{rejected[0]}' is not supported. {hints[rejected[0]]}")
        return judging(4)

    return answer


@pytest.mark.parametrize("names", [("temperature",), ("max_tokens",), ("max_tokens", "temperature")])
def test_parameters_that_a_model_rejects_are_sent_only_once(names: tuple[str, ...]) -> None:
    with serving(rejecting(*names)) as server:
        ratings = rate_all(server, [RUBRIC, replace(RUBRIC, utterance="When?")], max_tokens=500)

    assert [rating.score for rating in ratings] == [4, 4]
    assert len(server.bodies) == 2 + len(names)
    assert set(server.forms) == {"json_schema"}
    assert 500 in server.bodies[-1].values()


def test_samples_that_learn_the_parameters_at_the_same_time_lose_no_schema() -> None:
    with serving(rejecting("temperature")) as server:
        rate(server, samples=5)
    assert set(server.forms) == {"json_schema"}


def test_an_error_inside_a_successful_reply_is_shown() -> None:
    said = refuse(replying({"error": {"message": "provider is down", "code": 502}}))
    assert 'choices[0].message is missing; it says {"message": "provider is down", "code": 502}' in said


@pytest.mark.parametrize(
    ("knows", "forms"),
    [
        (("json_object", "text"), ["json_schema", "json_object", "json_object"]),
        (("text",), ["json_schema", "json_object", "text", "text"]),
    ],
)
def test_a_server_without_schemas_is_asked_for_plain_json(knows: tuple[str, ...], forms: list[str]) -> None:
    with model_serving(judging(), knows=knows) as server:
        ratings = rate_all(server, [RUBRIC, RUBRIC], samples=1)

    assert [rating.verdict for rating in ratings] == [Verdict.PASS] * 2
    assert server.forms == forms


def test_samples_that_learn_the_form_at_the_same_time_skip_none() -> None:
    with model_serving(judging(), knows=("text",)) as server:
        ratings = rate_all(server, [RUBRIC, RUBRIC], samples=8)

    assert [rating.verdict for rating in ratings] == [Verdict.PASS] * 2
    assert server.forms[-5:] == ["text"] * 5


def test_the_first_refusal_of_all_formats_is_shown() -> None:
    with (
        model_serving(failing(400, "no such model: judge-1")) as server,
        pytest.raises(RaterError, match="no such mod"),
    ):
        rate(server, samples=1)
    assert server.forms == ["json_schema", "json_object", "text"]


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n```json\n{json.dumps(judgement(4))}\n```\nI hope that helps {{x}}.",
        f"<think>Perhaps {json.dumps(judgement(1))}?</think>{json.dumps(judgement(4))}",
        f"{json.dumps(judgement(4))}\n\n{json.dumps(judgement(4))}",
        json.dumps(judgement(4, extra="ignored")),
        json.dumps(judgement(4, reason='It says </think> and {"rating": 5}.')),
    ],
    ids=["fenced", "after thoughts", "twice", "with more", "with a quotation"],
)
def test_a_judgement_is_found_among_other_words(text: str) -> None:
    with model_serving(saying(text)) as server:
        assert rate(server).score == 4


# What cannot be used.

UNREADABLE = {
    "prose": "I would give it five points.",
    "two that differ": f"{json.dumps(judgement(1))} {json.dumps(judgement(5))}",
    "out of range": json.dumps(judgement(6)),
    "a part": json.dumps(judgement())[:-20],
    "too long": json.dumps(judgement(5, reason="x" * limits.MAX_JUDGEMENT_CHARS)),
    "braces": "{" * 5_000,
    "deep": '{"a":' * 50_000,
    "a quotation that is not escaped": f'{{"contradictions": ["{json.dumps(judgement(5))}"], "rating": 0}}',
    "nothing": None,
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_reply_is_requested_once_more(text: str | None) -> None:
    with model_serving(saying(text), judging(4)) as server:
        assert rate(server, samples=1).score == 4
    assert len(server.bodies) == 2


def test_samples_that_stay_unreadable_are_left_out() -> None:
    rating = rate_replies(["no", json.dumps(judgement(4)), json.dumps(judgement(4))])
    assert rating.verdict is Verdict.PASS
    assert rating.explanation == "2 of 3 samples (1 could not be read): It deserves 4."


def test_an_unreadable_sample_that_cannot_change_the_verdict_is_left_out() -> None:
    assert rate_replies(["no", json.dumps(judgement(1))]).verdict is Verdict.FAILURE


def test_a_failure_of_two_samples_needs_no_second_request() -> None:
    with model_serving(judging(1)) as server:
        assert rate(server, samples=2).verdict is Verdict.FAILURE
    assert len(server.bodies) == 1


@pytest.mark.parametrize("samples", [["no", 5, 1], ["no", "no", 5, 5, 1], ["no", 5, 5, 1], ["no", 5]])
def test_an_unreadable_sample_that_could_decide_is_an_error(samples: list[int | str]) -> None:
    texts = [sample if isinstance(sample, str) else json.dumps(judgement(sample)) for sample in samples]
    with pytest.raises(RaterError, match="not a readable judgement"):
        rate_replies(texts)


def test_without_a_readable_majority_there_is_no_rating() -> None:
    said = refuse(saying("no"), samples=3)
    assert said.startswith("llm:judge-1 (prompt v2): 3 of 3 samples are not a readable judgement: ")


def test_an_unreadable_reply_is_shown_with_the_reason_why_the_model_stopped() -> None:
    said = refuse(saying("I would give\n\nfive points."))
    assert said == (
        "llm:judge-1 (prompt v2): the reply is not a readable judgement: the reply has no complete JSON object; "
        'the reply is "I would give five points." (finish reason: stop)'
    )


@pytest.mark.parametrize(("settings", "verb"), [({}, "set"), ({"max_tokens": 50}, "raise")])
def test_a_reply_that_was_cut_off_says_what_to_do(settings: dict[str, object], verb: str) -> None:
    said = refuse(saying(json.dumps(judgement())[:-20], finish_reason="length"), **settings)
    assert said.endswith(f"(finish reason: length); {verb} max_tokens of the rater, because the reply was cut off")


def test_an_excerpt_is_bounded_and_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    said = refuse(saying(f"{KEY} Bearer {'a' * 30} {'x' * 5_000}"), api_key_env="JUDGE_KEY")
    assert KEY not in said
    assert "a" * 30 not in said
    assert said.count("[secret]") == 2
    assert len(said) < 600


def test_the_limit_of_tokens_is_sent() -> None:
    with model_serving(judging(4)) as server:
        rate(server, max_tokens=500)
    assert server.bodies[0]["max_tokens"] == 500


PARTS = [
    [{"type": "text", "text": json.dumps(judgement(4))}],
    [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": json.dumps(judgement(4))}],
    [{"type": "text", "text": json.dumps(judgement(4))[:50]}, {"type": "text", "text": json.dumps(judgement(4))[50:]}],
]


@pytest.mark.parametrize("parts", PARTS, ids=["one", "after reasoning", "two"])
def test_content_in_parts_is_read(parts: list[dict[str, str]]) -> None:
    with model_serving(saying(parts)) as server:
        assert rate(server).score == 4


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (saying([{"type": "refusal", "refusal": "I cannot assist."}]), "refuses to rate this answer: I cannot assist."),
        (saying(None, refusal="I cannot assist with that."), "judge-1 refuses to rate this answer: I cannot assist"),
        (saying("", finish_reason="content_filter"), "its content filter blocked the request"),
        (replying({"choices": []}), "is not a chat completion"),
        (replying({"choices": [{"text": "old"}]}), "is not a chat completion"),
        (replying([1]), "is not a chat completion"),
    ],
)
def test_a_refusal_is_an_error_and_not_kept(reply: bytes, words: str) -> None:
    cache = Kept()
    assert words in refuse(reply, samples=1, kept=cache)
    assert cache == {}


def test_a_text_beyond_the_limit_is_not_sent() -> None:
    with model_serving(judging()) as server, pytest.raises(RaterError, match="at most 200,000 are sent"):
        rate(server, replace(RUBRIC, actual="x" * limits.MAX_RUBRIC_CHARS))
    assert server.bodies == []


# What passes, and what does not.


@pytest.mark.parametrize(
    "trouble",
    [*(failing(status, "later", "Retry-After: 0") for status in RETRIED), half(judging())],
    ids=[*map(str, RETRIED), "half a body"],
)
def test_transient_failures_are_retried(trouble: bytes) -> None:
    with model_serving(trouble, trouble, judging(4)) as server:
        assert rate(server, samples=1).score == 4
    assert len(server.bodies) == 3


@pytest.mark.parametrize("trouble", [failing(429, "slow down"), failing(504, "gone")], ids=["429", "504"])
def test_repeated_transient_failures_become_an_error(trouble: bytes) -> None:
    assert f"(tried {limits.RETRIES + 1} times)" in refuse(trouble, samples=1)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (failing(429, "no credit", code="insufficient_quota"), "no credit"),
        (failing(401, f"the key {KEY} is wrong"), "status 401: the key [secret] is wrong"),
        (failing(429, "come tomorrow", "Retry-After: 86400"), "come tomorrow"),
        (failing(500, "come tomorrow", "Retry-After: 86400"), "come tomorrow"),
    ],
    ids=["no credit", "401", "429 tomorrow", "500 tomorrow"],
)
def test_permanent_failures_are_errors_at_once_without_the_key(
    trouble: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with model_serving(trouble) as server, pytest.raises(RaterError) as caught:
        rate(server, samples=1, api_key_env="JUDGE_KEY")

    assert words in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY.encode() in server.server.requests[0]
    assert len(server.bodies) == 1


def test_a_model_that_is_not_there_is_named() -> None:
    with model_serving(judging()) as server:
        pass
    with pytest.raises(RaterError, match=r"127\.0\.0\.1.*tried 4 times"):
        rate(server, samples=1)


def test_a_slow_model_times_out() -> None:
    stuck = asyncio.Event()

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stuck.wait()
        writer.close()

    async def go() -> None:
        async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            table = {"adapter": "llm", "model": "judge-1", "url": f"http://127.0.0.1:{port}", "timeout": 0.1}
            rater = bind_llm(LlmRater.model_validate({**table, "samples": 1}), root=Path())
            try:
                with pytest.raises(RaterError, match=r"no answer within 0\.1 s \(tried 4 times\)"):
                    await rater(RUBRIC)
            finally:
                await rater.close()
                stuck.set()

    asyncio.run(go())


def test_a_key_that_is_not_set_is_named() -> None:
    settings = LlmRater(adapter="llm", model="judge-1", url="http://127.0.0.1:9", api_key_env="NO_SUCH_KEY")
    with pytest.raises(SettingsError, match="the environment variable NO_SUCH_KEY is not set"):
        bind_llm(settings, root=Path())


def test_a_key_is_not_sent_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    settings = LlmRater(adapter="llm", model="judge-1", url="http://models.invalid/v1", api_key_env="JUDGE_KEY")
    with pytest.raises(SettingsError, match="sent unencrypted"):
        bind_llm(settings, root=Path())


# The cache.


def test_cached_replies_are_not_requested_again() -> None:
    cache = Kept()
    with model_serving(judging(4)) as server:
        first, second = rate_all(server, [RUBRIC, RUBRIC], kept=cache)
    assert first == second
    assert (len(server.bodies), len(cache)) == (1, 1)


def test_another_threshold_needs_no_request() -> None:
    cache = Kept()
    with model_serving(judging(4)) as server:
        passed, failed = rate_all(server, [RUBRIC, replace(RUBRIC, threshold=5)], kept=cache)
    assert (passed.verdict, failed.verdict) == (Verdict.PASS, Verdict.FAILURE)
    assert len(server.bodies) == 1


def test_how_long_an_action_took_asks_nothing_new() -> None:
    later = replace(RUBRIC, actions=tuple(replace(action, latency_ms=81.0) for action in RUBRIC.actions))
    with model_serving(judging(4)) as server:
        rate_all(server, [RUBRIC, later], kept=Kept(), samples=1)
    assert len(server.bodies) == 1


OTHERS = {
    "metric": replace(RUBRIC, metric="completeness"),
    "utterance": replace(RUBRIC, utterance="Where?"),
    "actual": replace(RUBRIC, actual="It was shipped."),
    "expected": replace(RUBRIC, expected="Says that it was shipped."),
    "history": replace(RUBRIC, history=(HistoryMessage("user", "Hi"),)),
    "role": replace(RUBRIC, history=(HistoryMessage("agent", "Hello"),)),
    "action": replace(RUBRIC, actions=(replace(RUBRIC.actions[0], name="FindOrder"),)),
    "input": replace(RUBRIC, actions=(replace(RUBRIC.actions[0], input={"id": "18"}),)),
    "output": replace(RUBRIC, actions=(replace(RUBRIC.actions[0], output={"state": "lost"}),)),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_answer_is_asked_about(other: Rubric) -> None:
    with model_serving(judging(4)) as server:
        rate_all(server, [RUBRIC, other], kept=Kept(), samples=1)
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    "change", [{"model": "judge-2"}, {"temperature": 0.1}, {"temperature": "default"}, {"url": ""}]
)
def test_another_model_is_asked(change: dict[str, object]) -> None:
    cache = Kept()
    with model_serving(judging(4)) as server:
        change = {"url": f"{server.url}/"} if "url" in change else change
        rate(server, kept=cache, samples=1)
        rate(server, kept=cache, samples=1, **change)
    assert len(server.bodies) == 2


def test_another_prompt_asks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Kept()
    with model_serving(judging(4)) as server:
        rate(server, kept=cache, samples=1)
        monkeypatch.setattr("evalmeta.engine.raters.llm.rater.PROMPT_VERSION", 3)
        rate(server, kept=cache, samples=1)
    assert len(server.bodies) == 2


def test_the_cache_can_be_switched_off() -> None:
    with model_serving(judging(4)) as server:
        rate_all(server, [RUBRIC, RUBRIC], kept=Kept(), samples=1, cache=False)
    assert len(server.bodies) == 2


def test_damaged_cache_entries_are_requested_again() -> None:
    cache = Kept()
    with model_serving(judging(4)) as server:
        rate(server, kept=cache, samples=1)
        cache.update(dict.fromkeys(cache, "{"))
        rate(server, kept=cache, samples=1)
    assert len(server.bodies) == 2


def test_a_failing_cache_does_not_affect_ratings() -> None:
    with model_serving(judging(4)) as server:
        assert rate(server, kept=OutOfOrder()).score == 4


def test_the_concurrency_limit_is_respected() -> None:
    class Counting(FixedReplies):
        now = most = 0

        async def ask(self, question: Question) -> ModelReply:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.001)
            self.now -= 1
            return await super().ask(question)

    model = Counting([json.dumps(judgement(4))] * 3)
    settings = LlmRater(adapter="llm", model="fixed", samples=3, concurrency=3)

    async def go() -> None:
        rater = ModelRater([model], settings)
        await asyncio.gather(*(rater(replace(RUBRIC, utterance=f"Question {number}")) for number in range(20)))

    asyncio.run(go())
    assert model.most == 3


def test_raters_of_several_processes_share_one_rate(tmp_path: Path) -> None:
    paces = []

    def pace_of(name: str) -> Pace:
        paces.append((Pace(database, name, clock=lambda: 1000.0), name))
        return paces[-1][0]

    settings = LlmRater(adapter="llm", model="fixed", url="http://127.0.0.1:1/v1?token=key", rate_limit=1_000)
    with open_database(tmp_path) as database:
        bound = [bind_rater(settings, root=tmp_path, pace_of=pace_of) for _ in range(2)]
        raters = [rater for rater in bound if isinstance(rater, ModelRater)]

        async def go() -> None:
            for rater in raters:
                model = FixedReplies([json.dumps(judgement(4))])
                mine = ModelRater([model], settings, requests=rater.requests)
                await asyncio.gather(*(mine(replace(RUBRIC, utterance=f"Question {n}")) for n in range(10)))

        asyncio.run(go())
        [(pace, name), (_, other)] = paces
        sent = sum(rater.requests.usage.requests for rater in raters)
        assert sent >= 20
        assert pace.reserve(interval=0.001) == pytest.approx(0.001 * sent)
    assert name == other
    assert "key" not in name


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9))
def test_the_verdict_is_that_of_most_samples(ratings: list[int]) -> None:
    passed = sum(rating >= 3 for rating in ratings)
    expected = Verdict.PASS if passed > len(ratings) - passed else Verdict.FAILURE
    assert rate_replies([json.dumps(judgement(rating)) for rating in ratings]).verdict is expected


def test_a_judgement_that_repeats_the_key_is_shown_and_cached_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    kept = Kept()
    with model_serving(judging(4, reason=f"The key is {KEY}.")) as server:
        rating = rate(server, api_key_env="JUDGE_KEY", kept=kept)
    assert rating.explanation == "The key is [secret]."
    assert KEY not in str(kept)
