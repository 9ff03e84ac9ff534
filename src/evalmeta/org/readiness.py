"""Check that everything that runs need can be used, before the first question is sent to an agent.

Nothing is sent for it. A served org imports the project's code in another process, which does the same check:
`python -m evalmeta.org.readiness PROJECT` reads needs from stdin and writes faults to stdout, both as JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.engine.prices import Prices
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.scorers.functions import check_function, named_functions
from evalmeta.engine.subjects.objects import bound_for
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.evaluation import input_kinds, select_cases
from evalmeta.model.redaction import child_environment
from evalmeta.model.settings import PluginRater, RaterSettings, RulesRater, Settings, SubjectSettings
from evalmeta.org.run_files import read_subject
from evalmeta.org.subjects import agent_settings, bind_subject, rater_settings
from evalmeta.package.project import SETTINGS_FILE, find_project
from evalmeta.protocol.json_fields import read_object
from evalmeta.protocol.runs import RunFault, read_faults, write_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run_options import RunOptions
    from evalmeta.org.organization import Organization


class Need(NamedTuple):
    """What must be usable before a run starts: a `subject`, a `rater` or a `function`, by its name.

    The subject type is AGENT or PROMPT; `subject` has the agent's settings as JSON if the run has its own, and `inputs`
    the kinds of its inputs as JSON if not all of them are texts. A `price` is needed by a run with a cost limit, of its
    subject or its rater.
    """

    kind: str
    name: str
    subject_type: str = "AGENT"
    subject: str = ""
    rater: str = ""
    inputs: str = ""


def needs_of(
    evaluation: Evaluation, options: RunOptions, *, subject: SubjectSettings | None = None, asks: bool = True
) -> list[Need]:
    """Return what the selected cases of a run need; `subject` has the agent's own settings."""
    own = "" if subject is None else subject.model_dump_json(exclude_unset=True)
    kinds = input_kinds(select_cases(evaluation, options)) if asks else ()
    inputs = orjson.dumps(sorted(kinds, key=str)).decode() if any(kinds) else ""
    agent = [Need("subject", evaluation.subject_name, evaluation.subject_type, own, inputs=inputs)] if asks else []
    functions = [Need("function", name) for name in named_functions(evaluation, options)]
    price = Need("price", evaluation.subject_name, subject=own, rater=options.scoring.rater)
    limited = [price] if asks and options.max_cost is not None else []
    return [*agent, Need("rater", options.scoring.rater), *functions, *limited]


_DEFAULT_RATER: Final = RulesRater(adapter="rules")


def find_faults(org: Organization, needs: Sequence[Iterable[Need]]) -> list[RunFault]:
    """Return which of the runs' needs cannot be used in the org, with the places of the runs."""
    runs: dict[Need, list[int]] = {}
    for number, of_run in enumerate(needs):
        for need in of_run:
            runs.setdefault(need, []).append(number)
    settings = org.settings()
    wanted = [need for need in runs if need not in org.usable]
    elsewhere = [need for need in wanted if org.is_served and _imports_code(need, settings, org.root)]
    errors = {
        need: fault_of(need, settings, root=org.root, settings_name=org.settings_name)
        for need in wanted
        if need not in elsewhere
    }
    errors |= _faults_elsewhere(org, elsewhere) if elsewhere else {}
    if not org.is_served:
        org.usable.update(need for need, error in errors.items() if error is None)
    return [RunFault(error, tuple(runs[need])) for need, error in errors.items() if error is not None]


def fault_of(need: Need, settings: Settings, *, root: Path, settings_name: str = SETTINGS_FILE) -> EvalmetaError | None:
    """Return why something cannot be used, None if it can."""
    try:
        # What the agent prints while it is imported must not mix with a report.
        with redirect_stdout(sys.stderr):
            _use(need, settings, root, settings_name)
    except EvalmetaError as error:
        return error
    return None


