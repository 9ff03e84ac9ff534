"""An org on loopback that says of every deployment what it is told to say."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson

from client.servers import TOKEN, http_reply, listening
from evalmeta.protocol.metadata_api import AsyncResult, CancelResult, DeployResult, FileProperties, RetrieveResult
from evalmeta.protocol.soap import read_call, write_results, write_text_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from client.servers import Loopback
    from evalmeta.protocol.soap import Call

__all__ = ["CANCELED", "GOING_ON", "JOB", "RETRIEVING", "SUCCEEDED", "calls_of", "remote"]

JOB = "0Af000000000001CAA"
GOING_ON = DeployResult(
    JOB, "InProgress", done=False, success=False, number_components_total=7, number_components_deployed=2
)
SUCCEEDED = DeployResult(JOB, "Succeeded", done=True, success=True)
CANCELED = DeployResult(JOB, "Canceled", done=True, success=False, canceled_by_name="Ada")
RETRIEVING = RetrieveResult("09S000000000001CAA", "InProgress", done=False, success=False)


@contextmanager
def remote(
    monkeypatch: pytest.MonkeyPatch, *statuses: DeployResult | bytes, accepts: bool = True
) -> Iterator[Loopback]:
    """Makes commands talk to an org that gives these statuses in turn, the last one again and again.

    Bytes are whole replies. An org that does not accept hangs up on deployments.
    """
    waiting = list(statuses)

    def answer(request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        if b"/services/Soap/" not in head:
            return http_reply(200, orjson.dumps([{"version": "67.0", "label": "x", "url": "/services/data/v67.0"}]))
        call = read_call(body)
        said = _say(call, waiting) if accepts or call.name != "deploy" else b""
        return said if said.startswith(b"HTTP") or not said else http_reply(_status(said), said)

    with listening(answer) as server:
        monkeypatch.setenv("SF_ORG_INSTANCE_URL", server.url)
        monkeypatch.setenv("SF_ACCESS_TOKEN", TOKEN)
        yield server


def calls_of(server: Loopback) -> list[Call]:
    """Gives the calls that an org got over SOAP."""
    bodies = [request.partition(b"\r\n\r\n") for request in server.requests]
    return [read_call(body) for head, _, body in bodies if b"/services/Soap/" in head]


def _say(call: Call, waiting: list[DeployResult | bytes]) -> bytes:
    match call.name:
        case "deploy" | "retrieve":
            return write_results(call.name, [AsyncResult(done=False, id=JOB)])
        case "cancelDeploy":
            return write_results(call.name, [CancelResult(done=False, id=JOB)])
        case "deployRecentValidation":
            return write_text_result(call.name, JOB)
        case "listMetadata":
            return write_results(call.name, list[FileProperties]())
        case "checkRetrieveStatus":
            return write_results(call.name, [RETRIEVING])
        case _:
            said = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return said if isinstance(said, bytes) else write_results(call.name, [said])


def _status(reply: bytes) -> int:
    return 500 if b"Fault" in reply else 200
