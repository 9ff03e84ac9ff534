"""`evalmeta doctor`: checks the installation, the project, its agents and its org."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.doctor import checks as checks
    from evalmeta.api.doctor import examination as examination
    from evalmeta.api.doctor import org as org
else:
    __getattr__ = module_getter(__name__)
