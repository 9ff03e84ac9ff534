from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from evalmeta import limits
from evalmeta.org.app import create_app
from evalmeta.org.serving.request_guard import RequestGuard, hosts_of
from protocol.envelopes import jsforce_call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from evalmeta.org.organization import Organization

BASE = "http://localhost:8160"
SOAP = "/services/Soap/m/66.0"


def send(app: ASGIApp, method: str, path: str, content: object = None, **headers: str) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as http:
            return await http.request(method, path, content=content, headers=headers)

    return asyncio.run(go())


def gate(app: ASGIApp) -> RequestGuard:
    return RequestGuard(app, hosts_of("127.0.0.1", 8160))


def app(answer: Callable[[Request], Awaitable[object]]) -> RequestGuard:
    return gate(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]))


async def read(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


def error(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, orjson.loads(response.content)[0]["errorCode"]


@pytest.fixture
def guard(org: Organization) -> RequestGuard:
    return gate(create_app(org))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8160", "localhost:80", ""])
def test_a_host_that_is_not_ours_is_refused(guard: RequestGuard, host: str) -> None:
    assert error(send(guard, "GET", "/services/data", host=host)) == (403, "FORBIDDEN")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9999"])
def test_a_page_of_another_origin_is_refused_even_with_a_token(
    guard: RequestGuard, org: Organization, origin: str
) -> None:
    call = jsforce_call("<describeMetadata/>", session=org.token)
    response = send(guard, "POST", SOAP, call, origin=origin)
    assert response.status_code == 403
    assert b"<faultcode>sf:FORBIDDEN</faultcode>" in response.content


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_is_refused_even_without_an_origin(
    guard: RequestGuard, org: Organization, site: str
) -> None:
    call = jsforce_call("<describeMetadata/>", session=org.token)
    assert send(guard, "POST", SOAP, call, **{"sec-fetch-site": site}).status_code == 403
    # Following a link is not a change.
    assert send(guard, "GET", "/services/data", **{"sec-fetch-site": site}).status_code == 200


@pytest.mark.parametrize(
    "headers", [{}, {"origin": BASE}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}]
)
def test_callers_without_an_origin_or_with_ours_get_in(
    guard: RequestGuard, org: Organization, headers: dict[str, str]
) -> None:
    call = jsforce_call("<describeMetadata/>", session=org.token)
    assert send(guard, "POST", SOAP, call, **headers).status_code == 200


@pytest.mark.parametrize("path", ["/services/data", "/nowhere"])
def test_every_answer_has_the_security_headers(guard: RequestGuard, path: str) -> None:
    headers = send(guard, "GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["cache-control"] == "no-store"


def test_a_head_over_the_limit_is_refused(guard: RequestGuard) -> None:
    assert error(send(guard, "GET", "/services/data", x="x" * limits.MAX_HEADER_BYTES))[0] == 431
    assert error(send(guard, "GET", "/services/data?q=" + "x" * limits.MAX_HEADER_BYTES))[0] == 431


def test_a_body_with_too_large_a_content_length_is_refused_unread() -> None:
    async def never(_: Request) -> PlainTextResponse:
        raise AssertionError("it was read")

    length = str(limits.MAX_SOAP_BYTES + 1)
    assert error(send(app(never), "POST", "/", b"x", **{"content-length": length})) == (413, "REQUEST_TOO_LARGE")


def test_a_body_that_turns_out_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, guard: RequestGuard) -> None:
    monkeypatch.setattr(limits, "MAX_SOAP_BYTES", 1_000)
    given = []

    async def body() -> AsyncIterator[bytes]:
        for _ in range(100):
            given.append(1)
            yield bytes(600)

    response = send(guard, "POST", SOAP, body())
    assert response.status_code in {413, 500}
    assert b"sf:REQUEST_TOO_LARGE" in response.content
    assert len(given) < 10


def test_a_body_without_a_length_is_limited_whoever_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SOAP_BYTES", 1_000)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    assert send(app(read), "POST", "/", pieces()).status_code == 413


def test_bodies_that_are_too_long_together_are_put_off(monkeypatch: pytest.MonkeyPatch, org: Organization) -> None:
    monkeypatch.setattr(limits, "MAX_BODIES_BYTES", 1_000)
    runs = "/services/data/v66.0/einstein/ai-evaluations/runs"
    guard, bearer = gate(create_app(org)), f"Bearer {org.token}"
    assert error(send(guard, "POST", runs, bytes(1_001), authorization=bearer)) == (503, "SERVER_UNAVAILABLE")
    assert error(send(guard, "POST", runs, bytes(1_000), authorization=bearer))[0] == 400


def test_more_requests_at_once_than_the_limit_are_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REQUESTS", 3)

    async def go() -> list[int]:
        refused = asyncio.Event()

        async def answer(_: Request) -> PlainTextResponse:
            await refused.wait()
            return PlainTextResponse("")

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app(answer)), base_url=BASE) as http:
            replies = asyncio.as_completed([http.get("/") for _ in range(5)], timeout=60)
            first = [(await next(replies)).status_code for _ in range(2)]
            refused.set()
            return first + [(await reply).status_code for reply in replies]

    assert asyncio.run(go()) == [503, 503, 200, 200, 200]


