"""The options that say how tests run, how they are judged and which of their cases are asked."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import click

from evalmeta import limits
from evalmeta.cli.output import note
from evalmeta.model.evaluation import CaseList, parse_case_list, parse_shard
from evalmeta.model.run import ACTION_MATCHES, SCORING_PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.run_selection import Choice, Failures
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project


_T = TypeVar("_T")
_Command: TypeAlias = "Callable[..., _T]"  # type: ignore[explicit-any]


class Selection(NamedTuple):
    """Which cases of the tests are asked, as it was said."""

    cases: tuple[CaseList, ...] = ()
    tags: tuple[str, ...] = ()
    failed_from: tuple[str, ...] = ()
    shard: tuple[int, int] | None = None
    seed: int | None = None

    @property
    def may_be_empty(self) -> bool:
        """Tells whether it is no mistake when nothing is left to ask."""
        return bool(self.shard or self.failed_from)

    def choose(self, project: Project, names: tuple[str, ...], files: Sequence[FileTest] = ()) -> Choice | None:
        """Gives the choice, of files by their labels too; None when nothing failed in the runs that were named.

        Tells of runs that failures are taken from but nothing failed in, or not all is known of.
        Raises like `by_tags`, `failed_in` and `in_files`.
        """
        from evalmeta.api.run_selection import Choice, by_tags, failed_in, in_files  # noqa: PLC0415 - not needed for --help

        choice, found = Choice(names).narrowed(by_tags(project, self.tags)), failed_in(project, self.failed_from)
        for each in found:
            _tell_of(each)
        failed = [each.cases for each in found if each.numbers]
        return None if found and not failed else choice.narrowed(failed).narrowed(in_files(self.cases, files))


def _read_case_list(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[CaseList, ...]:
    try:
        return tuple(parse_case_list(text, takes_labels=True) for text in texts)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _read_shard(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, int] | None:
    try:
        return None if text is None else parse_shard(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _read_seed(_: click.Context, __: click.Parameter, seed: int | None) -> int | None:
    if seed is not None and abs(seed) > limits.MAX_INTEGER:
        raise click.BadParameter(f"{seed} has too many digits; {limits.MAX_INTEGER} is the most.")
    return seed


_POLICY: Final = (
    click.option("--min-pass-rate", type=click.FloatRange(0, 1), help="The share of cases that must pass, 0 to 1."),
    click.option(
        "--undecided", type=click.Choice(("ignore", "fail")), help="What a result that nothing could judge counts as."
    ),
)
_RUNNING: Final = (
    click.option("--iterations", type=click.IntRange(1, limits.MAX_ITERATIONS), help="Ask every case so many times."),
    click.option(
        "--concurrency", type=click.IntRange(1, limits.MAX_CONCURRENCY), help="Ask so many cases at the same time."
    ),
    click.option(
        "--case-timeout",
        type=click.FloatRange(0, limits.MAX_CASE_TIMEOUT_SECONDS, min_open=True),
        help="Seconds one case may take.",
    ),
    click.option(
        "--rate-limit",
        type=click.FloatRange(0, limits.MAX_RATE, min_open=True),
        help="Ask the agent so many questions a second at most.",
    ),
    click.option(
        "--retries", type=click.IntRange(0, limits.MAX_RETRIES), help="Try so often again what fails in passing."
    ),
    click.option("--max-errors", type=click.IntRange(1), help="Stop after so many cases that ended in errors."),
)
_SCORING: Final = (
    click.option(
        "--scoring",
        "profile",
        type=click.Choice(SCORING_PROFILES),
        help="How results are judged; testing-center grades as Salesforce does.",
    ),
    click.option("--actions", type=click.Choice(ACTION_MATCHES), help="How actions must match the expected ones."),
    click.option(
        "--topics", type=click.Choice(("exact", "contains")), help="Whether an expected topic may be part of the name."
    ),
    click.option(
        "--matches",
        type=click.Choice(("first", "any", "all")),
        help="Which of several values that a reference matches must hold.",
    ),
    click.option("--threshold", type=click.FloatRange(0, 5), help="The rating from which on an answer passes, 0 to 5."),
    click.option("--rater", metavar="NAME", help="A rater of evalmeta.toml, or rules."),
)
_SELECTION: Final = (
    click.option(
        "--case",
        "cases",
        multiple=True,
        callback=_read_case_list,
        metavar="LIST",
        help="Ask only these: 3, 1,4-7, NAME:3 for one test's, or a case's label in a file. Repeat it for more.",
    ),
    click.option("--tag", "tags", multiple=True, help="Ask only what evalmeta.toml has under this tag."),
    click.option(
        "--failed-from", multiple=True, metavar="RUN", help="Ask only what failed or ended in an error in this run."
    ),
    click.option(
        "--shard",
        callback=_read_shard,
        metavar="N/OF",
        help="Ask one part of the cases: 2/5 is the second of five. A case is always in the same part.",
    ),
    click.option("--seed", type=int, callback=_read_seed, help="Ask in an order that this number draws."),
)


def policy_options(command: _Command[_T]) -> _Command[_T]:
    """Adds what passes, and gives the command what was said as `policy`."""
    return _gathered(command, "policy", _POLICY)


def running_options(command: _Command[_T]) -> _Command[_T]:
    """Adds how cases are asked, and gives the command what was said as `running`."""
    return _gathered(command, "running", _RUNNING)


def scoring_options(command: _Command[_T]) -> _Command[_T]:
    """Adds how results are judged, and gives the command what was said as `scoring`."""
    return _gathered(command, "scoring", _SCORING)


def selection_options(command: _Command[_T]) -> _Command[_T]:
    """Adds which cases are asked, and gives the command what was said as `selection`."""

    def wrapped(*, selection: Mapping[str, object], **others: object) -> _T:
        return command(selection=Selection(**selection), **others)  # type: ignore[arg-type] # as the options read it

    return _gathered(wraps(command)(wrapped), "selection", _SELECTION)


def options_of(
    project: Project, scoring: Mapping[str, object], *said: Mapping[str, object], selection: Selection | None = None
) -> RunOptions:
    """Gives the options of a run: what was said, and the project's settings for all else."""
    from evalmeta.model.run import RunOptions  # noqa: PLC0415 - not needed for --help

    run, score = project.settings.run, project.settings.score.model_copy(update=_said(scoring))
    for each in said:
        run = run.model_copy(update=_said(each))
    chosen = selection or Selection()
    return RunOptions(**run.model_dump(), scoring=score.scoring(), shard=chosen.shard, seed=chosen.seed)


