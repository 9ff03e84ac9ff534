"""The `evalmeta` program and its commands."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.groups import CallOptions, LazyGroup
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence


_EPILOG: Final = """\b
Exit codes
    0  everything passed
    1  problems found, a deployment failed, or test cases ended in errors
    2  usage error: the command line, the project or its settings
    4  org or network error
   68  some components were deployed, others were rejected
   69  timed out; the job continues
  100  an expectation failed, or the pass rate was missed
  130  interrupted; finished results are kept
"""

# The summaries are here so that `evalmeta --help` imports no command.
_COMMANDS: Final = {
    "agent": ("agent:agent", "Talk to the agents of a project."),
    "changes": ("changes:changes", "Show which cases broke, why, by whose fault, and since which commit."),
    "completion": ("init:completion", "Print the script that completes evalmeta's commands in your shell."),
    "convert": ("convert:convert", "Convert a project between source and metadata format, or a file between formats."),
    "coverage": ("coverage:coverage", "Show which topics, actions, transitions and guards of an agent no test covers."),
    "deploy": ("deploy:deploy", "Check components and deploy them to the org: all of them, or none."),
    "diff": ("retrieve:diff", "Show how components differ between the project and the org."),
    "doctor": ("init:doctor", "Check Python, settings, tests, agents, raters, the store and the org."),
    "format": ("convert:format_", "Format definitions and manifests as an org writes them."),
    "generate": ("convert:generate", "Write test specs, and their JSON Schema for editors."),
    "init": ("init:init", "Write evalmeta.toml and the first tests of your agent."),
    "manifest": ("packages:manifest", "Write manifests: package.xml and destructive changes."),
    "org": ("org:org", "Log in to orgs and choose one, or serve the project's own org."),
    "package": ("packages:package", "Build packages for the Metadata API."),
    "rater": ("rater:rater", "Show the prompts of the LLM rater, and measure how well raters judge."),
    "retrieve": ("retrieve:retrieve", "Retrieve components from the org into the project."),
    "rule": ("validate:rule", "Explain a validation rule, or list all rules."),
    "run": ("run:run", "Run the tests in files and folders, and show their results."),
    "status": ("retrieve:status", "List what changed in the project or in the org since the last deploy or retrieve."),
    "store": ("store:store", "Bring the store of the runs up to date, check it, or copy it to another."),
    "test": ("agent_test:test", "Run agent tests and show their results."),
    "trace": ("trace:trace", "Read traces of OpenTelemetry: what an agent was asked, did and answered."),
    "validate": ("validate:validate", "Check components, tests and manifests without an org."),
    "view": ("view:view", "Look at tests, runs, cases, comparisons and trends in a browser."),
}

_SECTIONS: Final = {
    "Start": ("init", "run", "doctor", "completion"),
    "Tests": ("test", "changes", "coverage", "view", "agent", "trace", "rater", "generate"),
    "Metadata": (
        "validate",
        "rule",
        "format",
        "convert",
        "deploy",
        "retrieve",
        "status",
        "diff",
        "manifest",
        "package",
    ),
    "Org": ("org", "store"),
}

# Commands of sf, and names of commands that are in a group.
_HINTS: Final = {
    "project": "Leave it out: 'sf project deploy start' is 'evalmeta deploy start'.",
    "delete": "To delete components, see 'evalmeta manifest generate --help'.",
    "login": "Did you mean 'org login'?",
    "serve": "Did you mean 'org start'?",
    **{
        name: f"Did you mean 'test {name}'?"
        for name in ("baseline", "cancel", "compare", "create", "history", "list", "rescore", "results", "resume")
    },
}


@click.group(
    cls=LazyGroup,
    module="evalmeta.cli.commands",
    rows=_COMMANDS,
    sections=_SECTIONS,
    hints=_HINTS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Test AI agents with tests that you keep as files in your project.

    \b
    evalmeta init              write settings and the first tests
    evalmeta run               run the tests in files
    evalmeta doctor            check the agent and everything else that tests need

    In a Salesforce DX project, tests can also be metadata that is deployed to an org:

    \b
    evalmeta deploy            send the definitions and agents to the org
    evalmeta test run --wait   run them there, and show their results
    evalmeta retrieve          write those of the org into the project

    Commands work on the project that contains the current folder. By default, the org is
    embedded in the project (.evalmeta/).
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit with its code; no error ends in a traceback."""
    _open_closed_streams()
    if "_EVALMETA_COMPLETE" in os.environ:
        import evalmeta.cli.completions  # noqa: F401 - registers the shells before click looks for one
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    options = CallOptions()
    # An error is printed after the command's own context has ended, and can suggest commands.
    with click.Context(cli, obj=options):
        try:
            result = cli.main(arguments, prog_name="evalmeta", standalone_mode=False, obj=options)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every error becomes text and an exit code
            from evalmeta.cli.output import report_error

            sys.exit(report_error(error, as_json=as_json))
        sys.exit(result if isinstance(result, int) else 0)


def _open_closed_streams() -> None:
    """Let stdin, stdout and stderr lead nowhere if the caller has closed them.

    Otherwise the next file that is opened, such as the database, would receive what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, closefd=False, encoding="utf-8"))
