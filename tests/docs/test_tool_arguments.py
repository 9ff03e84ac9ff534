from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/tool-arguments.md").read_text()
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE))


def test_the_example_in_python_passes(tmp_path: Path) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    program = f"import evalmeta\n{FILES['agents.py']}\n{example}\nprint(result.summary.passed, result.summary.total)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.returncode) == ("1 1\n", 0), done.stderr