def _tell_of(failures: Failures) -> None:
    run, missing = failures.run, failures.run.total - len(failures.run.cases)
    if not failures.numbers:
        note(f"Nothing failed in run {run.id}.")
    if missing > 0:
        note(f"Warning: run {run.id} is {run.status}; {missing:,} of its {run.total:,} case results are missing")


def with_policy(options: RunOptions, policy: Mapping[str, object]) -> RunOptions:
    """Gives options with what was said of what passes."""
    rate, undecided = policy.get("min_pass_rate"), policy.get("undecided")
    if isinstance(rate, int | float):
        options = replace(options, min_pass_rate=float(rate))
    return options if undecided is None else replace(options, undecided="fail" if undecided == "fail" else "ignore")


def _said(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _gathered(
    command: _Command[_T], name: str, options: tuple[Callable[[_Command[_T]], _Command[_T]], ...]
) -> _Command[_T]:
    @wraps(command)
    def run(**given: object) -> _T:
        parameters = {key: given.pop(key) for key in keys}
        return command(**{name: parameters}, **given)

    before = len(getattr(command, "__click_params__", []))
    decorated: _Command[_T] = run
    for option in reversed(options):
        decorated = option(decorated)
    added: list[click.Parameter] = getattr(decorated, "__click_params__", [])[before:]
    keys = [each.name for each in added if each.name]
    return decorated
