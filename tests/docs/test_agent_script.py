"""The tutorial on Agent Script: its files are saved, its commands run, and they print what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (Path(__file__).parents[2] / "docs/agent-script.md").read_text()
TUTORIAL = PAGE[PAGE.index("## Test an agent") : PAGE.index("## Talk to the agent")]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def test_the_commands_print_what_the_tutorial_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    codes, printed = [], ""
    for kind, title, content in BLOCK.findall(TUTORIAL):
        if title:
            Path(title).parent.mkdir(parents=True, exist_ok=True)
            Path(title).write_text(content)
        elif kind == "bash":
            with pytest.raises(SystemExit) as left:
                main(content.split()[1:])
            codes.append(left.value.code)
            captured = capsys.readouterr()
            printed = f"{captured.out}{captured.err}"
        else:
            assert content.strip() in printed
    assert codes == [2, 1, 0, 0]


def test_the_sample_agent_passes_its_tests(copy_samples: Callable[[str], Path]) -> None:
    copy_samples("agent-script")
    with pytest.raises(SystemExit) as left:
        main(["run", "specs"])
    assert left.value.code == 0
