"""Run the tests of a call, or print which cases would run, and report them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.options import PATH, Decorator, columns_option, option_group
from evalmeta.cli.output import print_json
from evalmeta.cli.runs.reports import Output, report_outcome
from evalmeta.model.evaluation import iterations_of
from evalmeta.model.spending import cost_lines, costs_json, dollars, dollars_text
from evalmeta.report.report import iterations_of_runs
from evalmeta.report.text import count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.runs.estimates import Estimate
    from evalmeta.api.runs.selection import PlannedRun
    from evalmeta.api.runs.starting import AgentOptions, RunCall
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run_options import Scoring


_AGENT: Sequence[Decorator] = (
    click.option(
        "--agent",
        "--subject",
        "subject",
        metavar="AGENT",
        help="Agent under test for file runs: module:function, http://HOST/v1, a2a:URL, mcp:URL, or an agent of "
        "evalmeta.toml.  [default: the file's]",
    ),
    click.option("--model", metavar="NAME", help="With --agent URL: the model to ask."),
    click.option("--api-key-env", metavar="NAME", help="With --agent URL: the environment variable with the API key."),
    click.option(
        "--matrix",
        multiple=True,
        metavar="KEY=A,B",
        help="Run all tests with each agent (subject=a,b) or model (model=x,y), and compare them; repeatable.",
    ),
    click.option(
        "--config",
        type=PATH,
        help="Criteria of ADK's eval sets.  [default: test_config.json beside each file]",
        metavar="FILE",
    ),
    columns_option,
)


def _agent(**values: object) -> AgentOptions:
    # Help is printed without what runs need.
    return api.runs.starting.AgentOptions(**values)  # type: ignore[arg-type] # click has checked the values


estimate_option: Final = click.option(
    "--estimate", is_flag=True, help="Print what the run would cost, by earlier runs, without running any case."
)
agent_options = option_group("agent", _agent, _AGENT)


def run_call(call: RunCall, output: Output) -> int:
    """Run the tests of a call, or print them with --dry-run and --estimate, and return the exit code."""
    calls, printer = api.runs.calls, output.printer()
    with calls.prepared(call, printer) as ready:
        if ready is None:
            return report_outcome(call.project, api.runs.waiting.RunsOutcome([], [], []), output, call.comparator)
        if call.is_plan:
            planned = calls.plan(ready, printer)
            if call.estimates:
                _print_estimates(api.runs.estimates.estimate_runs(ready, planned), as_json=output.as_json)
            else:
                _print_plan(ready, planned, as_json=output.as_json)
            return 0
        outcome, comparator = calls.carry_out(ready, printer)
        return report_outcome(call.project, outcome, output, comparator)


def _print_plan(call: RunCall, planned: Sequence[PlannedRun], *, as_json: bool) -> None:
    """Print what the runs would ask."""
    if as_json:
        print_json([_plan_json(run) for run in planned])
        return
    for run in planned:
        click.echo("\n".join(_lines(run, _adapter(call, run))))
    click.echo(_total(planned, call.options.scoring))


def _print_estimates(estimates: Sequence[Estimate], *, as_json: bool) -> None:
    """Print what the runs would cost, and what that is based on."""
    if as_json:
        print_json([_estimate_json(estimate) for estimate in estimates])
        return
    for estimate in estimates:
        click.echo("\n".join(_estimate_lines(estimate)))
    known = [estimate for estimate in estimates if estimate.spent]
    total = dollars_text(sum(row.amount for estimate in known for row in estimate.spent))
    unknown = sum(estimate.asked for estimate in estimates if not estimate.is_known)
    about = (
        f"Would cost {'at least ' if unknown else ''}about {total}" if known or not unknown else "The cost is not known"
    )
    lacking = f"; {count(unknown, 'case result')} would have requests without a known price" if unknown else ""
    click.echo(f"{about}{lacking}. No case was run.")


def _estimate_lines(estimate: Estimate) -> Iterator[str]:
    if not estimate.spent:
        why = "no earlier run of this test and agent" if not estimate.runs else "its earlier runs have no known cost"
        yield one_line(f"{estimate.definition}: unknown for {count(estimate.asked, 'case result')}: {why}", chars=300)
        return
    basis = f"from {count(estimate.runs, 'run')}, {count(estimate.answers, 'answer')}"
    yield one_line(f"{estimate.definition}: {count(estimate.asked, 'case result')}, estimated {basis}", chars=300)
    yield from (f"  {line}" for line in cost_lines(estimate.spent))


def _estimate_json(estimate: Estimate) -> JsonObject:
    return {
        "definition": estimate.definition,
        "caseResults": estimate.asked,
        "basis": {"runs": estimate.runs, "answers": estimate.answers},
        "isComplete": estimate.is_known,
        "usd": dollars(sum(row.amount for row in estimate.spent)) if estimate.spent else None,
        "cost": costs_json(estimate.spent),
    }


def _adapter(call: RunCall, planned: PlannedRun) -> str:
    """Return the agent's adapter in parentheses; empty for agents in other orgs."""
    if call.target is not None or any(file.name == planned.definition and file.subject for file in call.files):
        return ""
    from evalmeta.org.subjects import agent_settings

    settings = agent_settings(call.project.settings.subjects, planned.subject_name, root=call.project.root)
    return f" (adapter {settings.adapter})" if settings else " (no adapter is bound to it)"


def _lines(planned: PlannedRun, adapter: str) -> Iterator[str]:
    if not planned.cases:
        yield one_line(f"{planned.definition}: none of its {count(planned.left_out, 'case')}\n", chars=200)
        return
    left_out = f", {planned.left_out:,} left out" if planned.left_out else ""
    subject = f"subject {planned.subject_name}{adapter}" if planned.subject_name else "no subject is named"
    yield one_line(f"{planned.definition}: {subject}", chars=200)
    yield f"  {count(len(planned.cases), 'case')}{left_out}"
    for case in planned.cases:
        label = f"{one_line(case.label)}: " if case.label else ""
        asked = f"not run: {case.not_run}" if case.not_run else " / ".join(turn.utterance for turn in case.turns)
        times = iterations_of(case, planned.options)
        repeated = f" ({count(times, 'iteration')})" if times != planned.options.iterations else ""
        yield f"  {case.number:>4} {label}{one_line(asked)}{repeated}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], scoring: Scoring) -> str:
    cases = sum(len(run.cases) for run in planned)
    questions = sum(run.utterances for run in planned)
    options = [run.options for run in planned]
    iterations = f" in {iterations_of_runs(options)}" if any(own.is_repeated for own in options) else ""
    judged = f"scoring {scoring.profile}, rater {scoring.rater}"
    return f"Would run {count(cases, 'case')}{iterations}: {count(questions, 'question')}, {judged}. No case was run."


def _plan_json(planned: PlannedRun) -> JsonObject:
    return {
        "definition": planned.definition,
        "type": planned.type,
        "subjectName": planned.subject_name,
        "iterations": planned.options.iterations,
        "questions": planned.utterances,
        "cases": [
            {
                "number": case.number,
                "name": case.label,
                "iterations": iterations_of(case, planned.options),
                "utterances": [turn.utterance for turn in case.turns],
            }
            for case in planned.cases
        ],
        "leftOut": planned.left_out,
        "expectations": planned.expectations,
    }
