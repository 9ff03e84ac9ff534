"""evalmeta's own formats, as `Format` declares them: definitions, test specs, and tables of the Testing Center.

Which files in folders are test specs or tables is decided in `discovery.py`, because their keys may have mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.registry import FileHead, Format
from evalmeta.model.evaluation import evaluation_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from evalmeta.formats.diagnostics import Written
    from evalmeta.model.definition import Definition


class _OwnFormat(Format):
    is_written = True

    def is_test(self, head: FileHead) -> bool:
        return False


class _Definitions(_OwnFormat):
    name = "definition"
    description = "a definition (XML)"
    begin = b"<"

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.xmlio.definitions import read_definition
        from evalmeta.xmlio.reader import read_xml

        definition = read_definition(read_xml(read_bytes(path, limits.MAX_XML_BYTES), label=label))
        return Document(evaluation_of(definition, name=name))

    def write(self, definition: Definition) -> Written:
        from evalmeta.formats.diagnostics import Written
        from evalmeta.xmlio.definitions import write_definition

        return Written(write_definition(definition))


class _TestSpecs(_OwnFormat):
    name = "testspec"
    description = "a test spec (YAML), test cases in JSON Lines or a table (input)"
    keys = ("testCases", "subjectName", "cases", "input")
    defaults = ("text", "object")

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.formats.testspec import read_spec_file

        return read_spec_file(path, label=label, needs_cases=True).document(name)

    def write(self, definition: Definition) -> Written:
        from evalmeta.formats.testspec_writer import write_testspec

        return write_testspec(definition)


class _Tables(_OwnFormat):
    name = "csv"
    description = "a table of the Testing Center (CSV)"

    def has_columns(self, titles: Collection[str]) -> bool:
        return "utterance" in {title.lower() for title in titles}

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.formats.testing_center_csv import read_table_file

        return read_table_file(path, label=label, name=name)

    def write(self, definition: Definition) -> Written:
        from evalmeta.formats.testing_center_csv import write_testing_center_csv

        return write_testing_center_csv(definition)


DEFINITION: Final = _Definitions()
TESTSPEC: Final = _TestSpecs()
CSV: Final = _Tables()
