"""One question to an org: whether a test there is answered."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.doctor_checks import Finding, excerpt
from evalmeta.client.runs import cancel_run, fetch_run, start_run
from evalmeta.errors import EvalmetaError, Suggestion, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component
    from evalmeta.model.definition import Definition
    from evalmeta.model.run import Run


_ASK: Final = "Ask the agent in the org itself, for example in Agentforce Builder."


def nothing_to_ask(*, has_tests: bool) -> Finding:
    """Return the finding if an org has no test of a project; `has_tests` says that the project could deploy some."""
    if has_tests:
        return Finding("warning", "no test of the project is deployed", Suggestion("Deploy them", "deploy"))
    what = "the project has no tests to deploy; only deployed tests are asked"
    return Finding("warning", what, Suggestion("Run test files without an org", "run", "FILE"))


async def check_smoke(
    connection: Connection, tests: Sequence[tuple[Component, Definition]], *, has_tests: bool = True
) -> Finding:
    """Start the test with the fewest cases, wait for its first answer, and cancel what is left.

    `tests` are deployed in the org; `has_tests` says whether the project could deploy any.

    Raises:
        EvalmetaError: the org does not start the test.
    """
    sizes = [(len(test.test_cases), component) for component, test in tests if test.test_cases]
    if not sizes:
        return nothing_to_ask(has_tests=has_tests)
    _, component = min(sizes, key=lambda each: each[0])
    run = await _run_first_case(connection, component)
    if run is None or not run.cases:
        is_late = run is None or not run.status.is_over
        what = f"no case ended within {limits.ORG_CASE_SECONDS:g} s" if is_late else "the run ended without a result"
        reason = f": {run.error}" if run and run.error else ""
        return Finding("error", f"{component.full_name}: {what}{reason}", _ASK)
    case = run.cases[0]
    where = f"{component.full_name}, case {case.number}"
    if case.error or case.generated is None:
        return Finding("error", f"{where}: {case.error or 'there is no answer'}", _ASK)
    return Finding("ok", f"{where}: answered {excerpt(case.utterance)} with {excerpt(case.generated.outcome)}")


async def _run_first_case(connection: Connection, test: Component) -> Run | None:
    """Return a run when its first case has ended; None if the org said nothing of it in time."""
    run_id = await start_run(connection, test.full_name, kind=test.type)
    latest: Run | None = None

    async def look() -> Run:
        nonlocal latest
        latest = await fetch_run(connection, run_id, definition=test.full_name)
        return latest

    try:
        return await connection.poll(
            look, lambda run: bool(run.cases) or run.status.is_over, job_id=run_id, wait=limits.ORG_CASE_SECONDS
        )
    except WaitRanOut:
        return latest
    finally:
        if latest is None or not latest.status.is_over:
            with suppress(EvalmetaError):
                await cancel_run(connection, run_id)
