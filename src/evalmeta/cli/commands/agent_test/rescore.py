"""`evalmeta test rescore`: score the answers of a run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta.cli.comparisons import baseline_option
from evalmeta.cli.reruns import find_run, rescore_run
from evalmeta.cli.run_options import policy_options, run_options, scoring_options
from evalmeta.cli.run_reports import Output, report_options, report_runs

if TYPE_CHECKING:
    from evalmeta.cli.comparisons import BaselineOption
    from evalmeta.cli.run_options import Values


@click.command("rescore")
@click.argument("run", metavar="RUN")
@click.option("--as-deployed", is_flag=True, help="Use the definition that is deployed now, not that of the run.")
@scoring_options
@policy_options
@click.option("-o", "--target-org", metavar="ORG", help="The org that has the run, if several may have it.")
@baseline_option
@report_options
def rescore(
    run: str,
    *,
    as_deployed: bool,
    scoring: Values,
    policy: Values,
    target_org: str | None,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Score the answers of a run again with other rules, without asking the agent.

    \b
    evalmeta test rescore 4KB000000000001GAA --scoring testing-center
    evalmeta test rescore 4KB000000000001GAA --rater judge --baseline 4KB000000000001GAA

    The result is a new run; the first one does not change. What passes is decided as in
    the first run, unless options say otherwise.
    """
    found = find_run(run, target_org)
    rules = run_options(found.project, scoring).scoring
    comparator = baseline.open(found.project) if baseline else None
    finished = rescore_run(found, rules, policy, as_deployed=as_deployed)
    return report_runs(found.project, [finished], output, comparator=comparator)
