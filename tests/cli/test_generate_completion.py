from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_names_the_program(evalmeta: Program, shell: str) -> None:
    done = evalmeta("completion", shell)

    assert done.code == 0
    assert f"_EVALMETA_COMPLETE={shell}_complete" in done.out


def test_another_shell_is_a_usage_error(evalmeta: Program) -> None:
    assert evalmeta("completion", "tcsh").code == 2


def test_the_program_answers_the_script(program: list[str]) -> None:
    asked = {**os.environ, "_EVALMETA_COMPLETE": "bash_complete", "COMP_WORDS": "evalmeta man", "COMP_CWORD": "1"}
    done = subprocess.run(program, env=asked, capture_output=True, text=True, check=False, timeout=120)

    assert done.stdout == "plain,manifest\n"