def test_streams_of_events_take_no_place_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REQUESTS", 2)

    async def go() -> list[int]:
        may_end, begun = asyncio.Event(), list[int]()

        async def events() -> AsyncIterator[str]:
            begun.append(1)
            yield "retry: 1000\n\n"
            await may_end.wait()

        async def answer(request: Request) -> PlainTextResponse | StreamingResponse:
            is_stream = request.url.path == "/live"
            return StreamingResponse(events(), media_type="text/event-stream") if is_stream else PlainTextResponse("")

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app(answer)), base_url=BASE) as http:
            streams = []
            for number in range(1, 6):
                streams.append(asyncio.create_task(http.get("/live")))
                while len(begun) < number and not streams[-1].done():
                    await asyncio.sleep(0)
            quick = [(await http.get("/")).status_code for _ in range(5)]
            may_end.set()
            return [*quick, *[(await stream).status_code for stream in streams], (await http.get("/")).status_code]

    assert asyncio.run(go()) == [200] * 11


@pytest.mark.parametrize("pieces", [0, 1, 3])
def test_a_body_that_stops_coming_is_given_up(
    monkeypatch: pytest.MonkeyPatch, guard: RequestGuard, pieces: int
) -> None:
    # The limit between two pieces alone gives it up: the whole body still has time.
    monkeypatch.setattr(limits, "PIECE_SECONDS", 0.02)
    monkeypatch.setattr(limits, "BODY_SECONDS", 60.0)
    ended = []

    async def body() -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield b"x"
        await asyncio.sleep(0.5)
        ended.append(1)

    response = send(guard, "POST", SOAP, body())
    assert response.status_code == 408
    assert b"sf:REQUEST_RUNNING_TOO_LONG" in response.content
    assert not ended


def test_a_body_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch, guard: RequestGuard) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.1)
    monkeypatch.setattr(limits, "PIECE_SECONDS", 60.0)
    given = []

    async def body() -> AsyncIterator[bytes]:
        while True:
            given.append(1)
            yield b"x"
            await asyncio.sleep(0.02)

    response = send(guard, "POST", SOAP, body())
    assert b"sf:REQUEST_RUNNING_TOO_LONG" in response.content
    assert len(given) < 100


def test_one_address_cannot_use_all_room_for_bodies(monkeypatch: pytest.MonkeyPatch, org: Organization) -> None:
    monkeypatch.setattr(limits, "MAX_ADDRESS_BODIES_BYTES", 1_000)
    guard = gate(create_app(org))
    assert b"sf:SERVER_UNAVAILABLE" in send(guard, "POST", SOAP, bytes(1_001)).content


def test_requests_whose_body_has_not_arrived_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REQUESTS", 1)

    async def go() -> tuple[int, int]:
        arrived, may_end = asyncio.Event(), asyncio.Event()

        async def answer(request: Request) -> PlainTextResponse:
            await request.body()
            return PlainTextResponse("")

        async def body() -> AsyncIterator[bytes]:
            yield b"x"
            arrived.set()
            await may_end.wait()

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app(answer)), base_url=BASE) as http:
            slow = [asyncio.create_task(http.post("/", content=body())) for _ in range(5)]
            await arrived.wait()
            quick = (await http.get("/")).status_code
            may_end.set()
            return quick, [(await request).status_code for request in slow].count(200)

    assert asyncio.run(go()) == (200, 5)


def test_a_request_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.02)

    async def answer(_: Request) -> PlainTextResponse:
        await asyncio.sleep(60)
        raise AssertionError

    assert error(send(app(answer), "GET", "/")) == (408, "REQUEST_RUNNING_TOO_LONG")


def test_an_answer_that_takes_too_long_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.5)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.sleep(60)

    async def answer(_: Request) -> StreamingResponse:
        return StreamingResponse(pieces())

    async def go() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app(answer)), base_url=BASE) as http:
            await http.get("/")

    with pytest.raises(ConnectionAbortedError):
        asyncio.run(go())


def test_a_request_is_logged_without_query_and_without_what_may_be_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    token = "00D000000000001!0123.secret"  # noqa: S105 - of no org
    with caplog.at_level(logging.INFO, logger="evalmeta.org"):
        for path in (f"/a/{token}?access_token={token}", f"/{'x' * 50}/b", "/line%0Abreak"):
            send(app(read), "GET", path, authorization=f"Bearer {token}")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("evalmeta")]
    assert [line.split()[:4] for line in lines] == [
        ["127.0.0.1", "GET", "/a/...", "200"],
        ["127.0.0.1", "GET", "/.../b", "200"],
        ["127.0.0.1", "GET", "/line%0Abreak", "404"],
    ]


def test_a_defect_is_in_the_log_and_not_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    response = send(gate(create_app(None)), "GET", "/services/oauth2/userinfo")
    assert error(response) == (500, "UNKNOWN_EXCEPTION")
    assert "Traceback" not in response.text
    assert "AttributeError" in caplog.text


def test_a_body_goes_out_in_pieces_and_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PIECE_BYTES", 4)

    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.url.path[1:])

    for size in range(14):
        assert send(app(answer), "GET", f"/{'abcdefghijklmn'[:size]}").text == "abcdefghijklmn"[:size]


def test_a_client_that_disconnects_is_not_an_error(guard: RequestGuard, caplog: pytest.LogCaptureFixture) -> None:
    async def hang_up() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def to_nobody(_: object) -> None:
        pass

    with caplog.at_level(logging.INFO, logger="evalmeta.org"):
        asyncio.run(guard(upload(), hang_up, to_nobody))
    [line] = [record.getMessage() for record in caplog.records if record.name.startswith("evalmeta")]
    assert line.startswith(f"127.0.0.1 POST {SOAP} - ")


def upload() -> dict[str, object]:
    headers = [(b"host", b"localhost:8160"), (b"content-length", b"9")]
    names = {"type": "http", "method": "POST", "path": SOAP, "raw_path": SOAP.encode(), "query_string": b""}
    return {**names, "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8160), "scheme": "http"}
