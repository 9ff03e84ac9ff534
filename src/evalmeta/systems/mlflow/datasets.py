"""Datasets of evaluations, kept in memory: `create_dataset`, `merge_records`, `to_df`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

from evalmeta.errors import UsageError
from evalmeta.model.json_value import frame_rows, is_frame, plain_value
from evalmeta.systems.databricks.tables import table_of
from evalmeta.systems.mlflow.entities import Trace

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue

_datasets: Final[dict[str, EvaluationDataset]] = {}


class EvaluationDataset:
    """Rows with inputs and expectations under a name, for this process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dataset_id = f"d-{name}"
        self.records: list[JsonObject] = []

    def merge_records(self, records: object) -> EvaluationDataset:
        """Add rows, data frames of rows, or traces; a row with known inputs replaces the earlier one."""
        rows: Iterable[object] = frame_rows(records) if is_frame(records) else cast("Iterable[object]", records)
        for row in rows:
            record = _record(row)
            self.records = [known for known in self.records if known.get("inputs") != record.get("inputs")]
            self.records.append(record)
        return self

    def to_df(self) -> object:
        """Return the rows as a data frame, or as they are without pandas."""
        return table_of([dict(record) for record in self.records])

    def __len__(self) -> int:
        return len(self.records)


def _record(row: object) -> JsonObject:
    if isinstance(row, Mapping) and "trace" in row and "inputs" not in row:
        row = Trace.from_json(str(row["trace"])) if isinstance(row["trace"], str) else row["trace"]
    if isinstance(row, Trace):
        root = next((span for span in row.data.spans if span.parent_id is None), None)
        noted = {kept.name: plain_value(kept.value) for kept in row.search_assessments(type="expectation")}
        record: dict[str, JsonValue] = {"inputs": plain_value(root.inputs) if root else None}
        return {**record, "expectations": noted} if noted else record
    if not isinstance(row, Mapping):
        raise UsageError(f"a record is of type {type(row).__name__}, not a dict with 'inputs'")
    wanted = ("inputs", "expectations", "tags", "outputs")
    return {key: plain_value(row[key]) for key in wanted if row.get(key) is not None}


def create_dataset(name: str | None = None, **others: object) -> EvaluationDataset:
    """Make an empty dataset."""
    called = str(name or others.get("uc_table_name") or "dataset")
    _datasets[called] = EvaluationDataset(called)
    return _datasets[called]


def get_dataset(name: str | None = None, **others: object) -> EvaluationDataset:
    """Return a dataset that this process made; raise UsageError if it made none with this name."""
    called = str(name or others.get("uc_table_name") or others.get("dataset_id") or "").removeprefix("d-")
    if called not in _datasets:
        raise UsageError(
            f"this process has no dataset {called!r}",
            actions=["Make it with create_dataset, or pass the rows of a file to evaluate."],
        )
    return _datasets[called]


def delete_dataset(name: str | None = None, **others: object) -> None:
    """Forget a dataset of this process."""
    dataset = get_dataset(name, **others)
    _datasets.pop(dataset.name)
