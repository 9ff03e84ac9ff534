"""Paths into the state of an agent's session, as the check `state` writes them.

A path is a JSONPath. Without `$`, it is names and indexes: `order.items[0].id` is `$['order']['items'][0]['id']`.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"(?:^|\.)([^.\[\]*]+)")
_PLAIN_NAME: Final = re.compile(r"[^\s.\[\]*$'\"\\][^.\[\]*'\"\\]*(?<!\s)")


def state_reference(path: str) -> str:
    """Return the JSONPath that a path into a state stands for."""
    path = path.strip()
    return path if path.startswith("$") else f"${_NAME.sub(lambda step: _quoted(step[1]), path)}"


def state_path(name: str) -> str:
    """Return the path to a value of a state by its name, which can have any characters."""
    return name if _PLAIN_NAME.fullmatch(name) else f"${_quoted(name)}"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"
