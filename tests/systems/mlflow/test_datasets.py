"""Datasets that a script keeps in memory."""

from __future__ import annotations

from typing import cast

import pandas as pd
import pytest

from evalmeta import mlflow
from evalmeta.errors import UsageError
from evalmeta.mlflow.entities import Trace
from evalmeta.mlflow.genai import create_dataset, delete_dataset, get_dataset
from evalmeta.systems.mlflow.tracing import recorded_traces

ROW = {"inputs": {"question": "open?"}, "expectations": {"expected_response": "Yes."}, "other": 1, "tags": None}


def traced() -> Trace:
    """Return the trace of one answer, with what a person expects of it."""
    with recorded_traces() as traces, mlflow.start_span("agent") as span:
        span.set_inputs({"question": "open?"})
    mlflow.log_expectation(trace_id=traces[0].info.trace_id, name="expected_response", value="No.")
    return traces[0]


def test_a_row_with_known_inputs_replaces_the_earlier_one_and_other_keys_are_not_kept() -> None:
    dataset = create_dataset("orders").merge_records([ROW, {"inputs": {"question": "late?"}}])
    dataset.merge_records([{**ROW, "expectations": {"expected_response": "No."}}])
    assert len(dataset) == 2
    assert dataset.records == [
        {"inputs": {"question": "late?"}},
        {"inputs": {"question": "open?"}, "expectations": {"expected_response": "No."}},
    ]
    assert list(cast("pd.DataFrame", dataset.to_df())["inputs"]) == [{"question": "late?"}, {"question": "open?"}]


def test_traces_their_texts_and_data_frames_of_them_are_rows_with_what_is_expected() -> None:
    trace = traced()
    row = {"inputs": {"question": "open?"}, "expectations": {"expected_response": "No."}}
    for records in ([trace], [{"trace": trace}], [{"trace": trace.to_json()}], pd.DataFrame({"trace": [trace]})):
        assert create_dataset("traces").merge_records(records).records == [row]
    assert create_dataset("none").merge_records([Trace.from_dict({})]).records == [{"inputs": None}]


def test_a_record_that_is_not_a_mapping_is_refused() -> None:
    with pytest.raises(UsageError, match="a record is of type str, not a dict with 'inputs'"):
        create_dataset("orders").merge_records(["open?"])


def test_a_dataset_is_found_by_its_name_its_table_or_its_id_until_it_is_deleted() -> None:
    dataset = create_dataset(uc_table_name="main.shop.orders")
    assert get_dataset("main.shop.orders") is dataset
    assert get_dataset(uc_table_name="main.shop.orders") is dataset
    assert get_dataset(dataset_id=dataset.dataset_id) is dataset
    delete_dataset("main.shop.orders")
    with pytest.raises(UsageError, match=r"this process has no dataset 'main\.shop\.orders'"):
        get_dataset("main.shop.orders")
