"""`evaluate`: tests an agent that is in Python, without an org and a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.evaluating import bindings, evaluate, files, inputs, journal, loaded

__all__ = ["bindings", "evaluate", "files", "inputs", "journal", "loaded"]

if not TYPE_CHECKING:
    __getattr__ = module_getter(__name__)
