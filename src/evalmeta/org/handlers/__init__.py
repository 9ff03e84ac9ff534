"""The handlers that wings and installed packages add to an org: further routes, and operations of the Metadata API.

A served org loads them when it starts, an embedded org with the first request that it cannot answer otherwise:
deployments, retrievals and runs need none.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalmeta.plugins import load_all, unusable_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from starlette.routing import BaseRoute

    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization
    from evalmeta.protocol.soap import Call


Operation: TypeAlias = "Callable[[Organization, User, Call], bytes | Iterator[bytes]]"


class Handlers(NamedTuple):
    """What `model/entry_points.py` or an entry point of the group `evalmeta.handlers` names.

    Attributes:
        routes: REST routes. The first line of an endpoint's docstring describes it in the published description.
        operations: operations of the Metadata API by name; each writes its reply.
    """

    routes: Sequence[BaseRoute] = ()
    operations: Mapping[str, Operation] = {}


@cache
def registered_handlers() -> Sequence[Handlers]:
    """Load all handlers; raise SettingsError if those of a package cannot be used."""
    return [_checked(name, loaded) for name, loaded in load_all("handlers").items()]


def _checked(name: str, loaded: object) -> Handlers:
    if not isinstance(loaded, Handlers):
        action = "Name an object evalmeta.org.handlers.Handlers."
        raise unusable_plugin("handlers", name, f"is {type(loaded).__name__}, not Handlers", action=action)
    return loaded
