"""What orgs of evalmeta's do with runs besides: compare their definitions, extend them, judge their answers again."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.client.agent_tests import kind_of_run, runs_path
from evalmeta.client.retries import persist
from evalmeta.errors import MessageUnreadable, OrgFault, UsageError
from evalmeta.wire.jsonfields import optional_text, text
from evalmeta.wire.runoptions import write_options

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.run import RunOptions

__all__ = ["DefinitionOfRun", "extend_run", "fetch_definition", "rescore_run"]


class DefinitionOfRun(NamedTuple):
    """A run's definition as it was when the run was made, and as it is deployed now (None: no more)."""

    then: bytes
    now: bytes | None
    is_abandoned: bool


async def fetch_definition(connection: Connection, run_id: str) -> DefinitionOfRun:
    """Gives what a run asks, what is deployed now, and whether nobody works on the run.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached or refuses the call.
    """
    reply = await persist(lambda: connection.get(f"{_path(run_id)}/definition"), every=connection.poll_seconds)
    now = optional_text(reply, "now")
    then = _content(text(reply, "then"))
    return DefinitionOfRun(then, None if now is None else _content(now), reply.get("isAbandoned") is True)


async def extend_run(connection: Connection, run_id: str, *, iterations: int) -> None:
    """Gives a run that is over more iterations; only the new ones are asked.

    Raises:
        NotFound: no such run is in the org.
        UsageError: the run is not over, or has as many iterations already.
        OrgError: the org cannot be reached or refuses the call.
    """
    await _post(connection, f"{_path(run_id)}/extend", {"iterations": iterations})


async def rescore_run(connection: Connection, run_id: str, options: RunOptions, *, as_deployed: bool) -> str:
    """Starts a run that judges the answers of one that is over again, and gives its id.

    `as_deployed` judges by the definition as it is deployed now, not as it was then.

    Raises:
        NotFound: no such run is in the org.
        UsageError: the run is not over, or an option is beyond its limit.
        OrgError: the org cannot be reached or refuses the call.
    """
    body: JsonObject = {"runOptions": write_options(options), "asDeployed": as_deployed}
    return await _post(connection, f"{_path(run_id)}/rescore", body)


async def _post(connection: Connection, path: str, body: JsonObject) -> str:
    try:
        reply = await persist(lambda: connection.post(path, body), every=connection.poll_seconds, changes=True)
    except OrgFault as fault:
        if fault.code not in {"INVALID_STATUS", "INVALID_API_INPUT"}:
            raise
        raise UsageError(str(fault).removeprefix(f"{fault.code}: ")) from None
    return text(reply, "runId")


def _path(run_id: str) -> str:
    return f"{runs_path(kind_of_run(run_id))}/{run_id}"


def _content(encoded: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except binascii.Error:
        raise MessageUnreadable("the definition of a run is no base64") from None
