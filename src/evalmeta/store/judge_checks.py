"""How often judges were right about labelled pairs, as `evalmeta rater check` found: a file of a state folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import EvalmetaError
from evalmeta.model.statistics import JudgeCheck
from evalmeta.package.files import put_file, read_file

if TYPE_CHECKING:
    from pathlib import Path

_FILE: Final = "judge-checks.json"


def keep_check(state_dir: Path, judge: tuple[str, str], threshold: float, check: JudgeCheck) -> None:
    """Save the check of a judge, instead of an earlier one of the same models, prompts and threshold."""
    checks = {**_read(state_dir), _key(judge, threshold): check.text}
    put_file(state_dir / _FILE, orjson.dumps(checks, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def find_check(state_dir: Path, judge: tuple[str, str], threshold: float) -> str:
    """Return the latest check of a judge as runs record it; empty if it was not checked."""
    text = _read(state_dir).get(_key(judge, threshold), "")
    return text if isinstance(text, str) and JudgeCheck.read(text) else ""


def _key(judge: tuple[str, str], threshold: float) -> str:
    rater, prompt = judge
    return f"{rater}, prompt {prompt}, threshold {threshold:g}"


def _read(state_dir: Path) -> dict[str, object]:
    """Return the checks by their keys; none if the file is missing or damaged, because a new check replaces it."""
    try:
        checks = orjson.loads(read_file(state_dir / _FILE, max_bytes=limits.MAX_JSON_BYTES))
    except (EvalmetaError, OSError, orjson.JSONDecodeError):
        return {}
    return checks if isinstance(checks, dict) else {}
