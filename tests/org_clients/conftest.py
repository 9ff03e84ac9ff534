"""An org of its own for every test, as in tests/org."""

from __future__ import annotations

from org.conftest import org, waiting

__all__ = ["org", "waiting"]
