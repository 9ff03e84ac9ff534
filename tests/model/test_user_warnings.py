from __future__ import annotations

from types import FunctionType

import pytest

from evalmeta.model import user_warnings
from evalmeta.model.user_warnings import warn_user


def test_a_warning_has_the_line_of_the_users_call_behind_any_number_of_calls_of_evalmeta() -> None:
    def call(depth: int) -> None:
        own(depth - 1) if depth else warn_user("not kept", DeprecationWarning)

    own = FunctionType(call.__code__, {**vars(user_warnings)}, closure=call.__closure__)

    for depth in range(3):
        with pytest.warns(DeprecationWarning, match="not kept") as caught:
            own(depth)
        assert [warning.filename for warning in caught] == [__file__]
