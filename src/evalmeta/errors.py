"""Every error evalmeta raises on purpose, with its exit code and what to try next.

Findings are values (`evalmeta.model.problem.Problem`, test results); an error is
what stops a command.

    EvalmetaError                1
    ├── UsageError               2   the call, the project or its settings are wrong
    │   ├── ProjectError             no project here, or its sfdx-project.json is wrong
    │   ├── SettingsError            evalmeta.toml is wrong
    │   ├── FormatError              a file of another format is wrong, or cannot be told from others
    │   ├── SubjectNotBound          no adapter is bound to the agent under test
    │   ├── AmbiguousTestDefinition  a name stands for tests of several types
    │   └── NotFound                 a named thing (definition, run, file) does not exist
    ├── InvalidMetadata          1   metadata files or manifests that carry problems
    ├── ArchiveError             1   a zip that is damaged, hostile or too large
    ├── Conflict                 1   what would be overwritten was changed since both sides had the same
    ├── DeployFailed             1   the org refused a deployment; nothing was changed
    ├── SubjectError             1   the agent could not be asked (a case becomes ERROR)
    │   ├── SubjectBusy              it says to come later; what was asked is undone
    │   ├── SubjectRefused           it says no
    │   └── SubjectUnreachable       the connection to it failed in passing
    ├── AgentFailed              1   what is known of an agent's answer is its error (a test fails by it)
    ├── TooManyErrors            1   a run that stopped because too many of its cases ended in errors
    ├── RaterError               1   an answer could not be rated (a result becomes ERROR)
    ├── OrgError                 4   the org, or the way to it
    │   ├── OrgUnreachable           no answer
    │   ├── OrgBusy                  an answer that says to come later
    │   ├── LoginFailed              no session with the org could be had
    │   ├── OrgFault                 an answer that says no, with Salesforce's error code
    │   ├── MessageUnreadable        a message that is no message of the protocol
    │   └── StoreError               the database behind an org
    │       ├── StoreLocked              another program holds it
    │       └── StoreCorrupt             it is no readable database
    ├── WaitRanOut              69   the job goes on in the org
    └── Interrupted            130   by Ctrl-C or a polite end from outside; what is finished is kept
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, ClassVar, Final, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.problem import Problem

__all__ = [
    "AgentFailed",
    "AmbiguousTestDefinition",
    "ArchiveError",
    "Conflict",
    "DeployFailed",
    "EvalmetaError",
    "FormatError",
    "Interrupted",
    "InvalidMetadata",
    "LoginFailed",
    "MessageUnreadable",
    "NotFound",
    "OrgBusy",
    "OrgError",
    "OrgFault",
    "OrgUnreachable",
    "ProjectError",
    "RaterError",
    "SettingsError",
    "StoreCorrupt",
    "StoreError",
    "StoreLocked",
    "SubjectBusy",
    "SubjectError",
    "SubjectNotBound",
    "SubjectRefused",
    "SubjectUnreachable",
    "Suggestion",
    "TooManyErrors",
    "UsageError",
    "WaitRanOut",
]

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


class EvalmetaError(Exception):
    """The root of the tree: catch it to catch whatever evalmeta raises on purpose.

    Attributes:
        actions: what to do next, one sentence each, printed under "Try this".
    """

    exit_code: ClassVar[int] = EXIT_FAILED

    def __init__(self, message: str, *, actions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.actions = tuple(actions)

    @property
    def name(self) -> str:
        """Gives the error's name as `--json` prints it."""
        return type(self).__name__


class UsageError(EvalmetaError):
    """The call, the project or its settings are wrong; nothing was done."""

    exit_code = EXIT_USAGE


class ProjectError(UsageError):
    """There is no project here, or what describes it cannot be read."""


class SettingsError(UsageError):
    """`evalmeta.toml` cannot be read, or holds something evalmeta does not know."""


