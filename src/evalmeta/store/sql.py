"""Values and rows of SQL, whatever the database."""

from __future__ import annotations

from typing import Any, TypeAlias

Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Any, ...]  # type: ignore[explicit-any] # only the SQL knows the types of the columns
