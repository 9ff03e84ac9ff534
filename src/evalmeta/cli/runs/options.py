"""The options that say how tests run, how they are scored, and which of their cases run."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from click.core import ParameterSource

from evalmeta import api, limits
from evalmeta.cli.completions import complete_runs
from evalmeta.cli.groups import remember_words
from evalmeta.cli.options import Command, Decorator, FloatRange, IntRange, option_group
from evalmeta.cli.runs.report_files import ReportingCommand
from evalmeta.errors import UsageError
from evalmeta.model.evaluation import CaseList, parse_case_list, parse_shard
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS, Deciding, Group, Option, RunOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from evalmeta.api.runs.selection import CaseSelection
    from evalmeta.api.runs.verification import Checking
    from evalmeta.package.project import Project

Values: TypeAlias = "Mapping[str, object]"
"""The options that were given, by the names of the settings that they replace."""
_OPTIONS: Final = {option.name: option for option in (*RUN_OPTIONS, *SCORING_OPTIONS)}


def _names(group: Group) -> list[str]:
    """Return the options of a run whose flags are in a group."""
    return [option.name for option in _OPTIONS.values() if option.group == group]


def run_options(
    project: Project,
    scoring: Values,
    *others: Values,
    selection: CaseSelection | None = None,
    checking: Checking | None = None,
) -> RunOptions:
    """Return the options of a run: those that were given, and the project's settings for all others."""
    given = {name: value for values in others for name, value in values.items()}
    decides = (checking and checking.decides) or "org"
    options = project.settings.run_options(given, scoring)
    return replace(options, shard=selection and selection.shard, seed=selection and selection.seed, decides=decides)


def chosen_checking(project: Project, checking: Checking, *, scoring: Values, running: Values) -> Checking:
    """Return how verdicts are checked, with what options or the project's settings choose and orgs do otherwise."""
    settings, options = project.settings, project.settings.run_options(running, scoring)
    return checking._replace(
        profile=options.scoring.profile if "profile" in {*scoring, *settings.score.model_fields_set} else None,
        case_timeout=options.case_timeout if "case_timeout" in {*running, *settings.run.model_fields_set} else None,
    )


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
        raise click.BadParameter(f"{seed} is too large; the maximum is {limits.MAX_INTEGER}.")
    return seed


def _flag(name: str, *, parameter: str = "", **more: object) -> Decorator:
    """Return the flag of an option of a run."""
    option = _OPTIONS[name]
    how = {"type": _type_of(option), "help": option.help, "metavar": option.metavar or None} | more
    return click.option(option.flag, parameter or name, **how)  # type: ignore[arg-type] # click's own settings


def _type_of(option: Option) -> click.ParamType | None:  # type: ignore[explicit-any, type-arg] # as click's
    least, most = option.bounds or (None, None)
    match option.kind:
        case "integer":
            return IntRange(least, most)  # type: ignore[arg-type] # both are whole numbers
        case "number":
            return FloatRange(least, most, min_open=option.is_above)
        case "choice":
            return click.Choice(option.choices)
    return None


_SELECTION: Sequence[Decorator] = (
    click.option(
        "--case",
        "cases",
        multiple=True,
        callback=_read_case_list,
        metavar="LIST",
        help="Run only these cases: 3, 1,4-7, NAME:3 for one test, or a case's label; repeatable.",
    ),
    click.option(
        "--tag", "tags", multiple=True, help="Run only cases with this tag, in test specs or evalmeta.toml; repeatable."
    ),
    click.option(
        "--failed-from",
        multiple=True,
        metavar="RUN",
        shell_complete=complete_runs,
        help="Run only cases that failed or ended in an error in this run.",
    ),
    click.option(
        "--last-failed",
        "--lf",
        is_flag=True,
        help="Run only cases that failed or ended in an error when they last ran, and those that never ran.",
    ),
    click.option(
        "--changed-since",
        metavar="REF",
        help="Run only cases that changes of their file or their agent since this commit, branch or tag may affect.",
    ),
    _flag("shard", callback=_read_shard),
    _flag("seed", type=int, callback=_read_seed),
)


cost_option: Final = _flag("max_cost", help="Give all runs of the command together this new cost limit, in US dollars.")


def _checking(*, verify: bool, verdict: Deciding | None) -> Checking:
    if verdict not in {None, "org"} and not verify:
        raise UsageError(f"--verdict {verdict} needs evalmeta's verdicts", actions=["Leave out --no-verify."])
    return api.runs.verification.Checking(verify, verdict)


