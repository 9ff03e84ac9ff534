from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.org.serving.login_codes import LoginCodes
from evalmeta.store.users import Holder

if TYPE_CHECKING:
    from collections.abc import Callable

ANN = Holder("ann")


def test_a_code_is_redeemed_once_also_by_many_at_once() -> None:
    codes = LoginCodes()
    code = codes.issue(ANN, seconds=60)
    with ThreadPoolExecutor(8) as threads:
        assert [holder for holder in threads.map(codes.redeem, [code] * 64) if holder] == [ANN]


def test_looking_at_a_code_does_not_use_it() -> None:
    codes = LoginCodes()
    code = codes.issue(ANN, seconds=60, is_private=True)
    assert (codes.holder_of(code), codes.is_private(code)) == (ANN, True)
    assert codes.redeem(code) == ANN
    assert (codes.holder_of(code), codes.is_private(code)) == (None, False)


@pytest.mark.parametrize("use", [LoginCodes.holder_of, LoginCodes.redeem])
def test_a_code_expires(monkeypatch: pytest.MonkeyPatch, use: Callable[[LoginCodes, str], Holder | None]) -> None:
    codes, now = LoginCodes(), time.monotonic()
    code = codes.issue(ANN, seconds=60)
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert use(codes, code) is None


def test_the_use_of_a_code_is_reported_once() -> None:
    codes, used = LoginCodes(), list[str]()
    code = codes.issue(ANN, seconds=60, on_use=lambda: used.append("used"))
    assert [codes.redeem(code), codes.redeem(code)] == [ANN, None]
    assert used == ["used"]


def test_codes_of_one_user_end_no_code_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_USER_CODES", 2)
    codes = LoginCodes()
    of_bob = codes.issue(Holder("bob"), seconds=60)
    of_ann = [codes.issue(ANN, seconds=60) for _ in range(3)]
    assert [codes.redeem(code) for code in (of_bob, *of_ann)] == [Holder("bob"), None, ANN, ANN]


def test_codes_are_long_and_differ() -> None:
    codes = {LoginCodes().issue(ANN, seconds=60) for _ in range(1_000)}
    assert len(codes) == 1_000
    assert all(len(code.replace("-", "")) == 20 for code in codes)
