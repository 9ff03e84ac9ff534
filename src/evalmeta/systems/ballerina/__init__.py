"""Ballerina: conversations, agents' traces and datasets, declared here as a format of test files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.registry import FileHead, Format

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue


class _Ballerina(Format):
    name = "ballerina"
    description = "threads or entries of Ballerina"
    keys = ("threads", "entries")
    shared_item_keys = ("input",)

    def recognises(self, value: JsonValue) -> bool:
        # Data providers return each entry in a list.
        return isinstance(value, list) and bool(value) and isinstance(value[0], list)

    def is_test(self, head: FileHead) -> bool:
        return head.name.endswith(".evalset.json")

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.systems.ballerina.reader import read_ballerina

        return read_ballerina(read_bytes(path), label=label, name=name)


BALLERINA: Final = _Ballerina()
