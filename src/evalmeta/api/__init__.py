"""The library's functions: what the command line, the pytest plugin and other programs call.

Each module covers one kind of work, and is imported when it is first used: `api.runs.org.RunOrg` loads `runs.org`.
A program that only checks files therefore loads no HTTP client and no web framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api import agent_chats as agent_chats
    from evalmeta.api import agent_doubles as agent_doubles
    from evalmeta.api import agent_specs as agent_specs
    from evalmeta.api import agent_tests as agent_tests
    from evalmeta.api import changes as changes
    from evalmeta.api import coverage as coverage
    from evalmeta.api import deployments as deployments
    from evalmeta.api import discovery as discovery
    from evalmeta.api import doctor as doctor
    from evalmeta.api import endpoints as endpoints
    from evalmeta.api import evaluating as evaluating
    from evalmeta.api import files as files
    from evalmeta.api import init as init
    from evalmeta.api import judging as judging
    from evalmeta.api import logins as logins
    from evalmeta.api import org_targets as org_targets
    from evalmeta.api import packages as packages
    from evalmeta.api import quarantines as quarantines
    from evalmeta.api import retrievals as retrievals
    from evalmeta.api import runs as runs
    from evalmeta.api import selections as selections
    from evalmeta.api import servers as servers
    from evalmeta.api import specs as specs
    from evalmeta.api import stores as stores
    from evalmeta.api import sync as sync
    from evalmeta.api import trace_receiving as trace_receiving
    from evalmeta.api import trace_tests as trace_tests
    from evalmeta.api import traces as traces
else:
    __getattr__ = module_getter(__name__)
