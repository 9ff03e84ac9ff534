"""Packages that are installed only for one test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def install(folder: Path, group: str, entry: str, source: str) -> None:
    """Puts what an installed package has into a folder: the module `acme`, and metadata with one entry point."""
    (folder / "acme.py").write_text(source)
    metadata = folder / "acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[evalmeta.{group}]\n{entry}\n")
