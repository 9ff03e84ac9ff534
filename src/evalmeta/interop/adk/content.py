"""What is said and called in ADK's files: content with its parts, and function calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.interop.adk.keys import Keys, both

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.interop.jsonrecords import JsonRecord
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["Call", "read_content", "read_intermediate"]

_MEDIA: Final = (
    *("inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
_MEDIA_KEYS: Final = frozenset(spelling for name in _MEDIA for spelling in both(name))
_PART: Final = ("text", "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", *_MEDIA)
_CALL: Final = ("id", "name", "args", "partialArgs", "willContinue")
_EVENT: Final = ("author", "content")
_INTERMEDIATE: Final = ("toolUses", "toolResponses", "intermediateResponses", "invocationEvents")


class Call(NamedTuple):
    """A tool call that is expected."""

    name: str
    args: JsonObject

    def as_json(self) -> JsonObject:
        """Gives the call as scorers are told it."""
        return {"name": self.name, "args": self.args}


class Content(NamedTuple):
    """What was said.

    Attributes:
        text: its parts with text, a line each; None when no part has a text.
        others: the kinds of its other parts, such as `inline_data`.
    """

    text: str | None
    others: tuple[str, ...]


def read_content(record: JsonRecord, keys: Keys) -> Content:
    """Reads a message: the text of its parts, without those that are thoughts."""
    keys.check(record, "role", "parts")
    texts: list[str] = []
    others: list[str] = []
    for part in record.records("parts", called="a part"):
        keys.check(part, *_PART)
        others += (key for key, value in part.values.items() if key in _MEDIA_KEYS and value is not None)
        text = part.text("text")
        if text is not None and not part.boolean("thought"):
            texts.append(text)
    return Content("\n".join(texts) if texts else None, tuple(others))


def read_intermediate(record: JsonRecord, keys: Keys) -> tuple[Call, ...] | None:
    """Reads the tool calls of a turn's intermediate data, in both forms; None when it has none of them."""
    keys.check(record, *_INTERMEDIATE)
    if record.has(*both("toolUses")) and record.has(*both("invocationEvents")):
        message = "the expected tool calls stand twice, in 'toolUses' and in 'invocationEvents'"
        record.refuse("adk-form", message, *both("invocationEvents"), hint="Keep one of them.")
    if record.has(*both("invocationEvents")):
        return tuple(_event_calls(record, keys))
    if not record.has(*both("toolUses")):
        return None
    return tuple(_call(each, keys) for each in record.records(*both("toolUses"), called="a tool use"))


def _event_calls(record: JsonRecord, keys: Keys) -> Iterator[Call]:
    for event in record.records(*both("invocationEvents"), called="an event"):
        keys.check(event, *_EVENT)
        content = event.record("content", called="an event's content")
        for part in content.records("parts", called="a part") if content else ():
            keys.check(part, *_PART)
            if call := part.record(*both("functionCall"), called="a function call"):
                yield _call(call, keys)


def _call(record: JsonRecord, keys: Keys) -> Call:
    keys.check(record, *_CALL)
    return Call(record.required_text("name"), record.object("args") or {})
