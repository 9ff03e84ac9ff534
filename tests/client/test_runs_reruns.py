from __future__ import annotations

import orjson
import pytest

from client.servers import answering, connect
from evalmeta.client.runs import extend_run, fetch_definition, rescore_run
from evalmeta.errors import MessageUnreadable, NotFound, OrgFault, UsageError
from evalmeta.model.run import ContentKind, RunContent
from evalmeta.model.run_options import RunOptions
from evalmeta.protocol.runs import RunDefinition

RUN = "4KB000000000001GAA"


def fault(code: str, message: str, status: int = 400) -> tuple[int, bytes]:
    return status, orjson.dumps([{"errorCode": code, "message": message}])


@pytest.mark.parametrize(("now", "read"), [("Yg==", b"b"), (None, None)])
def test_a_definition_comes_as_it_was_and_as_it_is(now: str | None, read: bytes | None) -> None:
    transport, _ = answering((200, orjson.dumps({"then": "YQ==", "now": now, "isAbandoned": True})))
    found = connect(transport, lambda connection: fetch_definition(connection, RUN))
    assert found == RunDefinition(RunContent(b"a"), read, is_abandoned=True)


@pytest.mark.parametrize(
    ("kind", "read"), [("file", ContentKind.FILE), ("payload", ContentKind.PAYLOAD), ("new", ContentKind.DEFINITION)]
)
def test_a_definition_comes_with_the_kind_of_its_content(kind: str, read: ContentKind) -> None:
    transport, _ = answering((200, orjson.dumps({"then": "YQ==", "kind": kind, "now": None})))
    found = connect(transport, lambda connection: fetch_definition(connection, RUN))
    assert found.original == RunContent(b"a", read)


def test_a_definition_that_is_not_base64_is_unreadable() -> None:
    transport, _ = answering((200, orjson.dumps({"then": "<xml/>"})))
    with pytest.raises(MessageUnreadable):
        connect(transport, lambda connection: fetch_definition(connection, RUN))


def test_a_run_is_extended_and_rescored_in_its_org() -> None:
    transport, requests = answering((200, orjson.dumps({"runId": "4KB2"})))
    connect(transport, lambda connection: extend_run(connection, RUN, iterations=3))
    made = connect(transport, lambda connection: rescore_run(connection, RUN, RunOptions(), as_deployed=True))
    assert made == "4KB2"
    assert [request.url.path.rpartition("/")[2] for request in requests] == ["extend", "rescore"]
    assert orjson.loads(requests[0].content) == {"iterations": 3}
    assert orjson.loads(requests[1].content)["asDeployed"] is True


def test_what_a_run_cannot_do_is_wrong_usage_in_the_orgs_words() -> None:
    transport, _ = answering(fault("INVALID_STATUS", "Run 1 is not over"))
    with pytest.raises(UsageError, match=r"^Run 1 is not over$"):
        connect(transport, lambda connection: extend_run(connection, RUN, iterations=3))


@pytest.mark.parametrize(
    ("reply", "kind"), [(fault("NOT_FOUND", "none", 404), NotFound), (fault("UNKNOWN", "odd"), OrgFault)]
)
def test_other_refusals_stay_what_they_are(reply: tuple[int, bytes], kind: type[Exception]) -> None:
    transport, _ = answering(reply)
    with pytest.raises(kind):
        connect(transport, lambda connection: extend_run(connection, RUN, iterations=3))
