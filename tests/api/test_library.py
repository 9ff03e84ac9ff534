from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).parent.parent.parent / "docs/library.md"
# What packages add is installed and run in tests/docs/test_packages.py.
PROGRAMS = PAGE.read_text().partition("\n## Checks of your own\n")[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", PROGRAMS, re.DOTALL)
PRINTED = (
    "2 of 2\n",
    (
        "1.0 PASS\n3\n"
        "Case_Care_Assertions True\nField_Service_Appointments True\nFollow_Up_Conversations True\n"
        "Order_Desk_Criteria True\nRefund_Limits True\nWorld_Accounts True\nmy_test_n1 True\n"
    ),
    (
        "[('equals \"It is on its way.\"', 1.0), ('function finds_it_once', 1.0), ('function length', 17.0), "
        "('function is_short', 1.0)]\n"
    ),
    "<ComparedRuns WORSE, 8 suspect> True\n8\n",
    "1 2\n1 2\n",
    "2000 []\n",
    "Agentforce_for_Salesforce 2\n1.0\n",
)


@pytest.mark.parametrize(("code", "printed"), [*zip(EXAMPLES, PRINTED, strict=True)], ids=range(1, len(EXAMPLES) + 1))
def test_the_examples_of_the_library_page_run(
    copy_samples: Callable[..., Path], capsys: pytest.CaptureFixture[str], code: str, printed: str
) -> None:
    copy_samples()

    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})  # noqa: S102 - our own page

    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_mypy_accepts_every_example_of_the_library_page(tmp_path: Path) -> None:
    """As pyright does; see tests/python_tools."""
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL), 1):
        (tmp_path / f"example_{number}.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache")]

    done = subprocess.run(
        [*command, *map(str, tmp_path.glob("*.py"))], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
