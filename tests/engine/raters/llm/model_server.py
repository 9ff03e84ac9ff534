"""A language model on loopback that implements OpenAI's chat completions with fixed replies."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from client.servers import Loopback, http_reply, listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.model.json_value import JsonObject

    Body = dict[str, object]


# Models write the nonce of the request there; it is as long as one.
NONCE_PLACE = "<nonce!>"
NONCE = re.compile(r"The nonce of this request is ([0-9a-f]{8})[.]")


class ModelServer(NamedTuple):
    """The address that settings name, and what was asked."""

    url: str
    server: Loopback

    @property
    def bodies(self) -> list[Body]:
        return [_body(request) for request in self.server.requests]

    @property
    def forms(self) -> list[str]:
        """The kinds of answer that were asked for."""
        return [_form(body) for body in self.bodies]


@contextmanager
def model_serving(
    *replies: bytes, knows: tuple[str, ...] = ("json_schema", "json_object", "text")
) -> Iterator[ModelServer]:
    """Serves these replies in turn, the last one again and again; to other forms than it knows it says 400."""
    waiting = list(replies)

    def answer(request: bytes) -> bytes:
        if _form(_body(request)) not in knows:
            return failing(400, "this response_format is not supported")
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    with serving(answer) as server:
        yield server


@contextmanager
def serving(answer: Callable[[bytes], bytes]) -> Iterator[ModelServer]:
    """Serves what `answer` makes of each request, with the request's nonce."""

    def with_nonce(request: bytes) -> bytes:
        nonce = NONCE.search(request.decode())
        return answer(request).replace(NONCE_PLACE.encode(), nonce[1].encode() if nonce else b"")

    with listening(with_nonce) as server:
        yield ModelServer(f"{server.url}/v1", server)


def judgement(rating: int = 5, **fields: object) -> JsonObject:
    """What a model should answer; the criteria are met unless others are given."""
    met = {"criterion": "names the state of the order", "met": True, "critical": True}
    return {
        "nonce": NONCE_PLACE,
        "criteria": [met],
        "contradictions": [],
        "reason": f"It deserves {rating}.",
        "rating": rating,
        **fields,
    }


def judging(rating: int = 5, **fields: object) -> bytes:
    return saying(json.dumps(judgement(rating, **fields)))


def ruling(label: str, *items: str, rationale: str = "That is why.", **fields: object) -> JsonObject:
    """What a model should answer to a question with few answers; the items are given by their labels."""
    listed = [{"item": f"thing {number}", "reason": "so", "label": item} for number, item in enumerate(items, 1)]
    return {"nonce": NONCE_PLACE, "items": listed, "rationale": rationale, "label": label, **fields}


def ruled(label: str, *items: str, **fields: object) -> bytes:
    return saying(json.dumps(ruling(label, *items, **fields)))


def saying(text: object, *, finish_reason: str = "stop", **message: object) -> bytes:
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    reply = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "judge-1",
        "choices": [choice],
        "usage": {"prompt_tokens": 700, "completion_tokens": 90, "total_tokens": 790},
    }
    return replying(reply)


def replying(value: object) -> bytes:
    return http_reply(200, json.dumps(value).encode(), "Content-Type: application/json")


def failing(status: int, message: str, *headers: str, code: str | None = None) -> bytes:
    body = json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()
    # The second header keeps OpenAI's own client from trying again by itself.
    return http_reply(status, body, "Content-Type: application/json", "x-should-retry: false", *headers)


def half(reply: bytes) -> bytes:
    return reply[: len(reply) - 40]


def _body(request: bytes) -> Body:
    body: Body = json.loads(request.partition(b"\r\n\r\n")[2])
    return body


def _form(body: Body) -> str:
    form = body.get("response_format")
    return str(form["type"]) if isinstance(form, dict) else "text"
