"""`evalmeta doctor`: checks the installation, the project, its agents and its org."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.doctor import checks, examination, org

__all__ = ["checks", "examination", "org"]

if not TYPE_CHECKING:
    __getattr__ = module_getter(__name__)
