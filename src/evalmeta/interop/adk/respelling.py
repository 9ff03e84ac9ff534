"""Files of ADK written for the other program that reads them, with everything that they say."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.interop.adk.keys import both, snake
from evalmeta.interop.adk.reader import LEGACY, read_adk_file
from evalmeta.interop.adk.writer import write_adk_cases
from evalmeta.interop.losses import Loss, Written

if TYPE_CHECKING:
    from evalmeta.interop.adk.legacy import Dialect
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["respell"]

_KEYS: Final = (
    *("evalSetId", "evalCases", "creationTimestamp", "evalId", "conversationScenario", "sessionInput"),
    *("finalSessionState", "invocationId", "userContent", "finalResponse", "intermediateData", "appDetails"),
    *("appName", "userId", "sessionId", "toolUses", "toolResponses", "intermediateResponses", "invocationEvents"),
    *("inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"),
    *("partialArgs", "willContinue", "rubricId", "rubricContent", "textProperty", "mimeType", "fileUri"),
    *("displayName", "startOffset", "endOffset"),
)
_SPELLINGS: Final[dict[Dialect, dict[str, str]]] = {
    "python": {name: snake(name) for name in _KEYS},
    "typescript": {spelling: name for name in _KEYS for spelling in both(name)},
}
_USERS: Final = frozenset(chain.from_iterable(map(both, ("state", "args", "finalSessionState", "partMetadata"))))
_ANSWERS: Final = frozenset((*both("functionResponse"), *both("toolResponses")))


def respell(data: bytes, *, label: str, name: str, dialect: Dialect) -> Written:
    """Writes a file of ADK in the spelling of a dialect; of an eval set only ADK's own keys change.

    An array of the form before eval sets becomes an eval set; keys of it that are passed over are its losses.

    Args:
        data: the file.
        label: its path, for messages.
        name: what an eval set is called that is made of an array.
        dialect: who is to read it.

    Raises:
        FormatError: the file cannot be read; `problems` has every reason.
    """
    file = read_adk_file(data, label=label)
    if file.dialect is None:
        spelt = _respelt(orjson.loads(data.removeprefix(b"\xef\xbb\xbf")), _SPELLINGS[dialect])
        return Written(orjson.dumps(spelt, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    losses = (Loss(f"line {each.location.line}", each.message) for each in file.notes if each.code != LEGACY)
    return Written(write_adk_cases(file.cases, name=name, dialect=dialect), tuple(losses))


def _respelt(value: JsonValue, spellings: dict[str, str], *, is_answer: bool = False) -> JsonValue:
    """Gives a value with other spellings of its keys; what the user's own tools and sessions hold stays as it is."""
    if isinstance(value, list):
        return [_respelt(each, spellings, is_answer=is_answer) for each in value]
    if not isinstance(value, dict):
        return value
    users = _USERS | {"response"} if is_answer else _USERS
    return {
        spellings.get(key) or key: inner if key in users else _respelt(inner, spellings, is_answer=key in _ANSWERS)
        for key, inner in value.items()
    }
