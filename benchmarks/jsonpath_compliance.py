"""Compare references with the compliance suite of RFC 9535 (JSONPath).

    python benchmarks/jsonpath_compliance.py cts.json

`cts.json` is a file of the repository jsonpath-standard/jsonpath-compliance-test-suite. The script prints how many
selectors have the same result, are refused or have another result, and lists those with another result. The
differences are intended; docs/definitions.md explains them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.engine.references import resolve
from evalmeta.model.jsonpath_parser import read_reference

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject


def main(path: Path) -> None:
    """Print the comparison with the suite in a file."""
    counts: Counter[str] = Counter()
    for case in json.loads(path.read_bytes())["tests"]:
        outcome = compare(case)
        counts[outcome] += 1
        if outcome.startswith("other"):
            print(f"{case['name']}: {case['selector']}")
    for outcome, count in counts.most_common():
        print(f"{count:4}  {outcome}")


def compare(case: JsonObject) -> str:
    """Return how the result of a case compares with the standard's."""
    reference = read_reference(str(case["selector"]))
    if case.get("invalid_selector"):
        return "invalid and refused" if isinstance(reference, str) else "invalid, accepted leniently"
    if isinstance(reference, str):
        return "valid, refused with the reason"
    found = list(resolve(reference, case["document"]))
    allowed = [case["result"]] if "result" in case else case["results"]
    return "same result" if found in allowed else "other result"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
