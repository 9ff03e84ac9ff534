"""The options of a run: how cases run, what passes, and how results are judged."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from decimal import Decimal
from math import isnan
from numbers import Real
from types import NoneType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

Undecided = Literal["ignore", "fail"]
ScoringProfile = Literal["default", "testing-center"]
ActionMatch = Literal["exact", "in_order", "any_order", "superset", "subset"]
TopicMatch = Literal["exact", "contains"]
Matches = Literal["first", "any", "all"]
Deciding = Literal["org", "local", "both"]
IterationsBy = Literal["case", "run"]
OFFLINE_RATER: Final = "rules"
"""The name of the rater that needs no settings and no language model."""

Group = Literal["running", "policy", "scoring", "selection", "checking"]
_T = TypeVar("_T")
_KINDS: Final[Mapping[object, str]] = {int: "integer", float: "number", str: "text"}


class Option(NamedTuple):
    """One option of a run, from which its setting, flag, key of `runOptions`, bounds and reference follow."""

    # Its group of flags. "running" and "policy" are also the table [run] of the settings, "scoring" is [score]; None if
    # neither a flag nor a setting has its value.
    group: Group | None = None
    help: str = ""  # what the help of commands says
    bounds: tuple[float, float | None] | None = None  # the least and the largest number; None for the largest integer
    is_above: bool = False  # whether flags and settings must be above the least number
    least_on_wire: float | None = None  # the least number in `runOptions`, if it is another one
    metavar: str = ""  # what stands for its value in the help; empty for the name of its type
    alias: str = ""  # another name of its setting
    is_sparse: bool = False  # whether `runOptions` leaves out its default
    needs_ours: bool = False  # whether Salesforce orgs ignore it, with a warning; evalmeta's own orgs follow it
    flag: str = ""  # its flag; this and the following come from the attribute unless the row has another name
    wire: str = ""  # its key in `runOptions`, with which evalmeta extends the Connect API
    name: str = ""  # its attribute and setting
    annotation: object = None
    default: object = None
    kind: str = ""  # what its values are: "integer", "number", "text", "choice", "integers" or "pair"
    choices: tuple[str, ...] = ()  # the values of a "choice"

    def completed(self, name: str, annotation: object, default: object) -> Option:
        """Return the row with what its attribute says."""
        parts = get_args(annotation)
        kind = next(part for part in parts if part is not NoneType) if NoneType in parts else annotation
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        lists = "integers" if Ellipsis in get_args(kind) else "pair"
        first, *others = name.split("_")
        return self._replace(
            name=name,
            annotation=annotation,
            default=default,
            kind="choice" if choices else _KINDS.get(kind, lists),
            choices=choices,
            flag=self.flag or f"--{name.replace('_', '-')}",
            wire=self.wire or "".join([first, *(word.capitalize() for word in others)]),
        )


def _row(default: _T, option: Option) -> _T:
    """Return the default of an attribute, with its row for `_rows_of`."""
    return field(default=default, metadata={"option": option})


def _rows_of(owner: type[RunOptions | Scoring]) -> tuple[Option, ...]:
    types = get_type_hints(owner)
    rows = [(attribute, attribute.metadata.get("option")) for attribute in fields(owner)]
    return tuple(
        row.completed(attribute.name, types[attribute.name], attribute.default) for attribute, row in rows if row
    )


@dataclass(frozen=True, slots=True)
class Scoring:
    """How results are judged.

    Attributes:
        profile: `testing-center` judges like Salesforce's Testing Center: actions as a superset unless `actions` is
            set, promoted topics by their full names, and latency is measured but not judged.
        actions: how the actual actions must match the expected ones; None for the default of the profile.
        topics: whether topics must be equal, or the actual name may contain the expected one.
        matches: which of the values that a reference matches must fulfil a criterion: the first, any or all.
        threshold: the rating, 0 to 5, with which an answer passes.
        rater: the rater's name in the project's settings; `rules` needs no settings.
    """

    profile: ScoringProfile = _row(
        "default", Option("scoring", "How to score; testing-center scores as Salesforce does.", flag="--scoring")
    )
    actions: ActionMatch | None = _row(None, Option("scoring", "How the actions must match the expected actions."))
    topics: TopicMatch = _row(
        "exact", Option("scoring", "Whether a topic's name must equal or contain the expected one.")
    )
    matches: Matches = _row(
        "first", Option("scoring", "If a reference matches several values, which of them must pass.")
    )
    threshold: float = _row(3.0, Option("scoring", "The lowest rating that passes.", (0, 5)))
    rater: str = _row(OFFLINE_RATER, Option("scoring", "A rater of evalmeta.toml, or 'rules'.", metavar="NAME"))

    @property
    def action_match(self) -> ActionMatch:
        """Return how actions must match."""
        return self.actions or ("superset" if self.profile == "testing-center" else "exact")


class Origin(NamedTuple):
    """Where a run comes from; unknown values are empty."""

    suite: str = ""  # what the runs of one command have in common
    branch: str = ""  # the branch of the project's git repository when the run started
    revision: str = ""  # the commit
    tags: tuple[str, ...] = ()  # the tags that chose its cases
    place: int = 0  # the place of its test among those of the command, from 1; 0 for runs that ask or judge again
    project: str = ""  # the project whose agents it asks, as a shared store names it; empty in a folder
    subject: str = ""  # the first line of the commit's message
    parent: str = ""  # the commit before it
    is_clean: bool = False  # whether the tracked files were known to be those of the commit


class Setup(NamedTuple):
    """What answered in a run and what judged, in words without secrets; unknown values are empty."""

    agent: str = ""  # the adapter and its target, such as `python shop:answer`
    agent_version: str = ""  # a fingerprint of the agent's source
    rater: str = ""  # the rater with its models
    prompt: str = ""  # a fingerprint of the prompts with which its models judge
    evalmeta: str = ""  # the version of evalmeta
    judge_check: str = ""  # how often the rater was right about labelled pairs, as `JudgeCheck.text`

    def other_agent(self, now: Setup) -> str:
        """Return which agent answered before and which would now; empty if it is the same, or one is not known."""
        if not (self.agent and now.agent):
            return ""
        if self.agent != now.agent:
            return f"{self.agent} answered before, and {now.agent} would answer now"
        versions = self.agent_version, now.agent_version
        is_other = all(versions) and versions[0] != versions[1]
        return f"the source of {now.agent} has changed since it answered" if is_other else ""

    def joined(self, now: Setup) -> Setup:
        """Return the setup of a run that two agents answered, or two versions of one."""
        agents = dict.fromkeys(filter(None, (self.agent, now.agent)))
        versions = dict.fromkeys(filter(None, (self.agent_version, now.agent_version)))
        return self._replace(agent=" and ".join(agents), agent_version=" and ".join(versions))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run and what passes.

    Attributes:
        iterations: the number of times to run each case that does not say its own number.
        min_pass_rate: the share of cases, 0 to 1, that must pass.
        undecided: `fail` counts a case with an undecided result as failed.
        min_decided: the share of results, 0 to 1, that must be judged; None for half of them, without those that need
            an LLM rater if the run has none.
        concurrency: the number of cases that run at the same time.
        case_timeout: the time limit of a case in seconds, without the pauses that the agent asks for.
        rate_limit: the maximum number of requests to the agent per second; None for no limit.
        retries: how often a transient failure is retried.
        max_errors: the number of cases with errors after which the run stops; None never stops it.
        max_cost: the US dollars that all runs of a command may cost, agent and rater together, before no more cases are
            started; None for no limit.
        seed: shuffles the cases; None keeps the order of the definition.
        cases: the numbers of the cases to run; None runs all.
        shard: the part of the cases to run, such as (2, 5) for the second of five; None runs all.
        confirms: the run whose suspect cases are asked again; empty for other runs.
        iterations_by: whether a case's own number of iterations counts, or that of the run for all cases.
        scoring: how results are judged.
        decides: whose verdicts count in a run of another org: the org's, those of evalmeta's rules, or the worse ones.
        origin: the command and the commit from which it was started.
        setup: what answers and what judges; recorded when the run is executed.
        most_iterations: the most iterations of one case if cases run differently often, else 0; recorded when the run
            starts.
    """

    iterations: int = _row(1, Option("running", "Number of times to run each case.", (1, limits.MAX_ITERATIONS)))
    min_pass_rate: float = _row(1.0, Option("policy", "The share of cases that must pass.", (0, 1), alias="confidence"))
    undecided: Undecided = _row("ignore", Option("policy", "How to count results that could not be judged."))
    min_decided: float | None = _row(None, Option("policy", "The share of results that must be judged.", (0, 1)))
    concurrency: int = _row(
        limits.CONCURRENCY,
        Option("running", "Number of cases to run at the same time.", (1, limits.MAX_CONCURRENCY), needs_ours=True),
    )
    case_timeout: float = _row(
        limits.CASE_TIMEOUT_SECONDS,
        Option(
            "running",
            "Time limit for a case, in seconds.",
            (0, limits.MAX_CASE_TIMEOUT_SECONDS),
            is_above=True,
            wire="caseTimeoutSeconds",
        ),
    )
    rate_limit: float | None = _row(
        None,
        Option(
            "running",
            "Maximum number of utterances per second.",
            (0, limits.MAX_RATE),
            is_above=True,
            least_on_wire=1e-6,
            needs_ours=True,
        ),
    )
    retries: int = _row(
        limits.RETRIES,
        Option("running", "Number of retries after a transient failure.", (0, limits.MAX_RETRIES), needs_ours=True),
    )
    max_errors: int | None = _row(
        None, Option("running", "Stop when this many cases have ended in errors.", (1, None), needs_ours=True)
    )
    max_cost: float | None = _row(
        None,
        Option(
            "running",
            "Start no more cases when all runs of the command have cost this many US dollars.",
            (0, limits.MAX_COST),
            is_above=True,
            least_on_wire=1e-12,
            metavar="USD",
            is_sparse=True,
            needs_ours=True,
        ),
    )
    seed: int | None = _row(
        None, Option("selection", "Shuffle the cases with this seed.", (-limits.MAX_INTEGER, limits.MAX_INTEGER))
    )
    cases: tuple[int, ...] | None = _row(None, Option())
    shard: tuple[int, int] | None = _row(
        None,
        Option(
            "selection",
            "Run one shard of the cases: 2/5 is the second of five. A case stays in its shard.",
            metavar="N/OF",
        ),
    )
    confirms: str = _row("", Option(is_sparse=True))
    iterations_by: IterationsBy = _row("case", Option(is_sparse=True))
    scoring: Scoring = field(default_factory=Scoring)
    decides: Deciding = _row(
        "org",
        Option(
            "checking",
            "Whose verdicts count in a Salesforce org; both: the worse of the two.  [default: org]",
            flag="--verdict",
            is_sparse=True,
        ),
    )
    origin: Origin = field(default_factory=Origin)
    setup: Setup = field(default_factory=Setup, compare=False)
    most_iterations: int = _row(0, Option(bounds=(0, limits.MAX_ITERATIONS), is_sparse=True))

    @property
    def is_repeated(self) -> bool:
        """Return whether a case is run several times."""
        return (self.most_iterations or self.iterations) > 1

    @property
    def common_iterations(self) -> int:
        """Return how often each case is run; 0 if some run more often than others."""
        return 0 if self.most_iterations else self.iterations

    @property
    def is_partial(self) -> bool:
        """Return whether only some cases are run."""
        return self.cases is not None or self.shard is not None


