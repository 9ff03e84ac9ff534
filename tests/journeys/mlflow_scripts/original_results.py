"""Runs scripts with MLflow itself, and prints their metrics and the values of their rows."""

import json
import math
import runpy
import sys


def number(value):
    if isinstance(value, float | int) and not isinstance(value, bool):
        return None if math.isnan(value) else float(value)
    # The table of MLflow leaves out expected values that are lists.
    return None if isinstance(value, list) else value


def plain_result(result):
    rows = result.tables["eval_results"].to_dict("records")
    values = [{key: number(value) for key, value in row.items() if key.endswith("/value")} for row in rows]
    kept = [{key: value for key, value in row.items() if value is not None} for row in values]
    metrics = {name: round(float(value), 9) for name, value in result.metrics.items()}
    return {"metrics": metrics, "rows": sorted(json.dumps(row, sort_keys=True) for row in kept)}


if __name__ == "__main__":
    print(json.dumps({file: plain_result(runpy.run_path(file)["result"]) for file in sys.argv[1:]}))
