"""The `evalmeta` program: its commands, and the one place where errors become text and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Final

import click

from evalmeta import __version__
from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.output import print_error
from evalmeta.cli.suggestions import Call
from evalmeta.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, EvalmetaError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Sequence


_EPILOG: Final = """\b
Exit codes
    0  everything passed
    1  problems found, a deployment failed, or test cases ended in errors
    2  wrong usage: the call, the project or its settings
    4  the org, or the network on the way to it
   68  some components were deployed, others were refused
   69  the wait ran out; the job goes on
  100  an expectation failed, or the pass rate was missed
  130  interrupted; finished results are kept
"""


# What the system says when a stream takes no more; where files are written, errors name them.
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

_COMMANDS: Final = {
    "completion": "evalmeta.cli.commands.completion:completion",
    "convert": "evalmeta.cli.commands.convert:convert",
    "deploy": "evalmeta.cli.commands.deploy:deploy",
    "diff": "evalmeta.cli.commands.diff:diff",
    "format": "evalmeta.cli.commands.format:format_",
    "generate": "evalmeta.cli.commands.generate:generate",
    "manifest": "evalmeta.cli.commands.manifest:manifest",
    "org": "evalmeta.cli.commands.org:org",
    "package": "evalmeta.cli.commands.package:package",
    "rater": "evalmeta.cli.commands.rater:rater",
    "retrieve": "evalmeta.cli.commands.retrieve:retrieve",
    "rule": "evalmeta.cli.commands.rule:rule",
    "status": "evalmeta.cli.commands.status:status",
    "test": "evalmeta.cli.commands.agent_test:test",
    "validate": "evalmeta.cli.commands.validate:validate",
}


@click.group(
    cls=LazyGroup,
    rows=_COMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Keep AI agent tests as AiEvaluationDefinition metadata in your project.

    \b
    evalmeta validate                        check definitions and the manifest
    evalmeta deploy --manifest package.xml   send them to the org
    evalmeta retrieve                        fetch what the org has
    evalmeta test run --wait                 run them and report

    Commands work on the project around the current folder: a Salesforce DX project,
    or a folder with package.xml beside aiEvaluationDefinitions/. The org is the one
    embedded in the project (.evalmeta/).
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the program and exits with its code; no error ends in a traceback."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    call = Call()
    # Errors are printed when the command's own context is gone, and suggest commands too.
    with click.Context(cli, obj=call):
        return _carry_out(arguments, call, as_json=as_json)


def _carry_out(arguments: Sequence[str] | None, call: Call, *, as_json: bool) -> int:
    try:
        result = cli.main(arguments, prog_name="evalmeta", standalone_mode=False, obj=call)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        return _usage(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        print_error(Interrupted("interrupted"), as_json=as_json)
        return EXIT_INTERRUPTED
    except EvalmetaError as error:
        print_error(error, as_json=as_json)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - the last resort: a full disk, or a defect of evalmeta's own
        if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print_error(_unwritten(error), as_json=False)
        else:
            print_error(_defect(error), as_json=as_json)
        return EXIT_FAILED


def _unwritten(error: OSError) -> EvalmetaError:
    return EvalmetaError(
        f"the output cannot be written: {error.strerror}",
        actions=["Make room where it goes, or send it elsewhere, and run the command again."],
    )


def _usage(error: click.ClickException, *, as_json: bool) -> int:
    from evalmeta.model.redaction import redacted  # noqa: PLC0415 - only on the way out

    # click quotes the words that it does not understand.
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        click.echo(error.format_message())
        return EXIT_USAGE
    shown = click.UsageError(redacted(error.format_message()), ctx=ctx)
    if as_json:
        print_error(_as_error(shown), as_json=True)
    else:
        shown.show()
    return EXIT_USAGE


def _as_error(error: click.ClickException) -> EvalmetaError:
    from evalmeta.errors import UsageError  # noqa: PLC0415 - only on the way out

    return UsageError(error.format_message())


def _defect(error: Exception) -> EvalmetaError:
    import tempfile  # noqa: PLC0415 - only for a defect
    import traceback  # noqa: PLC0415 - likewise

    from evalmeta.model.redaction import redacted  # noqa: PLC0415 - likewise

    with tempfile.NamedTemporaryFile("w", prefix="evalmeta-", suffix=".log", delete=False, encoding="utf-8") as log:
        log.write(f"evalmeta {__version__}, Python {sys.version}\n")
        log.write(redacted("".join(traceback.format_exception(error))))
    return EvalmetaError(
        f"this is a defect in evalmeta: {type(error).__name__}: {error}",
        actions=[f"Report it with the log {log.name}; nothing was half-written."],
    )
