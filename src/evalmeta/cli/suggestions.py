"""How the program was called, so that the commands it suggests go to the same org and take the same files."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


# Commands that talk to an org, as they stand at the end of a sentence: a group or command, and what follows it.
_SUGGESTED: Final = re.compile(r"(?<=: )evalmeta (deploy|diff|retrieve|status|test)(?![\w-])([^\n]*)$", re.MULTILINE)
_SELECTING: Final = frozenset({"deploy", "retrieve"})


@dataclass(slots=True)
class Call:
    """The options of a call that commands suggested by it repeat, as words."""

    target: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()


def remember_target(ctx: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Keeps the org that a call names: the callback of --target-org."""
    ctx.ensure_object(Call).target = ("--target-org", name) if name else ()
    return name


def remember_selection(source_dirs: Iterable[Path], manifest: Path | None, metadata: Iterable[str]) -> None:
    """Keeps the files that a call selects."""
    pairs = [
        *(("--source-dir", str(each)) for each in source_dirs),
        *(("--manifest", str(each)) for each in (manifest,) if each),
        *(("--metadata", each) for each in metadata),
    ]
    click.get_current_context().ensure_object(Call).selection = tuple(word for pair in pairs for word in pair)


def repeated(text: str) -> str:
    """Gives a text whose suggested commands repeat the call's org and, where they take one, its selection."""
    ctx = click.get_current_context(silent=True)
    call = ctx.find_object(Call) if ctx else None
    return _SUGGESTED.sub(lambda found: _completed(found, call), text) if call else text


def _completed(found: re.Match[str], call: Call) -> str:
    command, rest = found.groups()
    takes_selection = command in _SELECTING and not re.match(r" [^-]", rest)
    words = (*(call.target if "--target-org" not in rest else ()), *(call.selection if takes_selection else ()))
    return f"{found[0]} {shlex.join(words)}" if words else found[0]
