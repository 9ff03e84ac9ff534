from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (("depoly",), "No such command 'depoly'. Did you mean 'deploy'?"),
        (("org", "strat"), "Did you mean 'start'?"),
        (("xyzzy",), "No such command 'xyzzy'.\n"),
        (("deploy", "package.xml"), "Files are named with --manifest or --source-dir"),
        (("test", "run", "Orders", "--wait"), "Is it a test in the org? Then: -n Orders"),
    ],
)
def test_a_word_that_was_not_understood_is_told_with_what_may_be_meant(
    evalmeta: Program, call: tuple[str, ...], hint: str
) -> None:
    refused = evalmeta(*call)
    assert (refused.code, hint in refused.err) == (2, True)