RUN_OPTIONS: Final = _rows_of(RunOptions)
SCORING_OPTIONS: Final = _rows_of(Scoring)


def invalid_option(options: RunOptions) -> str | None:
    """Return what is wrong with the first option that is out of range, by its name in `runOptions`; else None."""
    owners: tuple[tuple[RunOptions | Scoring, tuple[Option, ...], str], ...] = (
        (options, RUN_OPTIONS, ""),
        (options.scoring, SCORING_OPTIONS, "scoring."),
    )
    for owner, rows, prefix in owners:
        for option in rows:
            value, bounds = getattr(owner, option.name), option.bounds
            if option.kind == "pair" and value:
                value, bounds = value[0], (1, value[1])
            if value is None or bounds is None:
                continue
            least = bounds[0] if option.least_on_wire is None else option.least_on_wire
            most = limits.MAX_INTEGER if bounds[1] is None else bounds[1]
            if not _is_number(value):
                return f"{prefix}{option.wire} is {value!r}; a number from {least} to {most:g} is expected"
            if not least <= value <= most:
                return f"{prefix}{option.wire} is {value}; {least} to {most:g} are allowed"
    return None


def _is_number(value: object) -> bool:
    """Return whether this is a number, also infinity; Booleans and NaN are none."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, Real | Decimal) and not isnan(value)
