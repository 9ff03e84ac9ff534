"""Runs of agent tests: start, find, finish, check and compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.runs import archives as archives
    from evalmeta.api.runs import baselines as baselines
    from evalmeta.api.runs import calls as calls
    from evalmeta.api.runs import case_lines as case_lines
    from evalmeta.api.runs import changes as changes
    from evalmeta.api.runs import comparisons as comparisons
    from evalmeta.api.runs import confirmation as confirmation
    from evalmeta.api.runs import decision as decision
    from evalmeta.api.runs import estimates as estimates
    from evalmeta.api.runs import finding as finding
    from evalmeta.api.runs import finished as finished
    from evalmeta.api.runs import merging as merging
    from evalmeta.api.runs import observer as observer
    from evalmeta.api.runs import org as org
    from evalmeta.api.runs import origins as origins
    from evalmeta.api.runs import recent_changes as recent_changes
    from evalmeta.api.runs import reruns as reruns
    from evalmeta.api.runs import result_pairs as result_pairs
    from evalmeta.api.runs import saved as saved
    from evalmeta.api.runs import selection as selection
    from evalmeta.api.runs import shard_sources as shard_sources
    from evalmeta.api.runs import shards as shards
    from evalmeta.api.runs import starting as starting
    from evalmeta.api.runs import suites as suites
    from evalmeta.api.runs import verification as verification
    from evalmeta.api.runs import waiting as waiting
else:
    __getattr__ = module_getter(__name__)
