"""Every error that evalmeta raises on purpose, with its exit code and what to do next.

Problems of files and results of tests are values; an error stops a command.

    EvalmetaError                1
    ├── UsageError               2   the call, the project or its settings are wrong
    │   ├── ProjectError             there is no project, or its sfdx-project.json is invalid
    │   ├── SettingsError            evalmeta.toml is invalid
    │   ├── FormatError              a file of another format is invalid, or its format is unknown
    │   ├── SubjectNotBound          no adapter is configured for the agent under test
    │   ├── AmbiguousTestDefinition  tests of several types have the name
    │   └── NotFound                 a named definition, run or file does not exist
    ├── InvalidMetadata          1   metadata files or manifests have problems
    ├── ArchiveError             1   a zip or an archive of runs is damaged, hostile or too large
    ├── Conflict                 1   files to overwrite were changed after they were last the same
    ├── DeployFailed             1   the org refused a deployment; nothing was changed
    ├── SubjectError             1   the agent could not be reached (a case becomes ERROR)
    │   ├── ApprovalNeeded           it waits for a person, and the case does not say what to answer
    │   ├── SubjectBusy              it is rate-limited or overloaded, and did nothing
    │   │   └── SubjectUnavailable       its server does not accept requests at the moment
    │   ├── SubjectRefused           it refuses the request, now and in the future
    │   └── SubjectUnreachable       the connection had a transient failure
    ├── AgentFailed              1   the agent returned an error instead of an answer (a test fails)
    ├── TooManyErrors            1   a run stopped because too many of its cases ended in errors
    ├── CostLimitReached       100   a run stopped because of what it has cost
    ├── CostUnknown              1   a run with a cost limit stopped because no cost is known
    ├── CollectorError           4   a collector of traces did not take an export; the results are stored
    ├── RaterError               1   an answer could not be rated (a result becomes ERROR)
    ├── OrgError                 4   the org, or the connection to it
    │   ├── OrgUnreachable           no response
    │   ├── OrgBusy                  the org is rate-limited or overloaded
    │   ├── LoginFailed              there is no session with the org
    │   ├── OrgFault                 an error response, with Salesforce's error code
    │   ├── MessageUnreadable        a message does not follow the protocol
    │   └── StoreError               the database behind an org
    │       ├── ClusterError             a cluster that runs the cases cannot be used
    │       ├── StoreLocked              another program has locked it
    │       │   └── StoreUnreachable         there is no connection to it
    │       ├── StoreFull                the disk has no room for a change
    │       └── StoreCorrupt             it is not a valid database
    ├── WaitRanOut              69   the wait timed out; the job continues in the org
    └── Interrupted            130   by Ctrl-C or a signal; finished work is kept
"""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.problem import Problem

EXIT_PASSED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_ORG = 4
EXIT_PARTIAL = 68
EXIT_WAIT_RAN_OUT = 69
EXIT_EXPECTATION_FAILED = 100
EXIT_INTERRUPTED = 130

_SHOWN_PROBLEMS: Final = 20


class Suggestion(str):
    """A sentence that ends in an evalmeta command to run next, such as "See how: evalmeta diff".

    The command line adds its own --target-org and selection to the command when it prints the sentence.
    """

    __slots__ = ("command", "purpose")

    purpose: str
    command: tuple[str, ...]

    def __new__(cls, purpose: str, *command: str) -> Self:
        """Create the sentence from what the command is for and its words after `evalmeta`."""
        suggestion = super().__new__(cls, f"{purpose}: evalmeta {shlex.join(command)}")
        suggestion.purpose = purpose
        suggestion.command = command
        return suggestion

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override] # str's own has one item
        return (self.purpose, *self.command)


