"""`evalmeta doctor`: check that everything that tests need works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api, limits
from evalmeta.cli.options import FloatRange
from evalmeta.cli.orgs import target_org_option
from evalmeta.cli.output import json_option, print_json, wants_colour
from evalmeta.cli.suggestions import completed
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.doctor.examination import Check


_COLOURS: Final = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command()
@click.option(
    "--question",
    default="",
    metavar="TEXT",
    help='Question to each agent of evalmeta.toml; with a remote org, it implies --smoke.  [default: "Hello!"]',
)
@click.option("--no-questions", is_flag=True, help="Load agents and raters without asking them.")
@click.option(
    "--smoke",
    is_flag=True,
    help="Also start the smallest deployed test in the org, and cancel it after its first answer.",
)
@click.option(
    "--timeout",
    type=FloatRange(0, limits.MAX_CASE_TIMEOUT_SECONDS, min_open=True),
    default=limits.DOCTOR_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of each check.",
)
@target_org_option
@json_option
def doctor(
    *, question: str, no_questions: bool, smoke: bool, timeout: float, target_org: str | None, as_json: bool
) -> int:
    """Check Python, settings, tests, agents, raters, the store and the org.

    Each line says ok, warning or error, and what to do. Each agent answers one question, and each LLM rater rates a
    right and a wrong answer, which can cost money; agents in Salesforce orgs are only asked with --question or --smoke,
    because their actions are real. A remote org is asked the first case of a deployed test, not the question. Its
    login, API version, Testing Center, agents and definitions are checked. The exit code is 1 if there is an error.
    Secrets are not printed.

    \b
    evalmeta doctor
    evalmeta doctor --question "Where is my order?"
    evalmeta doctor --no-questions --json
    evalmeta doctor --target-org dev --smoke
    """
    if question and no_questions:
        raise UsageError("--question and --no-questions contradict each other", actions=["Leave out one of them."])
    checks = []
    for examined in api.doctor.examination.examine(
        Path.cwd(), question=None if no_questions else question, target_org=target_org, is_smoke=smoke, timeout=timeout
    ):
        checks.append(examined)
        if not as_json:
            _print(examined)
    failed = any(check.finding.status == "error" for check in checks)
    status = EXIT_FAILED if failed else EXIT_PASSED
    if as_json:
        rows = [
            {"name": check.subject, **check.finding._asdict(), "action": completed(check.finding.action)}
            for check in checks
        ]
        print_json({"checks": rows}, status=status)
    else:
        click.echo(f"\n{_verdict(checks)}")
    return status


def _print(check: Check) -> None:
    finding = check.finding
    head = click.style(f"{finding.status:<8}", fg=_COLOURS[finding.status])
    message = finding.message.replace("\n", "\n         ")
    click.echo(f"{head} {check.subject}: {message}", color=wants_colour())
    if finding.action:
        action = completed(finding.action).replace("\n", "\n           ")
        click.echo(f"         → {action}")


def _verdict(checks: Sequence[Check]) -> str:
    counts = {status: sum(check.finding.status == status for check in checks) for status in ("error", "warning")}
    found = [f"{number} {status}{'s' if number > 1 else ''}" for status, number in counts.items() if number]
    return f"{' and '.join(found)} found" if found else "Everything works."
