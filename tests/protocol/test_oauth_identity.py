from __future__ import annotations

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import MessageUnreadable
from evalmeta.model.registry import ApiVersion
from evalmeta.protocol.oauth import UserInfo, is_evalmeta, read_newest_version, read_user_info


def test_versions_compare_as_numbers() -> None:
    listed = [{"version": "9.0"}, {"version": "66.0"}, {"version": "100.0"}, {"label": "?"}, 7]
    assert read_newest_version(orjson.dumps(listed)) == ApiVersion(100)


def test_our_own_orgs_say_so_beside_their_versions() -> None:
    theirs = {"label": "Spring '26", "url": "/services/data/v66.0", "version": "66.0"}
    assert is_evalmeta(orjson.dumps([{**theirs, "engine": "evalmeta"}]))
    assert not is_evalmeta(orjson.dumps([theirs]))


def test_a_user_is_read_with_or_without_a_name() -> None:
    told = {"user_id": "005", "organization_id": "00D"}
    assert read_user_info(orjson.dumps(told)) == UserInfo("005", "00D", "")
    assert read_user_info(orjson.dumps({**told, "preferred_username": "me"})).username == "me"


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'[{"version": "x"}]', b"<html>"])
def test_other_answers_are_unreadable(body: bytes) -> None:
    for read in (read_newest_version, read_user_info):
        with pytest.raises(MessageUnreadable):
            read(body)


@given(st.binary())
def test_any_bytes_are_read_or_unreadable(body: bytes) -> None:
    for read in (read_newest_version, read_user_info, is_evalmeta):
        with suppress(MessageUnreadable):
            read(body)
