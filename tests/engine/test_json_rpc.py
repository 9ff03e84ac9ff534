from __future__ import annotations

import pytest

from evalmeta.engine.json_rpc import check_number, request, result_of
from evalmeta.errors import SubjectError


def test_a_reply_has_a_result() -> None:
    assert result_of({"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}) == {"a": 1}
    assert request("ping", {}, number=7) == {"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {}}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"error": {"code": -32603, "message": "no stock"}}, "returned the error -32603: no stock"),
        ({"error": {}}, "the error without a code: without a message"),
        ({"error": {"code": 1, "message": "password=hunter2hunter2"}}, r"\[secret\]"),
        ({"result": "text"}, "is not a response of JSON-RPC"),
        ([], "is not a response of JSON-RPC"),
        (None, "is not a response of JSON-RPC"),
    ],
)
def test_other_replies_are_errors(reply: object, why: str) -> None:
    with pytest.raises(SubjectError, match=why):
        result_of(reply)  # type: ignore[arg-type] # any JSON


@pytest.mark.parametrize("number", [9999, "3", True, [3], {"a": 3}])
@pytest.mark.parametrize("ending", [{"result": {}}, {"error": {"code": 1}}])
def test_a_reply_to_another_request_is_an_error(number: object, ending: dict[str, object]) -> None:
    with pytest.raises(SubjectError, match=r"the reply is for request .*, not 3$"):
        check_number({"id": number, **ending}, number=3)  # type: ignore[dict-item] # any JSON


def test_true_is_not_the_id_1() -> None:
    with pytest.raises(SubjectError, match="for request true, not 1"):
        check_number({"id": True, "result": {}})


def test_only_an_error_may_have_no_id() -> None:
    with pytest.raises(SubjectError, match="no id, so it may not be for request 3"):
        check_number({"id": None, "result": {}}, number=3)
    with pytest.raises(SubjectError, match="no id"):
        check_number({"result": {}}, number=3)
    check_number({"id": None, "error": {}}, number=3)
    check_number({"error": {}}, number=3)
    check_number({"id": 3.0, "result": {}}, number=3)