class FormatError(UsageError):
    """A file of another system's that does not fit its format; `problems` lists every reason with its place."""

    def __init__(self, message: str, *, problems: Sequence[Problem] = (), actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.message = message
        self.problems = tuple(problems)

    def __str__(self) -> str:
        """Gives the message, and below it the first problems with their hints; the message may tell the first."""
        lines = [f"{each.location}: {each.message} {each.hint}".rstrip() for each in self.problems[:_SHOWN_PROBLEMS]]
        if lines and self.message.startswith(str(self.problems[0].location)):
            lines[:1] = [self.problems[0].hint] * bool(self.problems[0].hint)
        if len(self.problems) > _SHOWN_PROBLEMS:
            lines.append(f"and {len(self.problems) - _SHOWN_PROBLEMS:,} more")
        return "\n  ".join((self.message, *lines))


class SubjectNotBound(UsageError):
    """The agent under test has no adapter in `evalmeta.toml`; `problems` has the warnings about a file of answers."""

    def __init__(self, message: str, *, problems: Sequence[Problem] = (), actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.problems = tuple(problems)


class AmbiguousTestDefinition(UsageError):
    """A name stands for tests of several types; the sf CLI says it with the same word."""


class NotFound(UsageError):
    """A definition, run or file that was named does not exist."""


class InvalidMetadata(EvalmetaError):
    """Metadata that carries problems; `problems` lists every one of them."""

    def __init__(self, message: str, *, problems: Sequence[Problem], actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.problems = tuple(problems)


class ArchiveError(EvalmetaError):
    """A zip that is damaged, hostile or larger than the limits; nothing of it was used."""


class Conflict(EvalmetaError):
    """What would be overwritten was changed since both sides had the same; nothing was. `problems` lists the files."""

    def __init__(self, message: str, *, problems: Sequence[Problem], actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.problems = tuple(problems)


class DeployFailed(EvalmetaError):
    """The org refused a deployment and changed nothing; `problems` says why."""

    def __init__(self, message: str, *, problems: Sequence[Problem] = (), actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.problems = tuple(problems)


class SubjectError(EvalmetaError):
    """The agent could not be asked, or answered nonsense: the case becomes ERROR, never FAILURE."""


class SubjectBusy(SubjectError):
    """The agent says to come later and has done nothing: the runner waits, asks less often, and repeats the call.

    Attributes:
        after: the seconds that it asks to be left alone; None when it does not say.
    """

    def __init__(self, message: str, *, after: float | None = None, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.after = after


class SubjectRefused(SubjectError):
    """The agent's endpoint says no, and will the next time.

    Attributes:
        status: the answer's HTTP status.
    """

    def __init__(self, message: str, *, status: int, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.status = status


class SubjectUnreachable(SubjectError):
    """The way to the agent failed in passing, perhaps after it was asked: the runner begins the case anew."""


class AgentFailed(EvalmetaError, AssertionError):
    """The agent ended in an error instead of an answer: a test that asks for the answer fails, as by an assertion."""


class TooManyErrors(EvalmetaError):
    """So many cases ended in errors that going on is no use; what is finished is kept."""


class RaterError(EvalmetaError):
    """An answer could not be rated: its result becomes ERROR, and the others are unharmed."""


class OrgError(EvalmetaError):
    """The org said no, or could not be reached."""

    exit_code = EXIT_ORG


class OrgUnreachable(OrgError):
    """No answer came back from the org within the deadline.

    Attributes:
        may_pass: whether the next request may well be answered.
        is_undone: whether the request surely did not reach the org.
    """

    def __init__(
        self, message: str, *, actions: Sequence[str] = (), may_pass: bool = False, is_undone: bool = False
    ) -> None:
        super().__init__(message, actions=actions)
        self.may_pass = may_pass
        self.is_undone = is_undone


class OrgBusy(OrgError):
    """The org, or what stands before it, says to come later.

    Attributes:
        after: the seconds that it asks to be left alone; None when it does not say.
        is_undone: whether the request surely was not carried out.
    """

    def __init__(
        self, message: str, *, after: float | None = None, is_undone: bool = False, actions: Sequence[str] = ()
    ) -> None:
        super().__init__(message, actions=actions)
        self.after = after
        self.is_undone = is_undone


class LoginFailed(OrgError):
    """No session with the org could be had: it refused the login, or the login ended; no secret is in the message."""


class OrgFault(OrgError):
    """The org answered with an error.

    Attributes:
        code: Salesforce's name for it, such as INVALID_TYPE.
        status: the answer's HTTP status; 0 when it does not matter.
    """

    def __init__(self, message: str, *, code: str, status: int = 0, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.code = code
        self.status = status


class MessageUnreadable(OrgError):
    """A message between a client and an org that neither side's protocol knows."""


class StoreError(OrgError):
    """The database behind an org cannot be used."""


class StoreLocked(StoreError):
    """Another program holds the database."""


class StoreCorrupt(StoreError):
    """The file is no readable database of evalmeta."""


class WaitRanOut(EvalmetaError):
    """The wait is over, the job is not: `job_id` names it."""

    exit_code = EXIT_WAIT_RAN_OUT

    def __init__(self, message: str, *, job_id: str, actions: Sequence[str] = ()) -> None:
        super().__init__(message, actions=actions)
        self.job_id = job_id


class Interrupted(EvalmetaError):
    """The user has had enough; what is finished is kept."""

    exit_code = EXIT_INTERRUPTED