checking_options = option_group(
    "checking",
    _checking,
    (
        click.option(
            "--verify/--no-verify",
            default=True,
            help="Also judge the answers of a Salesforce org here, and say which of its verdicts to doubt.",
            show_default=True,
        ),
        _flag("decides", parameter="verdict"),
    ),
)
OPTION_SECTIONS: Final = {
    "Which tests": (
        *(
            "names",
            "bound",
            "cases",
            "tags",
            "failed_from",
            "last_failed",
            "changed_since",
            "shard",
            "seed",
            "target_org",
            "dry_run",
            "estimate",
        ),
        *("columns", "extend", "ignore_changes", "mixed"),
    ),
    "How to run": (*("subject", "model", "api_key_env", "matrix", "wait", "watch"), *_names("running")),
    "How to score": (*_names("policy"), *_names("scoring"), *("config", "verify", "verdict")),
    "Compare": ("baseline", "suspect", "confirm", "history"),
    "Output": ("result_format",),
}
"""The sections of the options of commands that run tests, with the names of their parameters."""


def _given(**values: object) -> Values:
    return {name: value for name, value in values.items() if value is not None}


def _selection(**values: object) -> CaseSelection:
    # Other commands have these options too, and do not need what selects cases.
    return api.runs.selection.CaseSelection(**values)  # type: ignore[arg-type] # click has checked the values


policy_options = option_group("policy", _given, [_flag(name) for name in _names("policy")])
running_options = option_group("running", _given, [_flag(name) for name in _names("running")])
scoring_options = option_group("scoring", _given, [_flag(name) for name in _names("scoring")])
case_options = option_group("selection", _selection, _SELECTION)


# Their effect is on what is reported of finished runs, or on the exit code.
_NEED_RESULTS: Final = frozenset({
    "output_dir", "result_format", "report_files", "traces", "baseline", "confirm", "suspect", "history",
    *_names("policy"),
})  # fmt: skip


# Those of them that `test resume` has, with their values.
_OPTIONS_OF_RESUME: Final = {
    "--output-dir": "DIR",
    "--result-format": "FORMAT",
    "--report": "FILE",
    "--trace": "FILE|URL",
    "--baseline": "FILE_OR_RUN",
    "--suspect": "show|fail",
}


def results_need_wait(command: Command) -> Command:
    """Refuse options that need the results of a run if the command does not wait for them."""

    @wraps(command)
    def run(*args: object, **values: object) -> object:
        is_plan = values["dry_run"] or values["estimate"]
        if values["wait"] is None and not is_plan and (options := _given_options(_NEED_RESULTS)):
            *others, last = options
            named, verb = (f"{', '.join(others)} and {last}", "need") if others else (last, "needs")
            later = [f"{option} {_OPTIONS_OF_RESUME[option]}" for option in options if option in _OPTIONS_OF_RESUME]
            report = f"Or report runs later: `evalmeta test resume --job-id ID {' '.join(later)}`"
            raise UsageError(
                f"{named} {verb} --wait: without it, runs continue in the background; nothing was started",
                actions=["Add --wait.", report] if later else ["Add --wait."],
            )
        return command(*args, **values)

    return run


def _given_options(names: Collection[str]) -> list[str]:
    """Return the options of the current command with these parameter names that the command line has."""
    context = click.get_current_context()
    given = [param for param in context.command.params if param.name in names]
    typed = ParameterSource.COMMANDLINE
    return [param.opts[-1] for param in given if context.get_parameter_source(param.name or "") is typed]


class RenamedOptionsCommand(ReportingCommand):
    """A command that knows other tools' names of its options, and shows its options in sections.

    `renamed` has for each other name of an option its name here. `sections` are the titles of the sections, with the
    names of their parameters. The last one also has all others.
    """

    def __init__(
        self, *args: object, renamed: Mapping[str, str], sections: Mapping[str, Sequence[str]], **settings: object
    ) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type] # as above
        self._renamed = renamed
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their sections."""
        known = {name for names in self.sections.values() for name in names}
        *_, last = self.sections
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for title, names in self.sections.items():
            params = [option for option in options if option.name in names]
            if title == last:
                params += [option for option in options if option.name not in known]
            rows = [row for param in params if (row := param.get_help_record(ctx))]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse and remember the options; the error about an unknown one names the option to use instead."""
        remember_words(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if name := self._renamed.get(error.option_name):
                raise click.UsageError(f"{error.message} Use {name} instead.", ctx) from None
            raise
