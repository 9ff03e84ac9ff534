"""What shells complete besides commands and options: logins, and tests, runs and metadata of the current project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from click.shell_completion import BashComplete, CompletionItem, ShellComplete, add_completion_class, split_arg_string

from evalmeta.package.folders import find_components
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from evalmeta.model.registry import Component

    Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


_RUNS: Final = 50


def _completer(names: Callable[[], Iterable[str]]) -> Completer:
    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        found: list[str] = []
        try:
            found.extend(name for name in names() if name.startswith(begun))
        except Exception:  # noqa: BLE001 - whatever is wrong, a message would disturb the line that the user types
            return found
        return found

    return complete


def _components() -> tuple[Component, ...]:
    return find_components(find_project(Path.cwd(), with_settings=False))


@_completer
def complete_tests() -> Iterable[str]:
    """Complete the name of a test."""
    return dict.fromkeys(component.full_name for component in _components())


@_completer
def complete_metadata() -> Iterable[str]:
    """Complete a metadata type, or a component of it."""
    components = _components()
    yield from dict.fromkeys(component.type.name for component in components)
    yield from (f"{component.type.name}:{component.full_name}" for component in components)


@_completer
def complete_runs() -> Iterable[str]:
    """Complete the id of a run."""
    from evalmeta.store.database import open_database
    from evalmeta.store.run_lists import newest_runs

    yield from ("latest", "previous")
    project = find_project(Path.cwd(), or_folder=True, with_settings=False)
    if project.store.url or project.state_dir.is_dir():
        with open_database(project.store) as database:
            yield from (run.id for run in newest_runs(database, limit=_RUNS))


@_completer
def complete_logins() -> Iterable[str]:
    """Complete the name of a login."""
    from evalmeta.client.logins import user_logins
    from evalmeta.model.login import EMBEDDED

    yield from (login.name for login in user_logins().list_logins())
    yield EMBEDDED


@add_completion_class
class ColonBashComplete(BashComplete):
    """Completion in bash from the line as it was typed, because bash splits its words at colons."""

    name = "bash"
    # Bash replaces only what follows the last colon, so the beginning of a value is removed, as by
    # __ltrim_colon_completions of the project bash-completion.
    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    local line="${COMP_LINE:0:$COMP_POINT}"
    local begun="${line##*[[:space:]=]}"
    local colons="${begun%%"${begun##*:}"}"
    response=$(env COMP_WORDS="$line" %(complete_var)s=bash_complete "$1")
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        case "$type" in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain)
                [[ $COMP_WORDBREAKS == *:* ]] && value="${value#"$colons"}"
                COMPREPLY+=("$value")
                ;;
        esac
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor and the one that is incomplete."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        begun = "" if line[-1:].isspace() or not words else words.pop()
        return words, begun


@add_completion_class
class PowerShellComplete(ShellComplete):
    """Completion by Register-ArgumentCompleter: a line for each value, which has the type, the value and the help."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $env:%(complete_var)s = "powershell_complete"
    $env:COMP_WORDS = $commandAst.ToString()
    $env:COMP_INCOMPLETE = $wordToComplete
    try {
        %(prog_name)s 2>$null | ForEach-Object {
            $kind, $value, $help = $_ -split "`t", 3
            if ($kind -eq "plain") {
                if (-not $help) { $help = $value }
                [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
            }
        }
    } finally {
        Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_INCOMPLETE -ErrorAction SilentlyContinue
    }
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor and the one that is incomplete."""
        words = split_arg_string(os.environ["COMP_WORDS"])[1:]
        begun = os.environ.get("COMP_INCOMPLETE", "")
        return (words[:-1] if begun and words and words[-1] == begun else words), begun

    def format_completion(self, item: CompletionItem) -> str:  # type: ignore[explicit-any]
        """Return the line of a value."""
        return f"{item.type}\t{item.value}\t{(item.help or '').partition(chr(10))[0]}"