# Comparing longer words takes long.
_COMPARED_CHARS: Final = 80


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is closest to `word`, ignoring case; None if none is close."""
    by_small = {name.lower(): name for name in known}
    close = get_close_matches(word[:_COMPARED_CHARS].lower(), by_small, n=1)
    return by_small[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint with the known word that is closest to `word`, or with all of them."""
    known = list(known)
    near = nearest_word(word, known)
    return f"Did you mean {near!r}?" if near else f"Known: {', '.join(known)}."


class EvalmetaError(Exception):
    """The base class of all errors that evalmeta raises on purpose.

    Attributes:
        problems: the problems of files that caused it, with their locations.
        actions: what to do next, in one sentence each, printed under "Try this".
    """

    exit_code: ClassVar[int] = EXIT_FAILED

    def __init__(self, message: str, *, problems: Sequence[Problem] = (), actions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        self.actions = tuple(actions)

    @property
    def name(self) -> str:
        """Return the error's name in `--json` output."""
        return type(self).__name__


class UsageError(EvalmetaError):
    """The call, the project or its settings are wrong; nothing was done."""

    exit_code = EXIT_USAGE


class ProjectError(UsageError):
    """There is no project here, or its sfdx-project.json cannot be read."""


class SettingsError(UsageError):
    """`evalmeta.toml` cannot be read, or has an invalid key or value."""


class FormatError(UsageError):
    """A file of another system does not fit its format; `problems` lists every reason with its location."""

    @property
    def message(self) -> str:
        """Return the message without the problems."""
        return super().__str__()

    def __str__(self) -> str:
        """Return the message, followed by the first problems with their hints."""
        lines = [
            f"{problem.location}: {problem.message} {problem.hint}".rstrip()
            for problem in self.problems[:_SHOWN_PROBLEMS]
        ]
        if lines and self.message.startswith(str(self.problems[0].location)):
            lines[:1] = [self.problems[0].hint] * bool(self.problems[0].hint)
        if len(self.problems) > _SHOWN_PROBLEMS:
            lines.append(f"and {len(self.problems) - _SHOWN_PROBLEMS:,} more")
        return "\n  ".join((self.message, *lines))


class SubjectNotBound(UsageError):
    """The agent under test has no adapter in `evalmeta.toml`; `problems` has warnings about a file of answers."""


class AmbiguousTestDefinition(UsageError):
    """Tests of several types have the name; the sf CLI has the same error name."""


class NotFound(UsageError):
    """A named definition, run or file does not exist."""


class InvalidMetadata(EvalmetaError):
    """Metadata files have problems; `problems` lists all of them."""


class ArchiveError(EvalmetaError):
    """A zip or an archive of runs is damaged, hostile or larger than the limits; nothing of it was used."""


class Conflict(EvalmetaError):
    """Files to overwrite were changed after they were last the same; nothing was overwritten. `problems` lists them."""


class DeployFailed(EvalmetaError):
    """The org refused a deployment and changed nothing; `problems` says why."""


class SubjectError(EvalmetaError):
    """The agent could not be reached, or its response is invalid: the case becomes ERROR, never FAILURE.

    Attributes:
        traceback: where the agent raised the error, or the end of its program's stderr; empty if that is unknown.
    """

    traceback: str = ""


class ApprovalNeeded(SubjectError):
    """The agent waits for a person, for example to approve the call of a tool, and the case does not answer it."""


class SubjectBusy(SubjectError):
    """The agent is rate-limited or overloaded and did nothing: the runner waits, slows down, and repeats the request.

    Attributes:
        after: the seconds to wait before the next request; None if they are unknown.
    """

    def __init__(self, message: str, *, after: float | None = None, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.after = after


class SubjectUnavailable(SubjectBusy):
    """The agent's server does not accept requests at the moment (HTTP status 503)."""


class SubjectRefused(SubjectError):
    """The agent's endpoint refuses the request; a retry would not help.

    Attributes:
        status: the HTTP status of the response.
    """

    def __init__(self, message: str, *, status: int, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.status = status


class SubjectUnreachable(SubjectError):
    """The connection had a transient failure, perhaps after the request: the runner starts the case again.

    Attributes:
        is_unprocessed: whether the agent has certainly not processed the request.
        is_retried: whether the runner starts the case again; False if what the agent did must not happen twice.
    """

    def __init__(
        self, message: str, *, is_unprocessed: bool = False, is_retried: bool = True, actions: Sequence[str] = ()
    ) -> None:
        super().__init__(message, actions=actions)
        self.is_unprocessed = is_unprocessed
        self.is_retried = is_retried


class AgentFailed(EvalmetaError, AssertionError):
    """The agent returned an error instead of an answer: a test that needs the answer fails, like an assertion."""


class TooManyErrors(EvalmetaError):
    """The run stopped because too many cases ended in errors; finished results are kept."""


class CostLimitReached(EvalmetaError):
    """The run stopped starting cases because of what it has cost; finished results are kept."""

    exit_code = EXIT_EXPECTATION_FAILED


class CostUnknown(EvalmetaError):
    """The run stopped because its cost limit cannot be kept: no answer has a price; finished results are kept."""


class CollectorError(EvalmetaError):
    """A collector of traces did not take an export, or not all of it; results and reports do not depend on it."""

    exit_code = EXIT_ORG


class RaterError(EvalmetaError):
    """An answer could not be rated: its result becomes ERROR; other results are not affected."""


class OrgError(EvalmetaError):
    """The org returned an error, or could not be reached."""

    exit_code = EXIT_ORG


class OrgUnreachable(OrgError):
    """The org did not respond before the deadline.

    Attributes:
        may_pass: whether the failure is transient, so that a retry may succeed.
        is_undone: whether the request certainly did not reach the org.
    """

    def __init__(
        self, message: str, *, actions: Sequence[str] = (), may_pass: bool = False, is_undone: bool = False
    ) -> None:
        super().__init__(message, actions=actions)
        self.may_pass = may_pass
        self.is_undone = is_undone


class OrgBusy(OrgError):
    """The org, or a proxy before it, is rate-limited or overloaded.

    Attributes:
        after: the seconds to wait before the next request; None if they are unknown.
        is_undone: whether the request was certainly not carried out.
    """

    def __init__(
        self, message: str, *, after: float | None = None, is_undone: bool = False, actions: Sequence[str] = ()
    ) -> None:
        super().__init__(message, actions=actions)
        self.after = after
        self.is_undone = is_undone


class LoginFailed(OrgError):
    """There is no session with the org: it refused the login, or the login expired; the message has no secret."""


class OrgFault(OrgError):
    """The org answered with an error.

    Attributes:
        code: Salesforce's error code, such as INVALID_TYPE.
        status: the HTTP status of the response; 0 if it does not matter.
    """

    def __init__(self, message: str, *, code: str, status: int = 0, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.code = code
        self.status = status


class MessageUnreadable(OrgError):
    """A message between a client and an org does not follow the protocol."""


class StoreError(OrgError):
    """The database behind an org cannot be used."""


class ClusterError(StoreError):
    """The cluster that runs the cases cannot be used; as with a database, the run can be resumed when it can."""


class StoreLocked(StoreError):
    """Another program has locked the database."""


class StoreUnreachable(StoreLocked):
    """The server of a shared store does not answer, or the connection to it was lost; it may answer later."""


class StoreFull(StoreError):
    """The disk has no room for a change; nothing was changed."""


class StoreCorrupt(StoreError):
    """The file is not a valid database of evalmeta."""


class WaitRanOut(EvalmetaError):
    """The wait timed out before the job ended; `job_id` is the job, `job_ids` are all of them."""

    exit_code = EXIT_WAIT_RAN_OUT

    def __init__(self, message: str, *, job_id: str, actions: Sequence[str] = (), job_ids: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.job_id = job_id
        self.job_ids = tuple(job_ids) or (job_id,)


class Interrupted(EvalmetaError):
    """The user interrupted the command; finished work is kept."""

    exit_code = EXIT_INTERRUPTED
