"""A program called sf on the path: it notes how it was called, and answers what it was told to."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pytest

__all__ = ["install"]

_ANSWER = """\
result = REPLIES.get(sys.argv[2])
if result is None:
    name = sys.argv[-2].partition("=")[2]
    print(json.dumps({"status": 1, "message": f"No authorization information found for {name}."}))
    sys.exit(1)
print(json.dumps({"status": 0, "result": result, "warnings": []}))
"""


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, replies: Mapping[str, object], *, code: str = _ANSWER
) -> Callable[[], list[list[str]]]:
    """Put a fake sf first on the PATH; `replies` are its results by second word. Return the log of its calls."""
    calls = folder / "calls.jsonl"
    script = folder / "bin" / "sf"
    script.parent.mkdir()
    head = f"#!{sys.executable}\nimport json, sys\nREPLIES = json.loads({json.dumps(json.dumps(replies))})\n"
    note = f"with open({str(calls)!r}, 'a') as file:\n    file.write(json.dumps(sys.argv[1:]) + '\\n')\n"
    script.write_text(head + note + code)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return lambda: [json.loads(line) for line in calls.read_text().splitlines()]
