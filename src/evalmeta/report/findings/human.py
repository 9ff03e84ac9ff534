"""Problems for people: each with its place and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.report.plain import one_line
from evalmeta.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.problem import Problem

__all__ = ["render"]

_PLACE_CHARS: Final = 400
_TEXT_CHARS: Final = 1_000


def render(problems: Sequence[Problem], *, files: int) -> str:
    """Writes problems grouped by file, in order of place, and a last line that counts them.

    Args:
        problems: the problems of all files; files come in the order of their first problem.
        files: how many files were checked; 0 when others than those with problems do not matter.
    """
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.location.path, []).append(problem)
    groups = ["\n".join(_group(each)) for each in by_file.values()]
    return "\n\n".join([*groups, _last_line(problems, bad_files=len(by_file), files=files)]) + "\n"


def _group(problems: Sequence[Problem]) -> Iterator[str]:
    ordered = sorted(problems, key=lambda problem: problem.location)
    places = [one_line(f"{problem.location}", chars=_PLACE_CHARS) for problem in ordered]
    width = max(map(len, places))
    for shown, problem in zip(places, ordered, strict=True):
        message = one_line(problem.message, chars=_TEXT_CHARS)
        yield f"{shown:{width}}  {problem.severity:7}  {message}  [{problem.code}]"
        if problem.hint:
            yield f"{'':{width}}  → {one_line(problem.hint, chars=_TEXT_CHARS)}"


def _last_line(problems: Sequence[Problem], *, bad_files: int, files: int) -> str:
    if not problems:
        return "no files were checked" if not files else f"{count(files, 'file')} {'is' if files == 1 else 'are'} valid"
    errors = sum(problem.is_error for problem in problems)
    numbers = [count(errors, "error")] * bool(errors)
    numbers += [count(len(problems) - errors, "warning")] * (errors < len(problems))
    place = f"{bad_files:,} of {count(max(files, bad_files), 'file')}" if files else count(bad_files, "file")
    return f"{', '.join(numbers)} in {place}"
