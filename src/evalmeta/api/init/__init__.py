"""`evalmeta init`: makes a project for an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.init import agents as agents
    from evalmeta.api.init import examples as examples
    from evalmeta.api.init import project as project
else:
    __getattr__ = module_getter(__name__)
