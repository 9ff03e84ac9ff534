"""Google's ADK: eval sets of both its languages and what came before them, declared here as a format of test files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from evalmeta.errors import FormatError
from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.registry import FileHead, Format
from evalmeta.systems.adk.cases import ADK_CONFIG, Dialect

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.formats.diagnostics import Written
    from evalmeta.model.definition import Definition
    from evalmeta.model.json_value import JsonObject


_EVAL_SET: Final = ".evalset.json"
_ARRAY: Final = ".test.json"
_ARRAY_KEYS: Final = {"query", "expected_tool_use"}


@dataclass(frozen=True, slots=True)
class _Adk(Format):
    """The format; `dialect` is that of the files that it writes."""

    dialect: Dialect = "python"

    name = "adk"
    description = "an eval set of ADK (evalCases) or an array from before eval sets (query)"
    keys = ("evalCases", "eval_cases", "evalSetId", "eval_set_id")
    item_keys = ("query", "initial_session", "data")
    defaults = ("list",)
    similar_keys = ("evalCases", "evalSetId")
    other_files = (
        ("it has results of ADK", ("eval_set_result_id",)),
        ("it has results of ADK", ("eval_case_results",)),
        ("it has ADK's criteria, which judge the files beside it", ("criteria",)),
    )
    settings_file = ADK_CONFIG
    is_written = True
    kept_checks = ("state",)
    takes_names = False

    def is_test(self, head: FileHead) -> bool:
        if head.content != "json":
            return False
        may_be_array = bool(head.format) or not isinstance(head.value, dict)
        is_named = head.name.endswith(_EVAL_SET) or (head.name.endswith(_ARRAY) and may_be_array)
        return is_named or any(_ARRAY_KEYS.issubset(row) for row in head.rows)

    def refusal(self, value: JsonObject, label: str) -> FormatError | None:
        if "criteria" not in value:
            return None
        action = f"Name the files beside it, or their folder; it must be called {ADK_CONFIG} to judge them."
        return FormatError(f"{label} is ADK's configuration, not a test", actions=[action])

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.systems.adk.reader import read_file

        return read_file(path, label=label, name=name, reading=reading)

    def write(self, definition: Definition) -> Written:
        from evalmeta.systems.adk.writer import write_adk

        return write_adk(definition, dialect=self.dialect)

    def rewrite(self, path: Path, *, label: str) -> Written:
        from evalmeta.systems.adk.writer import respell

        return respell(read_bytes(path), label=label, name=path.name.split(".")[0], dialect=self.dialect)

    def in_dialect(self, dialect: str) -> Self:
        return type(self)("typescript" if dialect == "typescript" else "python")


ADK: Final = _Adk()
