"""`evalmeta test rescore`: judge the answers of a run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta.cli.comparisons import Against, baseline_option
from evalmeta.cli.jobs import run_async
from evalmeta.cli.options import report_options
from evalmeta.cli.reruns import locate_run, reach_run, rescore_run
from evalmeta.cli.run_options import options_of, policy_options, scoring_options
from evalmeta.cli.run_reports import Output, report_runs

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("rescore")
@click.argument("run", metavar="RUN")
@click.option("--as-deployed", is_flag=True, help="Judge by the definition as it is deployed now, not as it was.")
@scoring_options
@policy_options
@click.option("-o", "--target-org", metavar="ORG", help="The org that has the run, when several may.")
@baseline_option
@report_options
def rescore(
    run: str,
    *,
    as_deployed: bool,
    scoring: Mapping[str, object],
    policy: Mapping[str, object],
    target_org: str | None,
    against: Against | None,
    output: Output,
) -> int:
    """Judge the answers of a run again, by other rules, without asking the agent.

    \b
    evalmeta test rescore 4KB000000000001GAA --scoring testing-center
    evalmeta test rescore 4KB000000000001GAA --rater judge --baseline 4KB000000000001GAA

    It makes a run of its own; the first one stays as it is. What passes is what passed
    there, unless options say otherwise.
    """
    project, place = locate_run(run, target_org)
    judged = options_of(project, scoring).scoring
    standard = against.open(project) if against else None
    target = reach_run(project, place)
    finished = run_async(rescore_run(project, place, target, judged, policy, as_deployed=as_deployed))
    return report_runs(project, [finished], output, standard=standard)
