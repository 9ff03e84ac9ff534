"""Reads what `evalmeta view --export` wrote."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

if TYPE_CHECKING:
    from pathlib import Path


class Export(NamedTuple):
    """The page of an export, and the data of the others."""

    index: str
    pages: dict[str, dict[str, str]]
    runs: list[dict[str, Any]]
    cases: list[dict[str, Any]]

    @property
    def html(self) -> list[str]:
        """Return the HTML of all pages that evalmeta drew; of the first one, without its style and scripts."""
        head, _, body = self.index.partition("<style>")
        return [
            head,
            body.partition("</style>")[2].partition("<script>")[0],
            *(page["html"] for page in self.pages.values()),
        ]

    def address(self, case: dict[str, Any]) -> str:
        """Return the address of the page of a case, as links name it."""
        values = {"run": self.runs[case["run"]]["id"], "number": case["number"], "iteration": case.get("iteration", "")}
        return f"#/case?{urlencode({name: value for name, value in values.items() if value})}"


def read_export(folder: Path) -> Export:
    """Return what a folder shows."""
    data = (folder / "data.js").read_text().removeprefix('const DATA = "').removesuffix('";\n')
    known = json.loads(zlib.decompress(base64.b64decode(data)))
    return Export((folder / "index.html").read_text(), known["pages"], known["runs"], known["cases"])
