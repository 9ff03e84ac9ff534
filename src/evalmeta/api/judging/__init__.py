"""People's judgements of results, and what is made of them: accepted answers, marks and checked raters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.judging import acceptance as acceptance
    from evalmeta.api.judging import calibration as calibration
    from evalmeta.api.judging import judge as judge
    from evalmeta.api.judging import marks as marks
else:
    __getattr__ = module_getter(__name__)
