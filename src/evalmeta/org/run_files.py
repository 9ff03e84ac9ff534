"""Runs of files that are not deployed: what is kept of such a file, and reading it again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from evalmeta.errors import NotFound, OrgFault, SettingsError, Suggestion
from evalmeta.formats.content import digest_of
from evalmeta.formats.document import Reading, reading_from
from evalmeta.formats.files import read_document
from evalmeta.model.settings import SubjectSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.json_value import JsonObject


_MARK: Final = b'{"file":'


@dataclass(frozen=True, slots=True)
class FileOfRun:
    """What a run keeps of its file: not the cases themselves, for there may be any number.

    Attributes:
        file: relative to the project's folder if it is in there.
        digest: a hash of the content that it had.
        subject_name: what the agent is called.
        subject: the agent's settings; None when the project binds it by its name.
        reading: what the project said of such files.
    """

    file: str
    digest: str
    subject_name: str
    subject: SubjectSettings | None = None
    reading: Reading = field(default_factory=Reading)

    def content(self) -> bytes:
        """Gives what is kept, as JSON."""
        subject = None if self.subject is None else self.subject.model_dump(mode="json", exclude_unset=True)
        return orjson.dumps(
            {
                "file": self.file,
                "digest": self.digest,
                "subjectName": self.subject_name,
                "subject": subject,
                "reading": self.reading.json(),
            }
        )


def keep_file(
    root: Path,
    file: str,
    *,
    subject_name: str,
    subject: JsonObject | None,
    reading: Reading = Reading(),  # noqa: B008
) -> FileOfRun:
    """Gives what a run keeps of a file as it is now.

    Raises:
        NotFound: there is no such file.
        OrgFault: the subject's settings are wrong.
    """
    try:
        settings = None if subject is None else TypeAdapter[SubjectSettings](SubjectSettings).validate_python(subject)
    except ValidationError as error:
        raise OrgFault(
            f"the subject's settings are wrong: {error.error_count()} faults", code="INVALID_API_INPUT"
        ) from None
    return FileOfRun(file, digest_of(root / file), subject_name, settings, reading)


def file_of(content: bytes) -> FileOfRun | None:
    """Gives the file that a run's content stands for; None when the content is a definition."""
    if not content.startswith(_MARK):
        return None
    source = orjson.loads(content)
    subject = source["subject"]
    settings = None if subject is None else TypeAdapter[SubjectSettings](SubjectSettings).validate_python(subject)
    reading = reading_from(source["reading"])
    return FileOfRun(source["file"], source["digest"], source["subjectName"], settings, reading)


def digest_now(root: Path, kept: FileOfRun) -> str | None:
    """Gives the hash of the content that a run's file has now; None when it is gone."""
    try:
        return digest_of(root / kept.file)
    except NotFound:
        return None


def bound_subjects(
    subjects: Mapping[str, SubjectSettings], subject_name: str, content: bytes
) -> Mapping[str, SubjectSettings]:
    """Gives the subjects that a run with this content can name: those of the project, or its own one."""
    kept = file_of(content)
    return subjects if kept is None or kept.subject is None else {subject_name: kept.subject}


def read_file_of_run(root: Path, kept: FileOfRun, name: str) -> Evaluation:
    """Reads the cases of a run's file again.

    Raises:
        SettingsError: the file has changed since the run began, or is gone.
        FormatError: it cannot be read.
    """
    now = digest_now(root, kept)
    if now != kept.digest:
        what = "is not there any more" if now is None else "has changed since the run began"
        raise SettingsError(f"{kept.file} {what}", actions=[Suggestion("Begin a new run", "test", "run", "FILE")])
    document = read_document(root / kept.file, label=kept.file, name=name, reading=kept.reading)
    return replace(document.evaluation, subject_name=kept.subject_name)
