"""`evalmeta init`: makes a project for an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.init import agents, project

__all__ = ["agents", "project"]

if not TYPE_CHECKING:
    __getattr__ = module_getter(__name__)
