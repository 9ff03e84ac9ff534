"""The page about coverage shows what the command prints for the sample agent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (Path(__file__).parents[2] / "docs/coverage.md").read_text()


def test_the_table_of_the_page_is_what_the_command_prints(
    copy_samples: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    copy_samples("agent-script")
    with pytest.raises(SystemExit) as left:
        main(["coverage"])
    assert left.value.code == 0
    shown = re.search(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert shown
    assert shown[1].strip() in capsys.readouterr().out


def test_the_commands_of_the_page_exit_as_it_says(copy_samples: Callable[[str], Path]) -> None:
    copy_samples("agent-script")
    codes = []
    for line in re.findall(r"^evalmeta (coverage.*?)(?:#.*)?$", PAGE, re.MULTILINE):
        with pytest.raises(SystemExit) as left:
            main(line.split())
        codes.append(left.value.code)
    assert codes == [0, 0, 0]
