"""Completion in PowerShell, which click does not support."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from click.shell_completion import ShellComplete, add_completion_class, split_arg_string

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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
