from __future__ import annotations

import traceback

from evalmeta.errors import EvalmetaError


def test_a_traceback_says_what_to_try() -> None:
    error = EvalmetaError("no agent", actions=["Bind one.", "Or name another."])
    assert traceback.format_exception(error)[-2:] == ["Try this: Bind one.\n", "Try this: Or name another.\n"]