def _use(need: Need, settings: Settings, root: Path, settings_name: str) -> None:
    match need.kind:
        case "subject":
            own = _settings_of(need, settings, root) if need.subject else None
            subjects = settings.subjects if own is None else {need.name: own}
            kinds = [keys and tuple(keys) for keys in orjson.loads(need.inputs or "[null]")]
            with bound_for(kinds):
                bind_subject(
                    subjects, need.name, root=root, subject_type=need.subject_type, settings_name=settings_name
                )
        case "rater":
            rater = rater_settings(settings.raters, need.name, root=root, settings_name=settings_name)
            if rater != _DEFAULT_RATER:
                from evalmeta.engine.raters import bind_rater

                bind_rater(rater, root=root)
        case "price":
            rater = rater_settings(settings.raters, need.rater, root=root, settings_name=settings_name)
            check_price(Prices(settings.prices), _settings_of(need, settings, root), rater)
        case _:
            check_function(need.name, root=root)


def _settings_of(need: Need, settings: Settings, root: Path) -> SubjectSettings | None:
    """Return the settings of the agent that a run asks: its own ones, or those of the project."""
    own = read_subject(orjson.loads(need.subject)) if need.subject else None
    return own or agent_settings(settings.subjects, need.name, root=root)


def check_price(prices: Prices, subject: SubjectSettings | None, rater: RaterSettings | None) -> None:
    """Raise SettingsError if neither the agent nor the rater of a run with a cost limit can have a price."""
    own = [subject.language_model] if subject and subject.language_model else []
    judges = rater.model_names if isinstance(rater, LlmRater) else ()
    # An agent whose settings name no model may report one with its answers.
    if any(map(prices.knows, (*own, *judges))) or (not own and prices.knows_any):
        return
    unknown = [*own, *judges] or ["MODEL"]
    named = f": {' and '.join(unknown)} {'has' if len(unknown) == 1 else 'have'} none" if own or judges else ""
    lines = "\n".join(f'[prices."{model}"]\ninput = 0.40     # US dollars\noutput = 1.60' for model in unknown)
    raise SettingsError(
        f"the cost limit (max_cost) needs the price of a model{named}",
        actions=[
            f"Add what a million tokens cost to {SETTINGS_FILE}:\n\n{lines}",
            "For the prices of public models, install evalmeta[llm].",
        ],
    )


def _imports_code(need: Need, settings: Settings, root: Path) -> bool:
    """Return whether a check imports the project's code or large packages."""
    if need.kind == "price":
        return False
    if need.kind == "function":
        return True
    if need.kind == "subject":
        return (agent := agent_settings(settings.subjects, need.name, root=root)) is not None and agent.imports_code
    match settings.raters.get(need.name):
        case RulesRater(embed=embed):
            return bool(embed)
        case LlmRater(url=url):
            return not url
        case rater:
            return isinstance(rater, PluginRater)


def _faults_elsewhere(org: Organization, needs: Sequence[Need]) -> dict[Need, EvalmetaError | None]:
    """Check needs in another process: an agent that hangs, exits or fills the memory must not end the server."""
    try:
        # -P: a file of the project must not replace a module of the standard library with the same name.
        checked = subprocess.run(
            [sys.executable, "-P", "-m", "evalmeta.org.readiness", str(org.root)],
            input=orjson.dumps([list(need) for need in needs]),
            capture_output=True,
            timeout=limits.READINESS_SECONDS,
            cwd=org.root,
            env=child_environment(EVALMETA_HOME=str(org.database.folder)),
            check=False,
        )
    except subprocess.TimeoutExpired:
        # The run's own process may take longer.
        return {}
    if checked.returncode:
        reason = f"the process that imports it ended with exit code {checked.returncode}"
        return {need: SettingsError(f"the {need.kind} {need.name!r} cannot be used: {reason}") for need in needs}
    return {needs[number]: error for error, runs in read_faults(read_object(checked.stdout)) for number in runs}


def main(root: str) -> int:
    """Check the needs on stdin in the project in `root`, and write the faults to stdout; return the exit code."""
    # Imported code may write to stdout in any way.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        project = find_project(Path(root))
        needs = [Need(*fields) for fields in orjson.loads(sys.stdin.buffer.read())]
        errors = (fault_of(need, project.settings, root=project.root) for need in needs)
        faults = [RunFault(error, (number,)) for number, error in enumerate(errors) if error is not None]
        output.write(orjson.dumps(write_faults(faults)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
