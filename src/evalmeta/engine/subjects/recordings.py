"""Results files as recorded answers, in every variant of the results object that orgs give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, SettingsError
from evalmeta.wire.connect import read_run
from evalmeta.wire.jsonfields import read_object

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult

__all__ = ["read_recordings", "utterance_key"]


def read_recordings(path: Path) -> dict[str, list[CaseResult]]:
    """Reads a results file, bare or in the CLI's envelope; recordings come in order by `utterance_key`.

    Raises:
        SettingsError: the file is not there, too large, or holds no results.
    """
    try:
        run = read_run(read_object(_load(path)))
    except MessageUnreadable as error:
        raise _unusable(path, str(error)) from None
    recordings: dict[str, list[CaseResult]] = {}
    for case in run.cases:
        recordings.setdefault(utterance_key(case.utterance), []).append(case)
    return recordings


def utterance_key(utterance: str) -> str:
    """Gives the text by which utterances are the same: blanks and line breaks count as one blank."""
    return " ".join(utterance.split())


def _load(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(limits.MAX_RECORDING_BYTES + 1)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if len(content) > limits.MAX_RECORDING_BYTES:
        raise _unusable(path, f"it is larger than {limits.MAX_RECORDING_BYTES} bytes")
    return content


def _unusable(path: Path, reason: str) -> SettingsError:
    return SettingsError(
        f"the recorded answers in {path} cannot be used: {reason}",
        actions=("Correct the subject's file in evalmeta.toml, or record a run with --result-format json.",),
    )
