"""Files that came before eval sets, written as eval sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.adk.sources import bytes_of, name_of, session_in
from evalmeta.errors import FormatError
from evalmeta.formats.adk.reader import read_adk_file
from evalmeta.formats.adk.writer import write_adk_cases
from evalmeta.package.files import put_file

if TYPE_CHECKING:
    from evalmeta.model.settings import AdkDialect


def migrate_eval_data_to_new_schema(
    old_eval_data_file: str | Path,
    new_eval_data_file: str | Path,
    initial_session_file: str | Path | None = None,
    *,
    dialect: AdkDialect = "auto",
) -> None:
    """Writes what a file has in the form before eval sets as an eval set, in the spelling of its own dialect.

    Args:
        old_eval_data_file: the file with the array.
        new_eval_data_file: the file to write; what it has is overwritten.
        initial_session_file: what the sessions begin with of cases that do not say.
        dialect: what rows mean; `auto` tells it by the keys of their tools.

    Raises:
        FormatError: the old file cannot be read, or is an eval set already.
        NotFound: a file is not there.
        ProjectError: the new file cannot be written.
    """
    old = Path(old_eval_data_file)
    file = read_adk_file(bytes_of(old), label=str(old), dialect=dialect)
    if file.dialect is None:
        raise FormatError(f"{old} is an eval set already; nothing was written")
    session = None if initial_session_file is None else session_in(Path(initial_session_file))
    cases = [replace(each, session=each.session or session) for each in file.cases]
    put_file(Path(new_eval_data_file), write_adk_cases(cases, name=name_of(old.name), dialect=file.dialect))
