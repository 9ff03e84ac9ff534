"""Google's ADK: eval sets of both its languages, their criteria, and what came before them."""

from __future__ import annotations

from typing import Final, Literal

Dialect = Literal["python", "typescript"]
ADK_CONFIG: Final = "test_config.json"
"""The file beside ADK's files that has their criteria."""
