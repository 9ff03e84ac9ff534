from __future__ import annotations

import orjson
import pytest

from evalmeta import limits
from evalmeta.model.json_value import is_too_deep

MOST = limits.MAX_JSON_DEPTH


@pytest.mark.parametrize("ends", [("[", "]"), ('{"a":', "}"), ("[1,", ",2]")])
@pytest.mark.parametrize("innermost", ["[]", "{}", '["["]'])
def test_levels_are_counted_up_to_the_limit(ends: tuple[str, str], innermost: str) -> None:
    for levels, too_deep in ((MOST, False), (MOST + 1, True), (MOST + 300, True)):
        nested = ends[0] * (levels - 1) + innermost + ends[1] * (levels - 1)
        assert is_too_deep(orjson.loads(nested)) is too_deep


@pytest.mark.parametrize("value", [None, 1, "[" * 1_000, [], {}, [[], {"a": {}}] * 1_000])
def test_what_is_flat_is_not_too_deep(value: object) -> None:
    assert not is_too_deep(value)
