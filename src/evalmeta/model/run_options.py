"""The options of a run: how cases run, what passes, and how results are judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from evalmeta import limits

Undecided = Literal["ignore", "fail"]
ScoringProfile = Literal["default", "testing-center"]
ActionMatch = Literal["exact", "in_order", "any_order", "superset", "subset"]
TopicMatch = Literal["exact", "contains"]
Matches = Literal["first", "any", "all"]
Deciding = Literal["org", "local", "both"]
OFFLINE_RATER: Final = "rules"
"""The name of the rater that needs no settings and no language model."""
SCORING_PROFILES: Final = ("default", "testing-center")
DECIDING: Final = ("org", "local", "both")
ACTION_MATCHES: Final = ("exact", "in_order", "any_order", "superset", "subset")


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

    profile: ScoringProfile = "default"
    actions: ActionMatch | None = None
    topics: TopicMatch = "exact"
    matches: Matches = "first"
    threshold: float = 3.0
    rater: str = OFFLINE_RATER

    @property
    def action_match(self) -> ActionMatch:
        """Return how actions must match."""
        return self.actions or ("superset" if self.profile == "testing-center" else "exact")


class Origin(NamedTuple):
    """Where a run comes from; unknown values are empty.

    Attributes:
        suite: what the runs of one command have in common.
        branch: the branch of the project's git repository when the run started.
        revision: the commit.
        tags: the tags that chose its cases.
    """

    suite: str = ""
    branch: str = ""
    revision: str = ""
    tags: tuple[str, ...] = ()


class Setup(NamedTuple):
    """What answered in a run and what judged, in words without secrets; unknown values are empty.

    Attributes:
        agent: the adapter and its target, such as `python shop:answer`.
        agent_version: a fingerprint of the agent's source.
        rater: the rater with its models.
        prompt: a fingerprint of the prompts with which its models judge.
        evalmeta: the version of evalmeta.
        judge_check: how often the rater was right about labelled pairs, as `JudgeCheck.text`.
    """

    agent: str = ""
    agent_version: str = ""
    rater: str = ""
    prompt: str = ""
    evalmeta: str = ""
    judge_check: str = ""

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
        iterations: the number of times to run each case.
        min_pass_rate: the share of cases, 0 to 1, that must pass.
        undecided: `fail` counts a case with an undecided result as failed.
        min_decided: the share of results, 0 to 1, that must be judged; None for half of them, without those that need
            an LLM rater if the run has none.
        concurrency: the number of cases that run at the same time.
        case_timeout: the time limit of a case in seconds, without the pauses that the agent asks for.
        rate_limit: the maximum number of requests to the agent per second; None for no limit.
        retries: how often a transient failure is retried.
        max_errors: the number of cases with errors after which the run stops; None never stops it.
        seed: shuffles the cases; None keeps the order of the definition.
        cases: the numbers of the cases to run; None runs all.
        shard: the part of the cases to run, such as (2, 5) for the second of five; None runs all.
        confirms: the run whose suspect cases are asked again; empty for other runs.
        scoring: how results are judged.
        decides: whose verdicts count in a run of another org: the org's, those of evalmeta's rules, or the worse ones.
        origin: the command and the commit from which it was started.
        setup: what answers and what judges; recorded when the run is executed.
    """

    iterations: int = 1
    min_pass_rate: float = 1.0
    undecided: Undecided = "ignore"
    min_decided: float | None = None
    concurrency: int = limits.CONCURRENCY
    case_timeout: float = limits.CASE_TIMEOUT_SECONDS
    rate_limit: float | None = None
    retries: int = limits.RETRIES
    max_errors: int | None = None
    seed: int | None = None
    cases: tuple[int, ...] | None = None
    shard: tuple[int, int] | None = None
    confirms: str = ""
    scoring: Scoring = field(default_factory=Scoring)
    decides: Deciding = "org"
    origin: Origin = field(default_factory=Origin)
    setup: Setup = field(default_factory=Setup, compare=False)

    @property
    def is_partial(self) -> bool:
        """Return whether only some cases are run."""
        return self.cases is not None or self.shard is not None


def invalid_option(options: RunOptions) -> str | None:
    """Return what is wrong with the first option that is out of range, by its name in `runOptions`; else None."""
    bounds: dict[str, tuple[float | None, float, float]] = {
        "iterations": (options.iterations, 1, limits.MAX_ITERATIONS),
        "minPassRate": (options.min_pass_rate, 0, 1),
        "minDecided": (options.min_decided, 0, 1),
        "concurrency": (options.concurrency, 1, limits.MAX_CONCURRENCY),
        "caseTimeoutSeconds": (options.case_timeout, 0, limits.MAX_CASE_TIMEOUT_SECONDS),
        "rateLimit": (options.rate_limit, 1e-6, limits.MAX_RATE),
        "retries": (options.retries, 0, limits.MAX_RETRIES),
        "maxErrors": (options.max_errors, 1, limits.MAX_INTEGER),
        "seed": (options.seed, -limits.MAX_INTEGER, limits.MAX_INTEGER),
        "shard": (options.shard and options.shard[0], 1, options.shard[1] if options.shard else 1),
        "scoring.threshold": (options.scoring.threshold, 0, 5),
    }
    for name, (value, least, most) in bounds.items():
        if value is not None and not least <= value <= most:
            return f"{name} is {value}; {least} to {most:g} are allowed"
    return None
