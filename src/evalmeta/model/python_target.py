"""References to Python objects as `module:name`."""

from __future__ import annotations

import re
from typing import Final

EXAMPLE: Final = "my_agent:answer"
_PARTS: Final = re.compile(r"[\w.]+")


def is_target(text: str) -> bool:
    """Return whether a text is a valid `module:name`; both parts may have dots, and `shop.py` is a file."""
    module, _, name = text.partition(":")
    return not module.endswith(".py") and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def likely_target(text: str, *, name: str = "answer") -> str:
    """Return the `module:name` that was probably meant by a path or a dotted name.

    `name` replaces a name that is missing. `agents/shop:answer` and `agents\\shop.py:answer` mean `agents.shop:answer`.
    """
    # A Windows path begins with a drive and a colon.
    module, colon, given = text.rpartition(":") if ":" in text[2:] else (text, "", "")
    if not colon:
        is_path = module.endswith(".py") or "/" in module or "\\" in module
        module, _, given = (module, "", "") if is_path or "." not in module else module.rpartition(".")
    module = re.sub(r"[/\\]+", ".", module.removesuffix(".py")).strip(".")
    parts = [module or "my_agent", given or name]
    target = ":".join(parts)
    return target if all(map(_PARTS.fullmatch, parts)) and is_target(target) else EXAMPLE
