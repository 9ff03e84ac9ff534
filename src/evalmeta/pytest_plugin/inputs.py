"""The parameters that a test was given, as JSON: what reports show of them."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Final

from _pytest._io.saferepr import saferepr

from evalmeta.report.plain import escape_unsafe

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NO_INPUTS", "inputs_text"]

NO_INPUTS: Final = "no data provider: the test has no parameters"


def inputs_text(parameters: Mapping[str, object]) -> str:
    """Gives parameters by their names as a JSON object on one line; of what JSON does not know, its `repr`."""
    return escape_unsafe(
        "{" + ", ".join(f"{json.dumps(name)}: {_text(each)}" for name, each in parameters.items()) + "}"
    )


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(saferepr(value), ensure_ascii=False)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return saferepr(value)
