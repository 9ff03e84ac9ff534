from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.protocol.http import Failure, failure_of_error, failure_of_status, is_too_long, retry_after, retry_pause

UNPROCESSED = Failure(is_transient=True, is_unprocessed=True)
UNKNOWN = Failure(is_transient=True, is_unprocessed=False)
FINAL = Failure(is_transient=False, is_unprocessed=False)


@pytest.mark.parametrize("status", range(200, 600))
def test_status_that_is_not_transient_is_final(status: int) -> None:
    known = dict.fromkeys((420, 429, 503, 529), UNPROCESSED) | dict.fromkeys((408, 502, 504), UNKNOWN)
    assert failure_of_status(status) == known.get(status, FINAL)


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        (httpx.ConnectError, UNPROCESSED),
        (httpx.ConnectTimeout, UNPROCESSED),
        (httpx.PoolTimeout, UNPROCESSED),
        (httpx.ProxyError, UNPROCESSED),
        (httpx.ReadError, UNKNOWN),
        (httpx.WriteError, UNKNOWN),
        (httpx.CloseError, UNKNOWN),
        (httpx.ReadTimeout, UNKNOWN),
        (httpx.WriteTimeout, UNKNOWN),
        (httpx.RemoteProtocolError, UNKNOWN),
        (httpx.DecodingError, UNKNOWN),
        (TimeoutError, UNKNOWN),
        (httpx.LocalProtocolError, FINAL),
        (httpx.UnsupportedProtocol, FINAL),
        (httpx.TooManyRedirects, FINAL),
    ],
)
def test_exceptions_of_httpx(kind: type[Exception], failure: Failure) -> None:
    assert failure_of_error(kind("no")) == failure


@pytest.mark.parametrize("words", ["CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER"])
def test_tls_errors_are_not_transient(words: str) -> None:
    failure = failure_of_error(httpx.ConnectError(f"[SSL: {words}] no (_ssl.c:1006)"))
    assert failure == Failure(is_transient=False, is_unprocessed=True)


@given(st.text(max_size=40))
def test_any_retry_after_header_is_read(header: str) -> None:
    after = retry_after({"retry-after": header})
    assert after is None or after >= 0


def test_retry_after_may_have_fractions() -> None:
    assert retry_after({"retry-after": "0.5"}) == 0.5


def test_retry_after_may_be_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=90)
    assert 85 <= (retry_after({"retry-after": format_datetime(moment, usegmt=True)}) or 0) <= 92
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


def test_the_date_of_retry_after_is_by_the_clock_of_the_server() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:27:30 GMT"}
    assert retry_after(headers) == 30


def test_milliseconds_are_more_exact() -> None:
    assert retry_after(httpx.Headers({"Retry-After": "1", "Retry-After-Ms": "350"})) == 0.35


def test_without_a_header_there_is_no_pause() -> None:
    assert retry_after({}) is None


def test_pauses_up_to_the_limit_are_honoured() -> None:
    assert [is_too_long(after) for after in (None, 300.0, 300.5)] == [False, False, True]


@given(st.integers(1, 60))
def test_pauses_grow_up_to_a_limit(attempt: int) -> None:
    assert 0 < retry_pause(attempt) <= limits.MAX_RETRY_PAUSE_SECONDS


@given(st.integers(1, 60))
def test_pauses_double_less_a_random_part(attempt: int) -> None:
    longest = min(2 ** (attempt - 1), 30)
    assert longest / 2 <= retry_pause(attempt, first=1, longest=30) <= longest
