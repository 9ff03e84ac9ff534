"""`evalmeta coverage`: which parts of an agent no test covers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from evalmeta import api
from evalmeta.cli.options import FloatRange
from evalmeta.cli.output import json_option, note, print_json, print_styled
from evalmeta.cli.runs.baselines import COLOURS
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_PASSED
from evalmeta.package.project import find_project
from evalmeta.report.coverage import FORMATS, coverage_json, coverage_lines, render
from evalmeta.report.text import and_more, percent

_SHOWN: Final = 5


@click.command()
@click.argument("agent", required=False, default="")
@click.option(
    "--min-coverage",
    type=FloatRange(0, 100),
    metavar="PERCENT",
    help="Exit with 100 if fewer parts of an agent are covered.",
)
@click.option("--result-format", type=click.Choice(FORMATS), default="human", show_default=True, help="Output format.")
@click.option("-v", "--verbose", is_flag=True, help="Also say why files in the project are not tests.")
@json_option
def coverage(*, agent: str, min_coverage: float | None, result_format: str, verbose: bool, as_json: bool) -> int:
    """Show which topics, actions, transitions and guards of an agent no test covers.

    AGENT is an agent in Agent Script or classic metadata, or one in evalmeta.toml that lists its
    tools: an agent of a framework, which is imported, or a server of MCP, which is started. By
    default, all agents in the files of the project. The tests are those in the files of the
    project. A part that the newest runs have shown is marked, also without a test.

    \b
    evalmeta coverage
    evalmeta coverage Library_Desk --min-coverage 80
    evalmeta coverage --result-format html > coverage.html

    The exit code is 100 if less than --min-coverage is covered. A test or a script that cannot
    be read is an error.
    """
    agents, others, left_out = api.coverage.measure_coverage(find_project(Path.cwd(), or_folder=True), agent)
    below = [one for one in agents if min_coverage is not None and one.is_below(min_coverage)]
    status = EXIT_EXPECTATION_FAILED if below else EXIT_PASSED
    if as_json:
        print_json({"agents": [coverage_json(one) for one in agents]}, status=status)
    elif result_format == "human":
        for one in agents:
            print_styled(coverage_lines(one), COLOURS)
    else:
        click.echo(render(result_format, agents), nl=False)
    if text := api.discovery.others_note(others, verbose=verbose):
        note(text)
    if left_out:
        note(f"Not measured, because an agent must be named to be asked for its tools: {and_more(left_out, _SHOWN)}.")
    for one in below:
        note(f"The coverage of {one.agent} is {percent(one.share)}, below {min_coverage:g} %.")
    return status
