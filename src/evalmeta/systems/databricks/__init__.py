"""Databricks Agent Evaluation and MLflow: evaluation sets, declared here as a format of test files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.formats.diagnostics import Written
from evalmeta.formats.registry import FileHead, Format

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evalmeta.formats.document import Document, Reading
    from evalmeta.model.definition import Definition


_EXPECTED: Final = ("expected_response", "expected_facts", "expected_retrieved_context", "guidelines", "expectations")


class _Databricks(Format):
    name = "databricks"
    description = "an evaluation set of Databricks (request)"
    begin = b"PAR1"
    keys = ("request", "inputs", "trace", "rows", "info")
    item_keys = ("request", "inputs", "trace", "info")
    columns = ("request", "inputs", "trace")
    defaults = ("lines",)
    is_written = True
    takes_names = False

    def is_test(self, head: FileHead) -> bool:
        return any(map(_is_evaluation_row, head.rows))

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.systems.databricks.evaluation_sets import RowOptions, read_databricks_file

        options = RowOptions(metrics=reading.metrics, is_asked=reading.is_asked)
        options["global_guidelines"] = reading.global_guidelines or None
        return read_databricks_file(path, label=label, name=name, **options)

    def write(self, definition: Definition) -> Written:
        from evalmeta.systems.databricks.evaluation_sets import write_databricks

        return write_databricks(definition)

    def write_spec(self, path: Path, *, label: str, subject: str | None) -> Written:
        from evalmeta.systems.databricks.specs import write_spec

        return write_spec(path, label=label, subject=subject)

    def rewrite(self, path: Path, *, label: str) -> Written:
        from evalmeta.systems.databricks.evaluation_sets import copy_rows

        return Written(copy_rows(path, label=label))


def _is_evaluation_row(keys: Iterable[str]) -> bool:
    """Return whether keys are those of a row that Databricks judges."""
    names = {*keys}
    return ("request" in names and not names.isdisjoint(_EXPECTED)) or {"inputs", "expectations"} <= names


DATABRICKS: Final = _Databricks()
