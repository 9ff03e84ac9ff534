"""Asking an installed sf CLI for its session with an org; its own files are never read."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import LoginFailed, MessageUnreadable, UsageError
from evalmeta.model.secrecy import child_environment, redacted
from evalmeta.wire.addresses import org_url
from evalmeta.wire.jsonfields import object_at, read_object, text
from evalmeta.wire.oauth import TokenReply

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["ask_sf"]

# A session id or a JWT. Since 2026 sf writes a remark in its place, and tells the token only where asked for it.
_TOKEN: Final = re.compile(r"[\w.!-]{15,}", re.ASCII)


async def ask_sf(org: str) -> TokenReply:
    """Asks for the address and a fresh access token of an org that sf knows by this alias or username.

    Raises:
        UsageError: no sf is installed.
        LoginFailed: it does not know the org, has no session with it, or takes too long.
    """
    shown = await _run(org, "display", "--verbose")
    token = text(shown, "accessToken")
    if not _TOKEN.fullmatch(token):
        token = text(await _run(org, "auth", "show-access-token"), "accessToken")
    if not (_TOKEN.fullmatch(token) and text(shown, "instanceUrl")):
        raise LoginFailed(f"sf tells no session for {org}", actions=[f"See what it says: sf org display -o {org}"])
    return TokenReply(token, org_url(text(shown, "instanceUrl")))


async def _run(org: str, *words: str) -> JsonObject:
    program = shutil.which("sf")
    if program is None:
        raise UsageError("there is no sf on the path", actions=["Install the Salesforce CLI, or log in another way."])
    process = await asyncio.create_subprocess_exec(
        program,
        "org",
        *words,
        f"--target-org={org}",
        "--json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(),
    )
    try:
        async with asyncio.timeout(limits.SF_CLI_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise LoginFailed(f"sf does not answer within {limits.SF_CLI_SECONDS:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _result(output)


def _result(output: bytes) -> JsonObject:
    try:
        reply = read_object(output)
    except MessageUnreadable:
        raise LoginFailed("sf answers, but not with JSON", actions=["Bring it up to date: sf update"]) from None
    if result := object_at(reply, "result"):
        return result
    said = redacted(text(reply, "message")) or "nothing"
    raise LoginFailed(f"sf says: {said}", actions=["See its logins: sf org list"])
