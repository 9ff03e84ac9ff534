"""`evaluate`: tests an agent that is in Python, without an org and a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.evaluating import bindings as bindings
    from evalmeta.api.evaluating import evaluate as evaluate
    from evalmeta.api.evaluating import files as files
    from evalmeta.api.evaluating import inputs as inputs
    from evalmeta.api.evaluating import journal as journal
    from evalmeta.api.evaluating import loaded as loaded
else:
    __getattr__ = module_getter(__name__)
