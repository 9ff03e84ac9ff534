from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

PAGE = Path(__file__).parent.parent.parent / "docs/library.md"


def test_the_example_of_the_library_page_runs(
    copy_samples: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    copy_samples()
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)

    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})  # noqa: S102 - our own page

    assert capsys.readouterr().out == "Agentforce_for_Salesforce 2\n1.0\n"
