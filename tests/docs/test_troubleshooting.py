from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text()
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
EXAMPLE = "FILE.py:5: KeyError: …"


@pytest.mark.parametrize("message", [message for message in MESSAGES if message != EXAMPLE])
def test_a_message_on_the_page_is_one_that_evalmeta_prints(message: str) -> None:
    parts = [part for part in re.split("…", message) if re.search(r"[a-z]{3}", part)]

    assert parts
    assert [part for part in parts if part.strip() not in sources()] == []


def test_the_page_has_messages_about_each_kind_of_trouble() -> None:
    sections = PAGE.split("\n## ")[1:]

    assert len(sections) >= 6
    assert [section.splitlines()[0] for section in sections if section.count("\n| `") < 3] == []


@cache
def sources() -> str:
    """Return the texts of the program; parts of one message that stand on two lines are joined."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.txt")]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(file.read_text() for file in files))
