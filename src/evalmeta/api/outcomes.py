"""Outcomes: what became of a deployment, in terms of the project that it came from."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalmeta.api.metadata import shown
from evalmeta.errors import DeployFailed, EvalmetaError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.resolver import find_components

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.api.parcels import Parcel
    from evalmeta.model.component import Component
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.wire.messages import DeployMessage, DeployResult

__all__ = ["DeployedComponent", "Deployment", "failure_of", "outcome_of"]


@dataclass(frozen=True, slots=True)
class DeployedComponent:
    """What a deployment did to one component."""

    state: FileState | Literal["Deleted"]
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as far as it is.

    Attributes:
        result: what the org says of it.
        components: what was deployed and deleted, or would have been.
        problems: why components were refused.
        warnings: about files.
        messages: remarks on the whole.
    """

    result: DeployResult
    components: tuple[DeployedComponent, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Gives its id."""
        return self.result.id

    @property
    def status(self) -> str:
        """Gives its status, such as `Succeeded`, `SucceededPartial` or `InProgress`."""
        return self.result.status


def outcome_of(result: DeployResult, project: Project, parcel: Parcel | None = None) -> Deployment:
    """Reads what an org says of a deployment; `parcel` is what was sent, if it is at hand."""
    files = _files(_components(project) if parcel is None else parcel.components)
    warnings = () if parcel is None else parcel.warnings
    told = () if parcel is None else parcel.messages
    done = [message for message in result.details.component_successes if message.component_type]
    return Deployment(
        result,
        tuple(DeployedComponent(_state(each), each.full_name, _file(each, files)) for each in done),
        tuple(_problem(failure, files) for failure in result.details.component_failures),
        warnings,
        (*told, *_org_warnings(result, {problem.location.path for problem in warnings}, files)),
    )


def failure_of(outcome: Deployment) -> DeployFailed:
    """Gives the error that a deployment which failed or was canceled stands for."""
    result = outcome.result
    if result.status == "Canceled":
        who = f" by {result.canceled_by_name}" if result.canceled_by_name else ""
        return DeployFailed(f"deployment {result.id} was canceled{who}; the org was not changed")
    reason = f": {result.error_message}" if result.error_message else ""
    what = "validation" if result.check_only else "deployment"
    return DeployFailed(f"{what} {result.id} failed{reason}; the org was not changed", problems=outcome.problems)


def _components(project: Project) -> tuple[Component, ...]:
    # Files that stand in each other's way do not matter to what an org has done already.
    with suppress(EvalmetaError):
        return find_components(project)
    return ()


def _files(components: Iterable[Component]) -> dict[tuple[str, str], str]:
    """Gives where components stand here, by type and full name."""
    return {(each.type.name, each.full_name): shown(each.path) for each in components}


def _file(message: DeployMessage, files: Mapping[tuple[str, str], str]) -> str:
    return files.get((message.component_type, message.full_name), message.file_name)


def _state(message: DeployMessage) -> FileState | Literal["Deleted"]:
    if message.created:
        return "Created"
    if message.deleted:
        return "Deleted"
    return "Changed" if message.changed else "Unchanged"


def _org_warnings(result: DeployResult, known: set[str], files: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Gives what the org warns of, except about files that were warned of here already."""
    for each in result.details.component_successes:
        if each.problem and _file(each, files) not in known:
            yield f"{_file(each, files)}: {each.problem}"


def _problem(failure: DeployMessage, files: Mapping[tuple[str, str], str]) -> Problem:
    return Problem(
        "refused",
        Severity.ERROR,
        Location(_file(failure, files), failure.line_number or 0, failure.column_number or 0),
        failure.problem or "the org gave no reason",
        component=f"{failure.component_type}:{failure.full_name}" if failure.component_type else "",
    )
